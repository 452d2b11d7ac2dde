package main

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/measure"
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/report"
	"sublet/server"
	"sublet/vnet"
)

const (
	// chainOverload is the UDP load of a chain, as a part of its rate.
	chainOverload = 1.2
	// chainBurst is what a slow chain lets through at once, in bytes (datapath/nsh). Queues
	// behind it give it back slowly, so that no warm-up is the end of it.
	chainBurst = 64 << 10
	// chainEffort is what is offered to a chain of best effort: it has to pass some.
	chainEffort = 10 * vnet.Mbit
	// chainTrials bounds how often chains are measured for want of a processor.
	chainTrials = 3
)

// ephemeral are the ports of which the kernel chooses those of probes (ip(7),
// ip_local_port_range).
var ephemeral = vnet.PortRange{First: 32768, Last: 60999}

// datagram is a packet as chains and firewalls see it.
type datagram struct {
	proto    vnet.IPProtocol
	src, dst netip.Addr
	port     uint16 // of its destination
	dscp     uint8
	vlan     uint16 // 0: no tag
}

// in says whether a set has the packet, whatever port it comes from.
func (d datagram) in(m vnet.Packets) bool {
	return (m.Protocol == "" || m.Protocol == d.proto) &&
		(!m.Src.IsValid() || m.Src.Contains(d.src)) && (!m.Dst.IsValid() || m.Dst.Contains(d.dst)) &&
		(m.DSCP == nil || *m.DSCP == d.dscp) && (m.VLAN == nil || *m.VLAN == d.vlan) && (m.DstPort == vnet.PortRange{} || m.DstPort.First <= d.port && d.port <= m.DstPort.Last)
}

// taking is what a chain takes; without a destination that is the address of its end.
func taking(l vnet.Lease, c vnet.Chain) vnet.Packets {
	m := c.Match
	if to := l.Addresses[c.To]; !m.Dst.IsValid() && to.IsValid() {
		m.Dst = netip.PrefixFrom(to, to.BitLen())
	}
	return m
}

// untaken are the targets that chains leave alone; of the others nothing can be
// measured.
func untaken(l vnet.Lease, targets []probe.Target) (rest []probe.Target, taken []vnet.LinkVerdict) {
	for _, t := range targets {
		by := takenBy(l, t)
		if by == "" {
			rest = append(rest, t)
			continue
		}
		taken = append(taken, vnet.LinkVerdict{
			Name: t.Link, From: t.From, To: t.To, Min: t.Min, Max: t.Max, Alloc: t.Alloc,
			OK: true, Outcome: vnet.NotMeasured, Why: notMeasuredFor + "chain " + by + " takes what would measure it",
		})
	}
	return rest, taken
}

// takenBy is the chain that takes what probes send over a link; "": none.
func takenBy(l vnet.Lease, t probe.Target) string {
	probed := func(p vnet.PortRange) bool {
		return p == vnet.PortRange{} || p.First <= ephemeral.Last && p.Last >= ephemeral.First
	}
	for _, c := range chainsOf(l) {
		m := taking(l, c)
		d := datagram{proto: m.Protocol, src: t.FromAddr, dst: t.ToAddr, port: m.DstPort.First}
		if c.From == t.From && m.Protocol != vnet.ProtocolICMP && probed(m.SrcPort) && probed(m.DstPort) && d.in(m) {
			return c.Name
		}
	}
	return ""
}

// chainsOf are the chains of a lease, and the ways back through them.
func chainsOf(l vnet.Lease) (list []vnet.Chain) {
	for _, c := range l.Chains() {
		if c.Paused {
			continue
		}
		list = append(list, c)
		if c.Returns() {
			list = append(list, l.Request.Back(c))
		}
	}
	return list
}

// chainWay is how a chain is measured.
type chainWay struct {
	chain  vnet.Chain
	proto  vnet.IPProtocol
	target probe.Target
	not    string // why nothing is measured; "": it is
}

