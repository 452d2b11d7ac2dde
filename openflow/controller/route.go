package controller

import (
	"slices"
	"time"

	"sublet/openflow/of13"
)

// Bounds of paths.
const (
	pathPriority = 100
	pathIdle     = 60 // seconds; of the entries of a path
	mostPaths    = 65536
	mostPending  = 1024 // paths that are not proven
	pathTries    = 10
	pathRetry    = time.Second
)

// pair is whose packets take a path: all from one station to another, or those of them
// that come in at a port of an active virtual router and meet none of its routes.
type pair struct {
	from, to uint64
	router   uint64 // cookie of the router; 0: all
	at       place
}

// hop is a switch of a path.
type hop struct {
	dpid    uint64
	in, out uint32
}

// path is the entries for a pair.
type path struct {
	pair    pair
	hops    []hop
	cookie  uint64
	waiting int // switches that have not shown their entry
	failed  time.Time
}

// tree is, by switch, the port towards one switch.
type tree map[uint64]uint32

// towards is the cheapest ways to a switch, as long as links are what they are.
func (n *Network) towards(dpid uint64) tree {
	if n.treesOf != n.version {
		n.trees, n.treesOf = make(map[uint64]tree), n.version
	}
	if t, ok := n.trees[dpid]; ok {
		return t
	}
	t := n.cheapest(dpid)
	n.trees[dpid] = t
	return t
}

// route is the hops between two ports; nil where there are none.
func (n *Network) route(from, to place) []hop {
	t := n.towards(to.dpid)
	if _, ok := t[from.dpid]; !ok || n.switches[to.dpid] == nil {
		return nil
	}
	var hops []hop
	for at := from; ; {
		if at.dpid == to.dpid {
			return append(hops, hop{at.dpid, at.port, to.port})
		}
		out := t[at.dpid]
		hops = append(hops, hop{at.dpid, at.port, out})
		at, _ = n.peer(place{at.dpid, out}, n.switches[at.dpid].ports[out])
	}
}

// forward sends a packet of a station on, and makes the path for those that
// follow.
func (n *Network) forward(frame []byte, at place, p *port, from, to uint64, now time.Time) {
	h := n.hosts[to]
	if group(to) || h == nil {
		n.flood(frame, at, p, now)
		return
	}
	if h.at == at || n.switches[h.at.dpid] == nil {
		return
	}
	if n.ensure(pair{from: from, to: to}, now) {
		n.deliver(frame, h.at)
	}
}

// transit is a packet that met no entry at a link: an entry was lost there, or is
// not there yet. It is delivered if its path is known, and goes nowhere else.
func (n *Network) transit(frame []byte, from, to uint64, _ time.Time) {
	if h, p := n.hosts[to], n.paths[pair{from: from, to: to}]; h != nil && p != nil && p.failed.IsZero() {
		n.deliver(frame, h.at)
	}
}

func (n *Network) deliver(frame []byte, to place) {
	if m := n.switches[to.dpid]; m != nil {
		m.s.Send(&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: []of13.Action{of13.Output(to.port)}, Data: frame})
	}
}

// flood delivers a packet at all ports that lead to stations, without going over
// links: it comes to no controller again. What one port may cause is bounded.
func (n *Network) flood(frame []byte, from place, p *port, now time.Time) {
	if !p.mayFlood(now) {
		return
	}
	for dpid := range n.towards(from.dpid) {
		n.switches[dpid].floodPorts(frame, from, nil, now)
	}
}

// mayFlood bounds what one port may cause.
func (p *port) mayFlood(now time.Time) bool {
	if fresh := int(now.Sub(p.refilled) / floodsEvery); fresh > 0 {
		p.tokens, p.refilled = min(p.tokens+fresh, floodsAtOnce), now
	}
	if p.tokens == 0 {
		return false
	}
	p.tokens--
	return true
}

// floodPorts delivers a packet at ports of a switch that lead to stations, but for the one
// it came from; of only these, if some are stated.
func (m *member) floodPorts(frame []byte, from place, only []uint32, now time.Time) {
	var out []of13.Action
	for number, q := range m.ports {
		if (place{m.s.DatapathID, number}) != from && q.up && m.edge(q, now) && (only == nil || slices.Contains(only, number)) {
			out = append(out, of13.Output(number))
		}
	}
	if len(out) > 0 {
		m.s.Send(&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: out, Data: frame})
	}
}

// ensure makes the path of a pair, if there is none. It says whether there is one
// then.
func (n *Network) ensure(k pair, now time.Time) bool {
	old := n.paths[k]
	if old != nil && old.failed.IsZero() {
		return true
	}
	if old != nil && now.Sub(old.failed) < pathRetry || len(n.paths) >= mostPaths || n.unproven >= mostPending {
		return false
	}
	n.make(k, now)
	return n.paths[k] != nil
}

