package lease

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// Random substrates and requests, small and tight, so that they collide.

func drawSubstrate(t *rapid.T) vnet.Substrate {
	var sub vnet.Substrate
	hosts := rapid.IntRange(1, 4).Draw(t, "hosts")
	for i := range hosts {
		describe(&sub, []string{"host", fmt.Sprintf("h%d", i), rapid.SampledFrom([]string{"lyon", "paris"}).Draw(t, "site")})
	}
	names := make([]string, 0, hosts+2)
	for _, h := range sub.Hosts {
		names = append(names, string(h.Name))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "switches") {
		describe(&sub, []string{"switch", fmt.Sprintf("s%d", i)})
		names = append(names, fmt.Sprintf("s%d", i))
	}
	if rapid.Bool().Draw(t, "way out") {
		sub.NAT = []vnet.NAT{{
			Name: "out", Host: sub.Hosts[0].Name, Interface: "wan", Capacity: 300 * vnet.Mbit, Via: netip.MustParseAddr("192.0.2.1"),
			Pool: vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.11")},
		}}
	}
	if rapid.Bool().Draw(t, "exit") {
		sub.Exits = []vnet.Exit{{Name: "lan", Host: sub.Hosts[0].Name, Interface: "lan", Capacity: 300 * vnet.Mbit, VLANs: vnet.VLANRange{First: 100, Last: 101}}}
	}
	for i, a := range names {
		for _, b := range names[i+1:] {
			if rapid.IntRange(0, 2).Draw(t, "linked") > 0 {
				capacity := rapid.SampledFrom([]string{"100", "1000", "2000"}).Draw(t, "capacity")
				latency := rapid.SampledFrom([]string{"latency=1ms", "latency=20ms"}).Draw(t, "latency")
				share := rapid.SampledFrom([]string{"share=100", "share=20"}).Draw(t, "share")
				describe(&sub, []string{"link", a, b, capacity, latency, share})
			}
		}
	}
	return sub
}

func drawRequest(t *rapid.T, now time.Time) vnet.Request {
	r := vnet.Request{
		Tenant:  rapid.SampledFrom([]vnet.TenantID{"alice", "bob"}).Draw(t, "tenant"),
		Network: rapid.SampledFrom([]vnet.VNetID{"n1", "n2", "n3"}).Draw(t, "network"),
		For:     rapid.SampledFrom([]time.Duration{0, time.Hour, 2 * time.Hour}).Draw(t, "for"),
	}
	if start := rapid.SampledFrom([]time.Duration{-1, -1, 0, 30 * time.Minute, time.Hour}).Draw(t, "start"); start >= 0 {
		r.Start = now.Add(start)
	}
	if slack := rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Minute, 2 * time.Hour}).Draw(t, "slack"); slack > 0 {
		r.Before = later(r.Start, now).Add(slack)
	}
	r.Movable = rapid.Bool().Draw(t, "movable")
	if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
		r.Negotiable = rapid.Permutation(vnet.Axes).Draw(t, "negotiable")[:rapid.IntRange(1, 2).Draw(t, "axes")]
	}
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	for i := range nodes {
		r.Nodes = append(r.Nodes, drawNode(t, fmt.Sprintf("v%d", i)))
	}
	for i := range nodes - 1 {
		r.Links = append(r.Links, drawLink(t, i, i+1))
	}
	if rapid.IntRange(0, 2).Draw(t, "goes out") == 0 {
		r.Routers = append(r.Routers, vnet.VirtualNode{Name: "w", NAT: "out"})
		r.Links = append(r.Links, vnet.VirtualLink{Name: "out", Ends: [2]string{"v0", "w"}, Bandwidth: drawBandwidths(t)})
	}
	if rapid.IntRange(0, 2).Draw(t, "has access") == 0 {
		r.Switches = append(r.Switches, vnet.VirtualSwitch{Name: "x", Access: "lan", VLAN: rapid.SampledFrom([]uint16{0, 0, 101}).Draw(t, "vlan")})
		r.Links = append(r.Links, vnet.VirtualLink{Name: "access", Ends: [2]string{"v0", "x"}, Bandwidth: drawBandwidths(t)})
	}
	drawStages(t, &r)
	return r
}

// diamond joins C and G by D and by F, which may be switches.
func diamond(t *rapid.T) vnet.Substrate {
	var sub vnet.Substrate
	middle := rapid.SampledFrom([]string{"host", "switch"}).Draw(t, "middle")
	for _, n := range []string{"host C", "host G", middle + " D", middle + " F"} {
		describe(&sub, strings.Fields(n))
	}
	for _, ends := range []string{"C D", "D G", "C F", "F G"} {
		describe(&sub, append(append([]string{"link"}, strings.Fields(ends)...), "1000"))
	}
	return sub
}

// drawMovable draws a network of one link on the diamond.
func drawMovable(t *rapid.T, _ time.Time) vnet.Request {
	ends := rapid.SampledFrom([][2]vnet.HostID{{"C", "G"}, {"C", "G"}, {"C", "D"}, {"D", "G"}, {"C", ""}}).Draw(t, "ends")
	low := vnet.Rate(rapid.SampledFrom([]int64{100, 300, 500, 800}).Draw(t, "min")) * vnet.Mbit
	band := vnet.Bandwidth{Min: low, Max: low + vnet.Rate(rapid.SampledFrom([]int64{0, 200, 900}).Draw(t, "more"))*vnet.Mbit}
	return vnet.Request{
		Tenant: "alice", Network: rapid.SampledFrom([]vnet.VNetID{"n1", "n2", "n3", "n4"}).Draw(t, "network"), Movable: true,
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "x", Host: ends[0]}, {Name: "y", Host: ends[1]}},
			Links: []vnet.VirtualLink{{Name: "l", Ends: [2]string{"x", "y"}, Bandwidth: [2]vnet.Bandwidth{band, band}}},
		},
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func drawNode(t *rapid.T, name string) vnet.VirtualNode {
	setup := vnet.Setup{}
	if rapid.IntRange(0, 3).Draw(t, "set up") == 0 {
		setup = vnet.Setup{Run: []vnet.Program{{Cmd: []string{"true"}}}, Env: map[string]string{"A": "b"}}
	}
	return vnet.VirtualNode{
		Setup:     setup,
		Name:      name,
		CPU:       rapid.SampledFrom([]vnet.CPU{0, 500, 3000}).Draw(t, "cpu"),
		Site:      rapid.SampledFrom([]string{"", "", "", "lyon", "rome"}).Draw(t, "site"),
		Host:      rapid.SampledFrom([]vnet.HostID{"", "h0", "h1", "h2"}).Draw(t, "host"),
		Exclusive: rapid.IntRange(0, 9).Draw(t, "exclusive") == 0,
	}
}

