package vnet

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestDualStack: each link between stations and each segment gets one subnet, those
// that state one keep it, and what is there keeps its own when more comes.
func TestDualStack(t *testing.T) {
	top := Topology{
		Nodes:    []VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "wg", Join: "any"}},
		Switches: []VirtualSwitch{{Name: "s"}},
		Links: []VirtualLink{
			{Name: "ab", Ends: [2]string{"a", "b"}},
			{Name: "sa", Ends: [2]string{"s", "a"}},
			{Name: "bs", Ends: [2]string{"b", "s"}},
			{Name: "bc", Ends: [2]string{"b", "c"}, Addresses: LinkAddresses{{netip.MustParsePrefix("10.1.0.1/24")}, {netip.MustParsePrefix("2001:db8::2/64")}}},
			{Name: "wb", Ends: [2]string{"wg", "b"}},
		},
	}
	dual := top.DualStack("alice", "net")
	own := dual.Links[1].Addresses[1]
	if len(own) != 1 || own[0].Bits() != 64 || own[0].Addr().As16()[0] != 0xfd || own[0].Addr().As16()[7] != 1 {
		t.Fatalf("the segment has %v", own)
	}
	if ab := dual.Links[0].Addresses[0]; len(ab) != 1 || ab[0].Addr().As16()[7] != 2 || ab[0].Masked().Overlaps(own[0].Masked()) {
		t.Errorf("the link has %v beside %v", ab, own)
	}
	for _, i := range []int{2, 3, 4} {
		if have, want := fmt.Sprint(dual.Links[i].Addresses), fmt.Sprint(top.Links[i].Addresses); have != want {
			t.Errorf("link %s has %s, not %s", dual.Links[i].Name, have, want)
		}
	}
	if !top.Links[0].Addresses.IsZero() {
		t.Error("the topology itself was changed")
	}
	more := dual
	more.Links = append([]VirtualLink{{Name: "ac", Ends: [2]string{"a", "c"}}}, dual.Links...)
	again := more.DualStack("alice", "net")
	if got := again.Links[0].Addresses[0]; len(got) != 1 || got[0].Addr().As16()[7] != 3 || fmt.Sprint(again.Links[1:]) != fmt.Sprint(dual.Links) {
		t.Errorf("a further link gets %v; the others %v", got, again.Links[1:])
	}
}

// TestDualStackWithoutRoom: a tenant who states the prefix that theirs would be gets
// no others, and nobody looks for ever.
func TestDualStackWithoutRoom(t *testing.T) {
	s := newLocalSubnets("alice", "net", nil)
	first, _ := s.next()
	stated := netip.PrefixFrom(first.Addr().Next(), 32)
	top := Topology{
		Nodes: []VirtualNode{{Name: "a"}, {Name: "b"}},
		Links: []VirtualLink{{Name: "x", Ends: [2]string{"a", "b"}, Addresses: LinkAddresses{{stated}}}, {Name: "y", Ends: [2]string{"a", "b"}}},
	}
	if dual := top.DualStack("alice", "net"); !dual.Links[1].Addresses.IsZero() {
		t.Errorf("y has %v inside of %s", dual.Links[1].Addresses, stated)
	}
}
