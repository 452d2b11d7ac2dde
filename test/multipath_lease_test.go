package test

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// twoSpines has two paths between its leaves, neither of which holds both of
// the leases below.
//
//	a: h1 -40M-          -20M- spine1 -20M-          -40M- h3: a
//	            \       /                   \       /
//	              leaf1                       leaf2
//	            /       \                   /       \
//	b: h2 -40M-          -20M- spine2 -20M-          -40M- h4: b
const twoSpines = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
  - {name: h3, cpu: 4, memory: 4GiB}
  - {name: h4, cpu: 4, memory: 4GiB}
switches: [leaf1, leaf2, spine1, spine2]
links:
  - {ends: [h1, leaf1], capacity: 40Mbit}
  - {ends: [h2, leaf1], capacity: 40Mbit}
  - {ends: [h3, leaf2], capacity: 40Mbit}
  - {ends: [h4, leaf2], capacity: 40Mbit}
  - {ends: [leaf1, spine1], capacity: 20Mbit}
  - {ends: [leaf1, spine2], capacity: 20Mbit}
  - {ends: [leaf2, spine1], capacity: 20Mbit}
  - {ends: [leaf2, spine2], capacity: 20Mbit}
`

// TestLeasesTakeTheirPaths: where switches are relays, leases take the paths
// that the embedding chose for them, packet by packet, whatever their size;
// and one keeps its minimum while another fills the other path.
func TestLeasesTakeTheirPaths(t *testing.T) { takeTheirPaths(t, twoSpines) }

// TestSoakLeasesTakeTheirPathsInGeneve: in the other encapsulation that lists go into, too.
func TestSoakLeasesTakeTheirPathsInGeneve(t *testing.T) {
	takeTheirPaths(t, twoSpines+"encapsulation: geneve\n")
}

func takeTheirPaths(t *testing.T, substrate string) {
	needFabric(t)
	l := newLab(t, substrate)
	l.up("network: a\nnodes: [{name: x, host: h1}, {name: y, host: h3}]\nlinks: [{ends: [x, y], rate: 15Mbit}]\n")
	l.up("network: b\nnodes: [{name: x, host: h2}, {name: y, host: h4}]\nlinks: [{ends: [x, y], rate: 15Mbit}]\n")
	l.settled()
	ours, theirs := l.spineOf("a"), l.spineOf("b")
	if ours == theirs {
		t.Fatalf("both take %s", ours)
	}
	for _, size := range []int{56, 1414} {
		const pings = 300
		before, other, counted, sent := l.arrived(ours), l.arrived(theirs), l.counted("h1"), l.sent("h1")
		l.must("exec", "a/x", "--", "ping", "-q", "-c", fmt.Sprint(pings), "-i", "0.005", "-s", fmt.Sprint(size), "-M", "do", "y")
		if n := l.arrived(ours) - before; n < 2*pings {
			t.Errorf("size %d: %d of %d packets by %s", size, n, 2*pings, ours)
		}
		if n := l.arrived(theirs) - other; n > pings/2 { // OSPF's
			t.Errorf("size %d: %d packets by %s", size, n, theirs)
		}
		frames := pings * (size + 8 + 20 + 14 + plan.OuterHeaders)
		if n := l.counted("h1") - counted - frames; n < 0 || n >= 8*pings { // and a few of address resolution
			t.Errorf("size %d: the class counts %d bytes beside %d: ceilings take it that lists are not counted", size, n, frames)
		}
		if n := l.sent("h1") - sent - frames; n < 8*pings {
			t.Errorf("size %d: %d bytes of lists were sent, want %d", size, n, 8*pings)
		}
	}
	l.keepsMinimum("a", "b")
	l.must("down", "a")
	l.must("down", "b")
}

// spineOf is the switch by which a network's only link goes.
func (l *lab) spineOf(network string) string {
	l.t.Helper()
	for _, v := range l.leases() {
		if v.Network != network || v.State == vnet.Ended {
			continue
		}
		path := v.Mapping.Links["x-y"]
		if at := slices.IndexFunc(path, func(link string) bool { return strings.HasPrefix(link, "leaf1-") }); at >= 0 {
			return strings.TrimPrefix(path[at], "leaf1-")
		}
		l.t.Fatalf("%s goes by %v", network, path)
	}
	l.t.Fatalf("there is no network %s", network)
	return ""
}

// arrived is how many packets have come to a switch.
func (l *lab) arrived(node string) (n int) {
	l.t.Helper()
	out, err := exec.Command("ip", "netns", "exec", labName(l.run)+"-"+node, "cat", "/proc/net/dev").Output()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if words := strings.Fields(line); len(words) > 2 && strings.HasPrefix(words[0], "to-") {
			packets, err := strconv.Atoi(words[2])
			if err != nil {
				l.t.Fatal(err)
			}
			n += packets
		}
	}
	return n
}

// counted is how many bytes the class of a host's first tunnel has counted.
func (l *lab) counted(host string) (bytes int) {
	l.t.Helper()
	out, err := exec.Command("nsenter", "--net="+l.host(host), "tc", "-s", "class", "show", "dev", "to-leaf1", "classid", "1:10").Output()
	_, rest, _ := strings.Cut(string(out), "Sent ")
	if _, bad := fmt.Sscan(rest, &bytes); err != nil || bad != nil {
		l.t.Fatalf("%s: %v, %v", out, err, bad)
	}
	return bytes
}

// sent is how many bytes have left a host for its switch.
func (l *lab) sent(host string) int {
	l.t.Helper()
	return passed(l.t, l.host(host), "to-leaf1").bytesOut
}

// keepsMinimum checks a network while another sends all it can.
func (l *lab) keepsMinimum(network, loud string) {
	l.t.Helper()
	flood := exec.Command(program, "--run", l.run, "exec", loud+"/x", "--", "bash", "-c", "while true; do head -c 1300 /dev/zero > /dev/udp/$(getent hosts y | cut -d' ' -f1)/9; done")
	if err := flood.Start(); err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = flood.Process.Kill(); _ = flood.Wait() }()
	l.checked(network, broken, "--duration", "3s")
}