func drawLink(t *rapid.T, a, b int) vnet.VirtualLink {
	var addresses vnet.LinkAddresses
	if rapid.IntRange(0, 3).Draw(t, "addressed") == 0 {
		addresses[rapid.IntRange(0, 1).Draw(t, "end")] = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(a), 7}), 28)}
	}
	return vnet.VirtualLink{
		Addresses: addresses,
		Impair:    drawImpairments(t),
		Down:      rapid.IntRange(0, 9).Draw(t, "down") == 0,
		Name:      fmt.Sprintf("l%d", a),
		Ends:      [2]string{fmt.Sprintf("v%d", a), fmt.Sprintf("v%d", b)},
		Bandwidth: drawBandwidths(t),
		Latency:   rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Millisecond, 25 * time.Millisecond}).Draw(t, "bound"),
	}
}

func drawImpairments(t *rapid.T) [2]vnet.Impairment {
	slow := vnet.Impairment{Delay: 20 * time.Millisecond}
	return rapid.SampledFrom([][2]vnet.Impairment{{}, {}, {slow, slow}, {{}, {Loss: vnet.WholeShare}}}).Draw(t, "impaired")
}

func drawBandwidths(t *rapid.T) [2]vnet.Bandwidth {
	both := [2]vnet.Bandwidth{drawBandwidth(t), {}}
	both[vnet.Reverse] = both[vnet.Forward]
	if rapid.Bool().Draw(t, "asymmetric") {
		both[vnet.Reverse] = drawBandwidth(t)
	}
	return both
}

func drawBandwidth(t *rapid.T) vnet.Bandwidth {
	low := vnet.Rate(rapid.SampledFrom([]int64{0, 30, 100, 333, 700, 1500}).Draw(t, "min")) * vnet.Mbit
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return vnet.Static(low)
	case 1:
		return vnet.Bandwidth{Min: low, Max: vnet.Unbounded}
	}
	return vnet.Bandwidth{Min: low, Max: low + 200*vnet.Mbit}
}

// drawStages may add a stage with other rates and one that takes a node away.
func drawStages(t *rapid.T, r *vnet.Request) {
	if len(r.Links) == 0 {
		return
	}
	if rapid.Bool().Draw(t, "rates change") {
		r.Stages = append(r.Stages, vnet.Stage{
			Name: "rates", After: 20 * time.Minute, Links: map[string][2]vnet.Bandwidth{"l0": drawBandwidths(t)},
			Impair: map[string][2]vnet.Impairment{"l0": drawImpairments(t)}, Down: map[string]bool{"l0": rapid.Bool().Draw(t, "fails")},
		})
	}
	if rapid.Bool().Draw(t, "node goes") {
		r.Stages = append(r.Stages, vnet.Stage{Name: "goes", After: 40 * time.Minute, Remove: []string{"v0"}})
	} else if rapid.Bool().Draw(t, "rates change again") {
		r.Stages = append(r.Stages, vnet.Stage{Name: "again", After: 40 * time.Minute, Links: map[string][2]vnet.Bandwidth{"l0": drawBandwidths(t)}})
	}
	for i := range r.Stages {
		if rapid.Bool().Draw(t, "on command") {
			r.Stages[i].OnCommand, r.Stages[i].After = true, 0
		}
	}
}

// drawChange takes a link or a host away, or changes a capacity.
func drawChange(t *rapid.T, sub vnet.Substrate) vnet.Substrate {
	sub.Hosts, sub.Links = slices.Clone(sub.Hosts), slices.Clone(sub.Links)
	if len(sub.Hosts) > 1 && rapid.Bool().Draw(t, "host goes") {
		gone := rapid.SampledFrom(sub.Hosts).Draw(t, "gone").Name
		sub.Hosts = slices.DeleteFunc(sub.Hosts, func(h vnet.SubstrateNode) bool { return h.Name == gone })
		sub.NAT = slices.DeleteFunc(slices.Clone(sub.NAT), func(n vnet.NAT) bool { return n.Host == gone })
		sub.Exits = slices.DeleteFunc(slices.Clone(sub.Exits), func(x vnet.Exit) bool { return x.Host == gone })
		sub.Links = slices.DeleteFunc(sub.Links, func(l vnet.SubstrateLink) bool { return slices.Contains(l.Ends[:], string(gone)) })
		return sub
	}
	if len(sub.Links) > 0 {
		i := rapid.IntRange(0, len(sub.Links)-1).Draw(t, "link")
		sub.Links[i].Capacity = rapid.SampledFrom([]vnet.Rate{50, 500, 5000}).Draw(t, "capacity") * vnet.Mbit
		if rapid.Bool().Draw(t, "link goes") {
			sub.Links = slices.Delete(sub.Links, i, i+1)
		}
	}
	return sub
}
