package lease

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// overSwitch is h1 - s1 - h2, whose switch speaks OpenFlow.
func overSwitch() vnet.Substrate {
	sub := vnet.Substrate{Switches: []string{"s1"}, OpenFlow: []vnet.OpenFlowSwitch{{Name: "s1", Ports: map[string]uint32{"l1": 1, "l2": 2}, Entries: 10000, Meters: 4000}}}
	for i, host := range []vnet.HostID{"h1", "h2"} {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: host, CPU: 4000, Memory: 4 * vnet.GiB})
		port := vnet.Port{Interface: "eth1", Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: fmt.Sprintf("l%d", i+1), Ends: [2]string{string(host), "s1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{port, {}}})
	}
	return sub
}

// Tunnels between the same two hosts over OpenFlow switches have source ports of their
// own, whatever else has numbers, and as many as there are ports.
func TestTunnelsAreToldApart(t *testing.T) {
	sub := overSwitch().Index()
	var used vnis
	for i := range 3 * plan.Sources { // every number but one in three is another's
		if i%3 != 0 {
			used.add(firstVNI + vnet.VNI(i))
		}
	}
	taken, seen := make(sources), make(map[uint16]bool)
	m := vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2"}, Links: map[string]vnet.Path{"l": {"l1", "l2"}}}
	links := []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}}}
	for range plan.Sources {
		got, err := used.number(sub, taken, links, m)
		if err != nil {
			t.Fatal(err)
		}
		port := plan.SourceOf(got["l"][0])
		if seen[port] || port >= 1024 {
			t.Fatalf("port %d is another's, or anybody's", port)
		}
		seen[port] = true
	}
	if _, err := used.number(sub, taken, links, m); err == nil || !strings.Contains(err.Error(), "tell 192 tunnels between 192.0.2.1 and 192.0.2.2 apart") {
		t.Errorf("one more: %v", err)
	}
}

// A lease over an OpenFlow switch waits for the switch as for its hosts, goes on when
// that has it, and is removed from it.
func TestLeasesWaitForSwitches(t *testing.T) {
	b := New(overSwitch())
	l := admit(t, b, "alice/net", "a@h1", "b@h2", "a-b=1")
	p, there := b.Plan("s1")
	if !there || len(p.Items()) != 2 {
		t.Fatalf("the switch gets %v", p.Items())
	}
	if state, _ := b.Lease(l.ID()); !strings.Contains(state.Message, "s1") {
		t.Errorf("it waits for %q", state.Message)
	}
	reportAll(t, b)
	if state, _ := b.Lease(l.ID()); state.State != vnet.Running {
		t.Errorf("it is %s: %s", state.State, state.Message)
	}
	if err := b.Release(noon, l.ID()); err != nil {
		t.Fatal(err)
	}
	if p, _ = b.Plan("s1"); len(p.Items()) != 0 {
		t.Errorf("the switch keeps %v", p.Items())
	}
}
