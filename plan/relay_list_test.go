package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"sublet/vnet"
)

// leafSpine is two leaves with a host each and three spines.
func leafSpine() vnet.Substrate {
	sub := vnet.Substrate{
		Hosts:    []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}},
		Switches: []string{"leaf1", "leaf2", "s1", "s2", "s3"},
		Links: []vnet.SubstrateLink{
			{Name: "a", Ends: [2]string{"h1", "leaf1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{port("up0", "198.18.0.0"), {}}},
			{Name: "b", Ends: [2]string{"h2", "leaf2"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{port("up0", "198.18.0.2"), {}}},
		},
		Relays: make(map[string]netip.Addr),
	}
	for i, s := range sub.Switches {
		sub.Relays[s] = netip.AddrFrom4([4]byte{198, 19, 0, byte(i + 1)})
		for _, leaf := range []string{"leaf1", "leaf2"} {
			if i >= 2 {
				sub.Links = append(sub.Links, vnet.SubstrateLink{Name: leaf + "-" + s, Ends: [2]string{leaf, s}, Capacity: vnet.Gbit})
			}
		}
	}
	return sub
}

// A leased link over two paths is two tunnels, each pinned to its spine in
// both directions; tenants' packets leave room for the lists.
func TestLeasedLinksArePinned(t *testing.T) {
	l := vnet.Lease{
		Request: vnet.Request{Network: "net", Tenant: "alice", Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "n1"}, {Name: "n2"}},
			Links: []vnet.VirtualLink{{Name: "wide", Ends: [2]string{"n1", "n2"}, Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Gbit), vnet.Static(vnet.Gbit)}}},
		}},
		State: vnet.Running, Stage: -1,
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h2"},
			Splits: map[string][]vnet.PathShare{"wide": {
				{Path: vnet.Path{"a", "leaf1-s3", "leaf2-s3", "b"}, Units: 3 * vnet.ShareUnits / 4},
				{Path: vnet.Path{"a", "leaf1-s1", "leaf2-s1", "b"}, Units: vnet.ShareUnits / 4},
			}},
		},
		Addresses: map[string]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2")},
		VNIs:      map[string][]vnet.VNI{"wide": {7, 8}},
	}
	for _, relays := range []bool{true, false} {
		sub := leafSpine()
		if !relays {
			sub.Relays = nil
		}
		if err := sub.Check(); err != nil {
			t.Fatal(err)
		}
		plans, err := Compile(sub, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		for host, remote := range map[vnet.HostID]string{"h1": "198.18.0.2/32", "h2": "198.18.0.0/32"} {
			var got []string
			for _, s := range Of[Spread](plans[host]) {
				if err := s.Check(); err != nil {
					t.Error(err)
				}
				if s.Paths[0].Lease != l.ID() || s.Interface != "up0" || s.By != ByUDP {
					t.Errorf("%+v", s)
				}
				got = append(got, fmt.Sprintf("%s %s %v", s.Key(), s.Prefix, s.Paths))
			}
			want := []string{"vni/00000007 " + remote + " [[198.19.0.5]]", "vni/00000008 " + remote + " [[198.19.0.3]]"}
			if relays != slices.Equal(got, want) || !relays && got != nil {
				t.Errorf("relays %t, %s: %q", relays, host, got)
			}
			ends := Of[VxLink](plans[host])[0].Ends
			mtu := ends[slices.IndexFunc(ends[:], func(e End) bool { return e.Port != nil })].Port.MTU
			if list := ends[slices.IndexFunc(ends[:], func(e End) bool { return e.Tunnel != nil })].Tunnel.List; relays != (list == 8) || !relays && list != 0 {
				t.Errorf("relays %t: lists of %d bytes", relays, list)
			}
			if relays && mtu != 1500-OuterHeaders-8 || !relays && mtu != 1500-OuterHeaders {
				t.Errorf("relays %t: the tenant's MTU is %d", relays, mtu)
			}
		}
	}
}

// A path of as many diamonds as packets have room for relays is pinned by one
// in each; with one diamond more it is the fabric's own, which admission
// refuses.
func TestAsManyRelaysAsThereIsRoomFor(t *testing.T) {
	for n, want := range map[int]int{vnet.MaxRelays: vnet.MaxRelays, vnet.MaxRelays + 1: 0} {
		sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Relays: make(map[string]netip.Addr)}
		path := vnet.Path{}
		join := func(taken bool, ends ...string) {
			name := fmt.Sprint(ends)
			sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string(ends), Capacity: vnet.Gbit})
			if taken {
				path = append(path, name)
			}
		}
		join(true, "h1", "s0")
		for i := range n {
			for _, way := range []string{"a", "b"} {
				join(way == "a", fmt.Sprint("s", i), fmt.Sprint(way, i))
				join(way == "a", fmt.Sprint(way, i), fmt.Sprint("s", i+1))
			}
		}
		join(true, fmt.Sprint("s", n), "h2")
		for _, l := range sub.Links {
			for _, end := range l.Ends {
				if end[0] != 'h' && !sub.Relays[end].IsValid() {
					sub.Switches = append(sub.Switches, end)
					sub.Relays[end] = netip.AddrFrom4([4]byte{10, 0, 0, byte(len(sub.Switches))})
				}
			}
		}
		hops, err := sub.Walk("h1", path)
		if err != nil {
			t.Fatal(err)
		}
		if relays := newPins(sub).list(hops); len(relays) != want {
			t.Errorf("%d diamonds: pinned by %v", n, relays)
		}
	}
}

// A wire has room for what it carries: frames of 900 bytes and more at the rate
// of its capacity, with their outer headers and the longest list.
func TestWiresHaveRoomForLists(t *testing.T) {
	sub := leafSpine()
	for _, c := range []struct {
		switches int
		relays   bool
		list     int
	}{{5, false, 0}, {2, true, 0}, {3, true, 8}, {5, true, 16}, {40, true, 36}} {
		sub.Switches = make([]string, c.switches)
		if sub.Relays = nil; c.relays {
			sub.Relays = leafSpine().Relays
		}
		for _, rate := range []vnet.Rate{20 * vnet.Mbit, 10 * vnet.Gbit} {
			wire := WireRate(sub, rate)
			for frame := vnet.Rate(MeanFrame); frame <= 1514; frame++ {
				if used := rate / 8 * (frame + OuterHeaders + vnet.Rate(c.list)) / frame * 8; used > wire+8*vnet.Rate(OuterHeaders+c.list) {
					t.Errorf("%+v: frames of %d bytes take %s of %s", c, frame, used, wire)
				}
			}
			if most := rate + rate*vnet.Rate(OuterHeaders+c.list)/MeanFrame; wire > most+8 {
				t.Errorf("%+v: %s for %s, and %s is enough", c, wire, rate, most)
			}
		}
	}
}
