package vnet

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"
)

// Bounds of a request and of a substrate. They keep a document from a
// stranger from costing more than it can be worth.
const (
	MaxNodes  = 5000  // nodes and routers together, over all stages
	MaxLinks  = 20000 // links, over all stages
	MaxStages = 64

	// Of a substrate: hosts and switches together, and links.
	MaxHosts = 50_000
	MaxWires = 200_000

	// MinRate is the least that can be shaped: at 8 kbit/s one full frame
	// already takes 1.5 s, and the kernel counts whole bytes per second.
	MinRate = 8 * Kbit
	// MaxRate keeps sums over MaxLinks links inside an int64.
	MaxRate = 10000 * Gbit
	// MinCPU is one millisecond of quota in the kernel's 100 ms period.
	MinCPU = 10
	// MinMemory is about what one process needs to start.
	MinMemory = MiB
	// MaxMemory and MaxCPU keep sums over MaxNodes nodes inside an int64.
	MaxMemory = 1 << 20 * GiB
	MaxCPU    = 1_000_000 * Core

	// MaxLatency bounds a latency, a path's and a wire's.
	MaxLatency = time.Hour
)

// Years outside these make no lease and cannot all be written as JSON.
const firstYear, lastYear = 2000, 2200

// fieldf returns a FieldError.
func fieldf(path, format string, args ...any) error {
	return &FieldError{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// at gives the path of element i of a list, key that of a map's element.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func key(path, k string) string {
	if CheckName(k) == nil {
		return path + "." + k
	}
	return path + "[" + strconv.Quote(k) + "]"
}

// join puts a field behind a path that may be empty.
func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func checkName(path, name string) error {
	if name == "" {
		return fieldf(path, "is missing: state a name")
	}
	if err := CheckName(name); err != nil {
		return fieldf(path, "%v", err)
	}
	return nil
}

// checkRate allows 0 only where zero says so.
func checkRate(path string, r Rate, zero bool) error {
	switch {
	case r == 0 && zero:
		return nil
	case r < MinRate:
		return fieldf(path, "%s is too little to shape: state at least %s", r, MinRate)
	case r > MaxRate:
		return fieldf(path, "%s is more than %s, the most Sublet counts: state less", r, MaxRate)
	}
	return nil
}

func checkLatency(path string, d time.Duration) error {
	if d < 0 || d > MaxLatency {
		return fieldf(path, "%s is not between 0 and %s: state a bound such as 10ms", d, FormatDuration(MaxLatency))
	}
	return nil
}

// checkAddress wants an IPv4 address that one interface can have. IPv6 is not
// accepted: tunnels, routes and OSPF of this version are IPv4.
func checkAddress(path string, a netip.Addr) error {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	switch {
	case !a.Is4():
		return fieldf(path, "%s is not an IPv4 address, the only kind supported: state one such as 10.1.0.1", a)
	case a.IsMulticast(), a.IsLoopback(), a.IsLinkLocalUnicast(), a == broadcast, a.As4()[0] == 0, a.As4()[0] >= 240:
		return fieldf(path, "%s is not a unicast address: state one such as 10.1.0.1", a)
	}
	return nil
}
