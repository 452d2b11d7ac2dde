package lab

import (
	"fmt"
	"os"
	"strings"

	"sublet/vnet"
)

// What a lab can hold: each host runs an agent, and each host and switch is a
// network namespace.
const (
	maxHosts    = 200
	maxSwitches = 200
)

// Fits says what makes a substrate too large for a lab.
func Fits(sub vnet.Substrate) error {
	switch {
	case len(sub.Hosts) > maxHosts:
		return fmt.Errorf("a lab of %d hosts is larger than %d, each of which runs an agent: take a smaller substrate", len(sub.Hosts), maxHosts)
	case len(sub.Switches) > maxSwitches:
		return fmt.Errorf("a lab of %d switches is larger than %d: take a smaller substrate", len(sub.Switches), maxSwitches)
	}
	return nil
}

// nodeMemory is what the daemons and the relay's tables of a node take, in
// bytes: rounded up from what a fat-tree of 36 nodes took.
const nodeMemory = 32 << 20

// FitsOSPF says what makes a substrate too large for this machine's memory
// with FRR in every node.
func FitsOSPF(sub vnet.Substrate) error {
	nodes := len(sub.Hosts) + len(sub.Switches)
	free, known := available()
	if need := uint64(nodes) * nodeMemory; known && need > free {
		return fmt.Errorf("OSPF in %d hosts and switches takes %d MiB, but %d are free: take a smaller substrate, or --routing static", nodes, need>>20, free>>20)
	}
	return nil
}

// available is the memory in bytes that programs can have without swapping:
// caches give way (proc_meminfo(5)).
func available() (bytes uint64, known bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	_, after, found := strings.Cut(string(text), "\nMemAvailable:")
	if !found {
		return 0, false
	}
	n, err := fmt.Sscanf(after, "%d kB", &bytes)
	return bytes << 10, n == 1 && err == nil
}