// wayOf finds ports and addresses whose packets a chain takes.
func wayOf(l vnet.Lease, ports map[string][2]plan.Port, c vnet.Chain) chainWay {
	from, okFrom := chainPort(l, ports, c.From, c.To)
	to, okTo := chainPort(l, ports, c.To, c.From)
	m := taking(l, c)
	w := chainWay{chain: c, proto: vnet.ProtocolTCP, target: probe.Target{
		Link: c.Name, From: c.From, To: c.To, FromIf: from.Interface, ToIf: to.Interface,
		FromAddr: from.Address, ToAddr: l.Addresses[c.To], MTU: from.MTU, Min: c.Rate, Max: c.Rate, Alloc: c.Rate,
	}}
	if m.Protocol != vnet.ProtocolTCP && c.Rate > 0 || m.Protocol == vnet.ProtocolUDP {
		w.proto = vnet.ProtocolUDP
	}
	if c.Rate == 0 {
		w.target.Alloc = chainEffort
	}
	w.target.Translated = slices.ContainsFunc(c.Via, func(name string) bool {
		n, ok := l.Topology().Node(name)
		return ok && n.IsFunction() && n.Function.Kind == vnet.FunctionNAT
	})
	if w.target.ToAddr = addressIn(l, c.To, m.Dst); !w.target.ToAddr.IsValid() {
		w.not = "it takes nothing that goes to " + c.To + " itself"
		return w
	}
	if m.Is6() {
		w.target.FromAddr = addressIn(l, c.From, m.Src)
	}
	if m.DSCP != nil {
		w.target.DSCP = *m.DSCP
	}
	if m.VLAN != nil && *m.VLAN != 0 {
		w.target.VLAN = *m.VLAN
		w.target.MTU -= tagBytes // which the packet has within the link's frames
	}
	if m.Is6() || w.target.VLAN != 0 { // which sockets do not send
		w = w.framed()
		if m.DstPort == (vnet.PortRange{}) {
			m.DstPort = vnet.PortRange{First: discardPort, Last: discardPort}
		}
	}
	machines := machinesOf(l.Topology())
	port, ok := w.port(l, m)
	switch w.target.Port = port; {
	case machines[c.From] || machines[c.To] || !okFrom || !okTo:
		w.not = "what sends or receives is a machine, or one that joins"
	case m.Protocol == vnet.ProtocolICMP:
		w.not = "nothing measures by icmp"
	case m.SrcPort != vnet.PortRange{}:
		w.not = "its match states source ports"
	case !w.target.FromAddr.IsValid() || m.Src.IsValid() && !m.Src.Contains(w.target.FromAddr):
		w.not = "its match leaves out the address of " + c.From
	case !ok:
		w.not = "another chain takes all that it could be measured by, or its firewalls deny that"
	}
	return w
}

// discardPort is of a service that nobody runs any more (RFC 863): frames go there where
// a chain takes all ports.
const discardPort = 9

// tagBytes has a tag of IEEE 802.1Q.
const tagBytes = 4

// addressIn is the first address of a node that a prefix has, of IPv6 if none is stated;
// invalid: it has none.
func addressIn(l vnet.Lease, node string, in netip.Prefix) netip.Addr {
	for _, a := range l.AddressesOf(node) {
		if in.IsValid() && in.Contains(a) || !in.IsValid() && a.Is6() {
			return a
		}
	}
	return netip.Addr{}
}

// chainPort is that of a node by which packets to another one go, or come from it:
// on their common link, if there is one.
func chainPort(l vnet.Lease, ports map[string][2]plan.Port, node, other string) (plan.Port, bool) {
	for _, direct := range []bool{true, false} {
		for _, link := range l.Topology().Links {
			for end, name := range link.Ends {
				if link.Chain == "" && name == node && (!direct || link.Ends[1-end] == other) {
					return ports[link.Name][end], ports[link.Name][end].Address.Is4()
				}
			}
		}
	}
	return plan.Port{}, false
}

