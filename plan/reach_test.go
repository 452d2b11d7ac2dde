package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// reachedIn lists the pairs that hosts look at, "a>b".
func reachedIn(t *testing.T, l vnet.Lease) (list []string) {
	t.Helper()
	hosts, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range hosts {
		for _, r := range Of[Reach](h) {
			for _, p := range r.Pairs {
				from := r.Nodes[p.From].Name
				if l.Mapping.Nodes[from] != name {
					t.Errorf("%s of %s is asked on %s", from, l.Mapping.Nodes[from], name)
				}
				for _, to := range p.To {
					if l.Addresses[r.Nodes[to].Name] != r.Nodes[to].Address {
						t.Errorf("%s has another address than %s", r.Nodes[to].Name, r.Nodes[to].Address)
					}
					list = append(list, from+">"+r.Nodes[to].Name)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// everyPair joins all of some names in both directions.
func everyPair(names ...string) (list []string) {
	for _, a := range names {
		for _, b := range names {
			if a != b {
				list = append(list, a+">"+b)
			}
		}
	}
	slices.Sort(list)
	return list
}

func TestWhoMustReachWhom(t *testing.T) {
	static := lan()
	if got, want := reachedIn(t, static), everyPair("a", "b", "c", "p", "r"); !slices.Equal(got, want) {
		t.Errorf("across switches %v, want %v", got, want)
	}

	none := lan() // its tenant routes: the stations of a segment reach each other
	none.Request.Routers[0].Protocol = vnet.ProtocolNone
	got := reachedIn(t, none)
	for _, pair := range []string{"a>b", "b>r", "c>r", "r>c"} {
		if !slices.Contains(got, pair) {
			t.Errorf("%s is not looked at with a router that its tenant sets: %v", pair, got)
		}
	}
	for _, l := range []vnet.Lease{static, none} {
		for _, pair := range reachedIn(t, l) {
			from, to, _ := strings.Cut(pair, ">")
			if !slices.Contains(reachedIn(t, l), to+">"+from) {
				t.Errorf("%s without the way back", pair)
			}
		}
	}
}

// ring is a ring of routers with a node at each.
func ring(size int, protocol vnet.Protocol) vnet.Lease {
	l := lan()
	l.Request.Topology = vnet.Topology{}
	l.Mapping = vnet.Mapping{Nodes: make(map[string]vnet.HostID), Links: make(map[string]vnet.Path)}
	l.Addresses, l.VNIs = make(map[string]netip.Addr), nil
	top := &l.Request.Topology
	for i := range size {
		r, n, next := fmt.Sprint("r", i), fmt.Sprint("n", i), fmt.Sprint("r", (i+1)%size)
		top.Routers = append(top.Routers, vnet.VirtualNode{Name: r, Protocol: protocol})
		top.Nodes = append(top.Nodes, vnet.VirtualNode{Name: n})
		top.Links = append(top.Links, vnet.VirtualLink{Name: r + n, Ends: [2]string{r, n}}, vnet.VirtualLink{Name: r + next, Ends: [2]string{r, next}})
		l.Mapping.Nodes[r], l.Mapping.Nodes[n] = "h2", "h2"
		l.Addresses[r], l.Addresses[n] = netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), netip.AddrFrom4([4]byte{10, 0, 2, byte(i)})
	}
	return l
}

func TestWhoMustReachWhomThroughRouters(t *testing.T) {
	all := everyPair("n0", "n1", "n2", "n3", "r0", "r1", "r2", "r3")
	for _, protocol := range []vnet.Protocol{vnet.ProtocolStatic, vnet.ProtocolOSPF} {
		if got := reachedIn(t, ring(4, protocol)); !slices.Equal(got, all) {
			t.Errorf("%s: %v", protocol, got)
		}
	}
	// Nodes have a default route, but routers that their tenant sets know their neighbours only.
	want := []string{}
	for i := range 4 {
		n, r := fmt.Sprint("n", i), fmt.Sprint("r", i)
		next, before := fmt.Sprint("r", (i+1)%4), fmt.Sprint("r", (i+3)%4)
		want = append(want, n+">"+r, r+">"+n, r+">"+next, r+">"+before)
	}
	slices.Sort(want)
	if got := reachedIn(t, ring(4, vnet.ProtocolNone)); !slices.Equal(got, want) {
		t.Errorf("none: %v, want %v", got, want)
	}
}

// Routers forward on all their ports, unless their tenant routes; nodes do not.
func TestWhoMustForward(t *testing.T) {
	for protocol, want := range map[vnet.Protocol]string{vnet.ProtocolStatic: "[eth0 eth1 eth2]", vnet.ProtocolOSPF: "[eth0 eth1 eth2]", vnet.ProtocolNone: "[]"} {
		hosts, err := Compile(substrate, []vnet.Lease{ring(4, protocol)})
		if err != nil {
			t.Fatal(err)
		}
		r := Of[Reach](hosts["h2"])[0]
		for _, p := range r.Pairs {
			name, want := r.Nodes[p.From].Name, want
			if name[0] == 'n' {
				want = "[]"
			}
			if got := fmt.Sprint(p.Forwards); got != want {
				t.Errorf("%s, %s: %s, want %s", protocol, name, got, want)
			}
		}
		if len(r.Pairs) != 8 {
			t.Errorf("%s: %d nodes are looked at", protocol, len(r.Pairs))
		}
	}
}

// Of fifty nodes every pair is looked at.
func TestFiftyNodesAreLookedAtByPairs(t *testing.T) {
	if got := reachedIn(t, ring(25, vnet.ProtocolStatic)); len(got) != 50*49 {
		t.Errorf("%d pairs of 50 nodes", len(got))
	}
}

// Of many nodes each is looked at, and whatever joins them, but not every pair.
func TestManyNodesAreLookedAtBySome(t *testing.T) {
	got := reachedIn(t, ring(100, vnet.ProtocolStatic))
	seen := make(map[string]bool)
	for _, pair := range got {
		from, _, _ := strings.Cut(pair, ">")
		seen[from] = true
	}
	if len(seen) != 200 || len(got) > 1000 {
		t.Errorf("%d nodes of 200 in %d pairs", len(seen), len(got))
	}
}

// TestWhoMustReachWhomByIPv6: nodes with addresses of IPv6, by routers that are
// told of them in any way, as far as the routes lead; nobody else.
func TestWhoMustReachWhomByIPv6(t *testing.T) {
	for protocol, want := range map[vnet.Protocol]string{
		vnet.ProtocolStatic: "[r0>r1 r0>r2 r1>r0 r1>r2 r2>r0 r2>r1]",
		vnet.ProtocolISIS:   "[r0>r1 r0>r2 r1>r0 r1>r2 r2>r0 r2>r1]",
		vnet.ProtocolNone:   "[r0>r1 r1>r0]", // r1 is asked by its first address, which r2 has no route to
	} {
		l := ring(3, protocol)
		l.LinkAddresses = map[string]vnet.LinkAddresses{
			"r0r1": {{netip.MustParsePrefix("2001:db8:1::1/64")}, {netip.MustParsePrefix("2001:db8:1::2/64")}},
			"r1r2": {{netip.MustParsePrefix("2001:db8:2::1/64")}, {netip.MustParsePrefix("2001:db8:2::2/64")}},
		}
		hosts, err := Compile(substrate, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hosts {
			for _, r := range Of[Reach](h) {
				for _, p := range r.Pairs {
					for _, to := range p.To6 {
						if !r.Nodes[to].Address.Is6() {
							t.Errorf("%s is asked by IPv6 at %s", r.Nodes[to].Name, r.Nodes[to].Address)
						}
						got = append(got, r.Nodes[p.From].Name+">"+r.Nodes[to].Name)
					}
				}
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", protocol, got, want)
		}
	}
}