// make makes the path of a pair anew, where stations and links are now: entries
// from the last switch to the first, so that no packet comes to a switch without
// one, and the former ones go when the new ones are shown.
func (n *Network) make(k pair, now time.Time) {
	old := n.paths[k]
	hops := n.hops(k)
	if hops == nil {
		n.drop(old)
		return
	}
	p := &path{pair: k, hops: hops, cookie: n.cookies.Next(), waiting: len(hops)}
	n.paths[k], n.byCookie[p.cookie] = p, p
	n.unproven++
	if k.router != 0 {
		n.routed[k.at.dpid]++
	}
	for _, h := range slices.Backward(hops) {
		n.switches[h.dpid].table.Install(p.cookie, []Entry{n.pathEntry(k, h)}, now, func(err error) { n.shown(p, old, err) })
	}
}

// hops are where a path goes as links and stations are now: all of its way, or the one
// switch of its router, which it leaves at a port of that; nil where there is none.
func (n *Network) hops(k pair) []hop {
	from, to := n.hosts[k.from], n.hosts[k.to]
	switch {
	case from == nil || to == nil:
		return nil
	case k.router == 0:
		return n.route(from.at, to.at)
	}
	m := n.switches[k.at.dpid]
	if m == nil || m.active[k.router] == nil {
		return nil
	}
	hops := n.route(k.at, to.at)
	if len(hops) == 0 || hops[0].out == k.at.port || !slices.Contains(m.active[k.router].Ports, hops[0].out) {
		return nil
	}
	return hops[:1]
}

func (n *Network) pathEntry(k pair, h hop) Entry {
	e := Entry{
		Priority: pathPriority, Idle: pathIdle,
		Match:        of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, uint64(h.in)), of13.Exact(of13.EthDst, k.to), of13.Exact(of13.EthSrc, k.from)}},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{outputFrom(h)}}},
	}
	if k.router == 0 {
		return e
	}
	e.Priority = routerPriority - 1
	for _, f := range n.switches[h.dpid].active[k.router].Match {
		if f.ID != of13.EthDst && f.ID != of13.EthSrc { // which the packet has
			e.Match = with(e.Match, f)
		}
	}
	return e
}

// outputFrom sends a packet back where it came from only if it is told so.
func outputFrom(h hop) of13.Action {
	if h.in == h.out {
		return of13.Output(of13.PortInPort)
	}
	return of13.Output(h.out)
}

// shown is one switch of a path: the path is there when all have shown theirs.
func (n *Network) shown(p, old *path, err error) {
	if n.byCookie[p.cookie] != p || !p.failed.IsZero() {
		return
	}
	if err != nil {
		n.log.Warn("a path is not made", "from", station48(p.pair.from), "to", station48(p.pair.to), "why", err)
		n.withdraw(p)
		n.withdraw(old)
		p.failed = time.Now()
		n.failures[p.pair]++
		return
	}
	if p.waiting--; p.waiting == 0 {
		delete(n.failures, p.pair)
		n.unproven--
		n.withdraw(old)
	}
}

// withdraw deletes the entries of a path.
func (n *Network) withdraw(p *path) {
	if p == nil {
		return
	}
	if n.byCookie[p.cookie] != p {
		return // it is already
	}
	delete(n.byCookie, p.cookie)
	if p.waiting > 0 {
		n.unproven--
	}
	if p.pair.router != 0 {
		n.routed[p.pair.at.dpid]--
	}
	for _, h := range p.hops {
		if m := n.switches[h.dpid]; m != nil {
			m.table.Remove(p.cookie)
		}
	}
}

// drop ends a path.
func (n *Network) drop(p *path) {
	if p == nil {
		return
	}
	n.withdraw(p)
	if n.paths[p.pair] == p {
		delete(n.paths, p.pair)
		delete(n.failures, p.pair)
	}
}

// retry makes paths that failed anew, some times; then only a packet does.
func (n *Network) retry(now time.Time) {
	for k, tries := range n.failures {
		p := n.paths[k]
		switch {
		case p == nil:
			delete(n.failures, k)
		case p.failed.IsZero() || now.Sub(p.failed) < pathRetry:
		case tries > pathTries:
			n.drop(p)
		default:
			n.make(p.pair, now)
		}
	}
}

// expired is a path whose packets have ended.
func (n *Network) expired(cookie uint64) { n.drop(n.byCookie[cookie]) }

// moved makes the paths of a station anew, or ends them.
func (n *Network) moved(a uint64, now time.Time) {
	for k, p := range n.paths {
		if k.from == a || k.to == a {
			n.make(p.pair, now)
		}
	}
}

// reroute makes paths anew after links have changed: those over links that are
// gone, and those that can be shorter.
func (n *Network) reroute(now time.Time) {
	if n.improved == n.version {
		return
	}
	n.improved = n.version
	for k, p := range n.paths {
		if !slices.Equal(n.hops(k), p.hops) {
			n.make(p.pair, now)
		}
	}
}
