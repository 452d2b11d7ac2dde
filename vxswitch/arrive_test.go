package vxswitch_test

import (
	"net/netip"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
	"sublet/vxswitch/sched"
)

// TestTwoLookups: claims of every field choose the switch in their order, then
// the switch's own lookup the output.
func TestTwoLookups(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 3))
	claims := []vxswitch.Claim{
		{By: vxswitch.ByVNI, Port: vxswitch.AnyPort, Value: 42},
		{By: vxswitch.ByLabel, Port: vxswitch.AnyPort, Value: 25},
		{By: vxswitch.ByVLAN, Port: vxswitch.AnyPort, Value: 7},
		{By: vxswitch.ByMAC, Port: vxswitch.AnyPort, MAC: vxswitch.MAC{2, 0, 0, 0, 0, 9}},
		{By: vxswitch.ByPrefix, Port: vxswitch.AnyPort, Prefix: netip.MustParsePrefix("10.0.0.0/8")},
		{By: vxswitch.ByPrefix, Port: vxswitch.AnyPort, Prefix: netip.MustParsePrefix("10.1.0.0/16")},
		{By: vxswitch.ByDSCP, Port: vxswitch.AnyPort, Value: 46},
		{By: vxswitch.ByPort, Port: 0},
		{By: vxswitch.ByVLAN, Port: 2, Value: 7},
	}
	for i, c := range claims {
		v := member(string(rune('a'+i)), 3, sched.DRR{}, func(p *vxswitch.Port) { p.In, p.Out = vnet.Kbit, vnet.Kbit })
		v.Buffer.Size = 10000
		v.Claims, v.Lookup = []vxswitch.Claim{c}, lookup.NewLearning(3, 0, 0)
		d.apply(0, vxswitch.Add{Virtual: v})
	}
	ip := func(s string) vxswitch.Header { return vxswitch.Header{DstIP: netip.MustParseAddr(s)} }
	all := ip("10.1.2.3")
	all.Dst = vxswitch.MAC{2, 0, 0, 0, 0, 8}
	all.VNI, all.HasVNI, all.Label, all.HasLabel, all.VLAN, all.Src, all.DSCP = 42, true, 25, true, 7, vxswitch.MAC{2, 0, 0, 0, 0, 9}, 46
	for i, c := range []struct {
		strip func()
		port  int
		want  vxswitch.ID
	}{
		{func() {}, 0, 0},
		{func() { all.HasVNI = false }, 0, 1},
		{func() { all.HasLabel = false }, 0, 2},
		{func() {}, 2, 8}, // a claim that names the port wins
		{func() { all.VLAN = 0 }, 0, 3},
		{func() { all.Src = vxswitch.MAC{} }, 0, 5},
		{func() { all.DstIP = netip.MustParseAddr("10.2.2.3") }, 0, 4},
		{func() { all.DstIP = netip.MustParseAddr("192.0.2.1") }, 0, 6},
		{func() { all.DSCP = 0 }, 0, 7},
		{func() {}, 1, -1},
	} {
		c.strip()
		id, queued, why := d.s.Arrive(0, c.port, &all, vxswitch.Packet{Size: 100})
		if id != c.want || id >= 0 && (queued != 2 || why != vxswitch.None) || id < 0 && why != vxswitch.Unknown {
			t.Errorf("%d: switch %d, %d copies, %v; want switch %d", i, id, queued, why, c.want)
		}
	}
}

// TestForwardingMatrix: clients reach the server and not one another, whatever
// the lookup says.
func TestForwardingMatrix(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 3))
	v := member("a", 3, sched.DRR{})
	v.Reach = [][]bool{{false, true, true}, {true, false, false}, {true, false, false}}
	v.Lookup, v.Claims = lookup.NewLearning(3, 0, 0), []vxswitch.Claim{{By: vxswitch.ByPort, Port: 1}}
	d.apply(0, vxswitch.Add{Virtual: v})
	if _, queued, why := d.s.Arrive(0, 1, &vxswitch.Header{Src: vxswitch.MAC{2}}, vxswitch.Packet{Size: 100}); queued != 1 || why != vxswitch.Unreachable {
		t.Errorf("a client's flood: %d copies, %v", queued, why)
	}
	if c := d.s.Enqueue(0, 0, 2, vxswitch.Packet{In: 1, Size: 100}); c != vxswitch.Unreachable {
		t.Errorf("client to client: %v", c)
	}
}

// TestClaimsMustDiffer: two switches cannot claim the same frames.
func TestClaimsMustDiffer(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 2))
	a, b := member("a", 2, sched.DRR{}), member("b", 2, sched.DRR{})
	a.Claims = []vxswitch.Claim{{By: vxswitch.ByVLAN, Port: vxswitch.AnyPort, Value: 7}}
	b.Claims = a.Claims
	d.apply(0, vxswitch.Add{Virtual: a})
	if err := d.s.Apply(0, vxswitch.Add{Virtual: b}); err == nil {
		t.Error("two switches claim VLAN 7")
	}
	b.Claims = []vxswitch.Claim{{By: vxswitch.ByVLAN, Port: 1, Value: 7}}
	d.apply(0, vxswitch.Add{Virtual: b})
}

// TestForwardingAllocatesNothing once addresses are known.
func TestForwardingAllocatesNothing(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 2))
	v := member("a", 2, sched.DRR{})
	v.Lookup, v.Claims = lookup.NewLearning(2, 0, 0), []vxswitch.Claim{{By: vxswitch.ByPort, Port: 0}, {By: vxswitch.ByPort, Port: 1}}
	d.apply(0, vxswitch.Add{Virtual: v})
	headers := [2]vxswitch.Header{{Src: vxswitch.MAC{2}, Dst: vxswitch.MAC{4}}, {Src: vxswitch.MAC{4}, Dst: vxswitch.MAC{2}}}
	var now vxswitch.Time
	n := testing.AllocsPerRun(1000, func() {
		for port := range headers {
			now += 1e6
			d.s.Arrive(now, port, &headers[port], vxswitch.Packet{Size: 100})
			d.s.Depart(now)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for two frames", n)
	}
}