// port is the first that the chain takes, that none before it takes, and that no
// firewall denies; 0: any.
func (w chainWay) port(l vnet.Lease, m vnet.Packets) (uint16, bool) {
	first, last := m.DstPort.First, m.DstPort.Last
	for p := int(first); p <= int(last); p++ {
		d := datagram{w.proto, w.target.FromAddr, w.target.ToAddr, uint16(p), w.target.DSCP, w.target.VLAN}
		if !takenBefore(l, w.chain, d) && !denied(l, w.chain, d) {
			return d.port, true
		}
	}
	return 0, false
}

func takenBefore(l vnet.Lease, chain vnet.Chain, d datagram) bool {
	for _, c := range chainsOf(l) {
		if c.Name == chain.Name {
			break
		}
		if c.From == chain.From && d.in(taking(l, c)) {
			return true
		}
	}
	return false
}

// denied says whether a firewall of a chain drops a packet, or a classifier moves it to
// another chain.
func denied(l vnet.Lease, c vnet.Chain, d datagram) bool {
	for _, name := range c.Via {
		n, _ := l.Topology().Node(name)
		if n.Function == nil {
			continue
		}
		i := slices.IndexFunc(n.Function.Rules, func(r vnet.FunctionRule) bool { return d.in(r.Flow) })
		if i >= 0 && !n.Function.Rules[i].Allow && n.Function.Rules[i].Chain != c.Name {
			return true
		}
	}
	return false
}

// measureChains loads all chains of a lease and judges what passed.
func measureChains(ctx context.Context, job server.CheckJob, ports map[string][2]plan.Port) ([]vnet.ChainVerdict, error) {
	if len(job.Lease.Request.Chains) == 0 {
		return nil, nil
	}
	job.Progress("chains")
	before, err := passed(ctx, job)
	if err != nil {
		return nil, err
	}
	verdicts := make(map[string]vnet.ChainVerdict)
	for _, batch := range batches(job.Lease, ports) {
		if err := batch.measure(ctx, job, verdicts); err != nil {
			return nil, err
		}
	}
	after, err := passed(ctx, job)
	if err != nil {
		return nil, err
	}
	var list []vnet.ChainVerdict
	for _, view := range chainViews(job.Lease, since(after, before)) {
		v, measured := verdicts[view.Name]
		if !measured {
			continue // it is paused
		}
		v.Hops = []vnet.ChainHop{}
		for _, h := range view.Hops {
			v.Hops = append(v.Hops, vnet.ChainHop{Hop: h.Hop, Back: h.Back, Packets: h.Packets, Bytes: h.Bytes, Drops: h.Drops, Latency: h.Latency})
		}
		list = append(list, v)
	}
	return list, nil
}

