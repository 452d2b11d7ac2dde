package lookup_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
)

func set(list ...int) (s vxswitch.PortSet) {
	for _, p := range list {
		s.Add(p)
	}
	return s
}

func TestStaticKnowsWhoIsPlanned(t *testing.T) {
	a, b := mac(1), mac(2)
	f := lookup.NewStatic(4, []lookup.Station{{MAC: a, Port: 0, Address: netip.MustParseAddr("10.0.0.1")}, {MAC: b, Port: 2}})
	check(t, f, 0, 0, vxswitch.Header{Src: a, Dst: b}, 2)
	check(t, f, 0, 3, vxswitch.Header{Src: mac(3), Dst: a}, 0)
	check(t, f, 0, 0, vxswitch.Header{Src: a, Dst: mac(3)}) // it was seen, and is not learned
	check(t, f, 0, 0, vxswitch.Header{Src: a, Dst: broadcast}, 1, 2, 3)
	check(t, f, 0, 2, vxswitch.Header{Src: b, Dst: broadcast, Target: netip.MustParseAddr("10.0.0.1")}, 0)
	check(t, f, 0, 2, vxswitch.Header{Src: b, Dst: b}) // to its own port: nowhere
}

func TestPrefixTakesTheLongest(t *testing.T) {
	p := netip.MustParsePrefix
	f := lookup.NewPrefix(4, []lookup.Station{{MAC: mac(1), Port: 3}}, map[netip.Prefix]vxswitch.PortSet{
		p("0.0.0.0/0"): set(0), p("10.1.0.0/16"): set(1, 2), p("10.1.2.3/32"): {}, p("2001:db8::/32"): set(2),
	})
	to := func(addr string) vxswitch.Header {
		return vxswitch.Header{Src: mac(8), Dst: mac(9), DstIP: netip.MustParseAddr(addr)}
	}
	check(t, f, 0, 3, to("10.2.0.1"), 0)
	check(t, f, 0, 3, to("10.1.9.9"), 1, 2)
	check(t, f, 0, 1, to("10.1.9.9"), 2)
	check(t, f, 0, 3, to("10.1.2.3")) // a way that leads nowhere
	check(t, f, 0, 3, to("2001:db8::5"), 2)
	check(t, f, 0, 3, to("2001:db9::5"))
	check(t, f, 0, 0, vxswitch.Header{Src: mac(8), Dst: mac(1)}, 3) // an answer of ARP
	check(t, f, 0, 0, vxswitch.Header{Src: mac(8), Dst: mac(9)})
	check(t, f, 0, 0, vxswitch.Header{Src: mac(8), Dst: broadcast}, 1, 2, 3)
}

// It finds what a look at all prefixes finds.
func TestPrefixIsTheLongestOfAll(t *testing.T) {
	addr := func(t *rapid.T, name string) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 1).Draw(t, name)), byte(rapid.IntRange(0, 3).Draw(t, name)), byte(rapid.IntRange(0, 255).Draw(t, name))})
	}
	rapid.Check(t, func(t *rapid.T) {
		prefixes := make(map[netip.Prefix]vxswitch.PortSet)
		for range rapid.IntRange(1, 12).Draw(t, "prefixes") {
			way, _ := addr(t, "way").Prefix(rapid.IntRange(0, 32).Draw(t, "bits"))
			prefixes[way] = set(rapid.IntRange(1, 5).Draw(t, "port"))
		}
		f := lookup.NewPrefix(6, nil, prefixes)
		to, longest, want := addr(t, "to"), -1, vxswitch.PortSet{}
		for way, out := range prefixes {
			if way.Contains(to) && way.Bits() > longest {
				longest, want = way.Bits(), out
			}
		}
		var got vxswitch.PortSet
		f.Forward(0, 0, &vxswitch.Header{Dst: mac(1), DstIP: to}, &got)
		if got != want {
			t.Fatalf("%s goes to %v, want %v", to, ports(got), ports(want))
		}
	})
}

func TestClassifierTakesTheFirst(t *testing.T) {
	dscp, zero, a := uint8(46), uint8(0), mac(1)
	f := lookup.NewClassifier([]lookup.Rule{
		{DSCP: &dscp, To: set(3)},
		{Proto: 17, DstPort: 53, Src: netip.MustParsePrefix("10.0.0.0/24"), To: set(1, 2)},
		{Proto: 6, SrcPort: 80, DSCP: &zero},
		{VLAN: 7, MAC: &a, To: set(2)},
	}, lookup.NewLearning(4, 0, 0))
	ip := netip.MustParseAddr
	base := vxswitch.Header{Src: mac(8), Dst: mac(9), SrcIP: ip("10.0.0.1"), DstIP: ip("10.0.1.1")}
	with := func(change func(*vxswitch.Header)) vxswitch.Header { h := base; change(&h); return h }
	check(t, f, 0, 0, with(func(h *vxswitch.Header) { h.DSCP = 46; h.Proto = 17; h.DstPort = 53 }), 3)
	check(t, f, 0, 0, with(func(h *vxswitch.Header) { h.Proto = 17; h.DstPort = 53 }), 1, 2)
	check(t, f, 0, 0, with(func(h *vxswitch.Header) { h.Proto = 17; h.DstPort = 53; h.SrcIP = ip("10.0.9.1") }), 1, 2, 3)
	check(t, f, 0, 0, with(func(h *vxswitch.Header) { h.Proto = 6; h.SrcPort = 80 }))
	check(t, f, 0, 0, vxswitch.Header{Src: mac(8), Dst: a, VLAN: 7}, 2)
	check(t, f, 0, 2, vxswitch.Header{Src: a, Dst: mac(8)}, 0) // learned from frames that rules took
	check(t, f, 0, 0, vxswitch.Header{Src: mac(8), Dst: a, VLAN: 6}, 2)
	check(t, f, 0, 1, vxswitch.Header{Src: mac(5), Dst: broadcast}, 0, 2, 3) // no packet: rules for packets do not take it
}