// passed is what all hosts of a lease's nodes counted.
func passed(ctx context.Context, job server.CheckJob) (all []report.ChainHop, err error) {
	hosts := slices.Sorted(maps.Values(job.Lease.Mapping.Nodes))
	for _, host := range slices.Compact(hosts) {
		list, err := job.Chains(ctx, host)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// since is what hops counted after they were looked at before.
func since(after, before []report.ChainHop) []report.ChainHop {
	for i, a := range after {
		j := slices.IndexFunc(before, func(b report.ChainHop) bool {
			return a.Chain == b.Chain && a.Hop == b.Hop && a.Index == b.Index && a.Back == b.Back && a.Packets >= b.Packets && a.Bytes >= b.Bytes
		})
		if j < 0 {
			continue // made since
		}
		after[i] = a.Since(before[j])
	}
	return after
}

// chainBatch are chains that are measured at once, by one protocol.
type chainBatch []chainWay

// batches put ways together of which no two are received at one port of a node.
func batches(l vnet.Lease, ports map[string][2]plan.Port) (list []chainBatch) {
	for _, c := range l.Chains() {
		if c.Paused {
			continue
		}
		w := wayOf(l, ports, c)
		i := slices.IndexFunc(list, func(b chainBatch) bool { return b.takes(w) })
		if i < 0 {
			list, i = append(list, nil), len(list)
		}
		list[i] = append(list[i], w)
	}
	return list
}

func (b chainBatch) takes(w chainWay) bool {
	return b[0].proto == w.proto && (b[0].target.Frames == 0) == (w.target.Frames == 0) && !slices.ContainsFunc(b, func(o chainWay) bool {
		return o.target.To == w.target.To && o.target.Port == w.target.Port && w.target.Port != 0
	})
}

// measure loads the chains, and again those that a probe was too slow for.
func (b chainBatch) measure(ctx context.Context, job server.CheckJob, verdicts map[string]vnet.ChainVerdict) error {
	load, crowded := b.load(), make(map[string]bool)
	var framed chainBatch
	for range chainTrials {
		opt := probe.Options{Duration: job.Duration}
		var ways chainBatch
		for _, w := range b {
			v, known := verdicts[w.chain.Name]
			if crowded[w.chain.Name] {
				continue
			} else if w.not != "" {
				v = w.verdict(0, vnet.NotMeasured, notMeasuredFor+w.not)
				v.OK = true // nothing speaks against it
				verdicts[w.chain.Name] = v
			} else if !known || v.Outcome == vnet.NotMeasured {
				ways, opt.Targets = append(ways, w), append(opt.Targets, w.target)
			}
		}
		if len(ways) == 0 {
			break
		}
		flows, err := probe.Run(ctx, starter(job), opt, load)
		if flows == nil && err != nil {
			return err
		}
		for i, f := range flows {
			verdicts[ways[i].chain.Name] = ways[i].judge(f, load, opt.Duration)
			if f.Taken && ways[i].target.Frames == 0 {
				crowded[f.Link], framed = true, append(framed, ways[i].framed())
			}
		}
	}
	if len(framed) > 0 {
		return framed.measure(ctx, job, verdicts)
	}
	return nil
}

// load is what is put on the chains of a batch.
func (b chainBatch) load() probe.Load {
	if b[0].proto == vnet.ProtocolTCP && b[0].target.Frames == 0 {
		return probe.Load{TCP: true, Part: 1} // a slow chain's queue would hold more than a window
	}
	return probe.Load{Part: chainOverload}
}

// framed is a way that is measured by frames: a program of the tenant's has the port, or
// sockets do not send what the chain takes.
func (w chainWay) framed() chainWay {
	w.target.Frames = unix.IPPROTO_UDP
	if w.proto == vnet.ProtocolTCP {
		w.target.Frames = unix.IPPROTO_TCP
	}
	return w
}

// judge makes a verdict of what passed.
func (w chainWay) judge(f probe.Flow, load probe.Load, window time.Duration) vnet.ChainVerdict {
	if window == 0 {
		window = probe.DefaultDuration
	}
	v := vnet.LinkVerdict{Min: w.chain.Rate, Max: w.chain.Rate, Alloc: w.chain.Rate}
	if load.TCP {
		v.TCP = f.Rate
	} else {
		v.UDP = f.Rate
	}
	ok, why := measure.Judge(v, measure.Scope{TCP: load.TCP, UDP: !load.TCP, Window: window, Burst: chainBurst})
	switch {
	case f.Fault != "":
		return w.verdict(0, vnet.NotMeasured, notMeasuredFor+f.Fault)
	case ok:
		return w.verdict(f.Rate, vnet.Kept, why)
	case f.InDoubt(window):
		return w.verdict(f.Rate, vnet.NotMeasured, why+": a probe waited for a processor")
	}
	return w.verdict(f.Rate, vnet.Broken, why)
}

func (w chainWay) verdict(measured vnet.Rate, outcome vnet.Outcome, why string) vnet.ChainVerdict {
	return vnet.ChainVerdict{Name: w.chain.Name, Rate: w.chain.Rate, Measured: measured, OK: outcome == vnet.Kept, Outcome: outcome, Why: why}
}

// withChains says of a verdict what its chains add to it; some of its links may not
// have been measured for them.
func withChains(v *vnet.Verdict, taken bool) {
	if taken && v.Outcome == vnet.Kept {
		v.Outcome = vnet.NotMeasured
	}
	for _, c := range v.Chains {
		if v.Outcome == vnet.Kept || c.Outcome == vnet.Broken {
			v.Outcome = c.Outcome
		}
	}
	v.OK = v.Outcome == vnet.Kept
}
