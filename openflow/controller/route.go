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

// pair is whose packets take a path.
type pair struct{ from, to uint64 }

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

// towards is the shortest ways to a switch, by breadth-first search: of two that
// are as short, the one by the switch and port with the lower numbers.
func (n *Network) towards(dpid uint64) tree {
	if n.treesOf != n.version {
		n.trees, n.treesOf = make(map[uint64]tree), n.version
	}
	if t, ok := n.trees[dpid]; ok {
		return t
	}
	t := tree{dpid: 0}
	for queue := []uint64{dpid}; len(queue) > 0; queue = queue[1:] {
		m := n.switches[queue[0]]
		if m == nil {
			continue
		}
		for _, number := range m.sortedPorts() {
			other, ok := n.peer(place{queue[0], number}, m.ports[number])
			if _, reached := t[other.dpid]; ok && !reached {
				t[other.dpid] = other.port
				queue = append(queue, other.dpid)
			}
		}
	}
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
	if n.ensure(pair{from, to}, now) {
		n.deliver(frame, h.at)
	}
}

// transit is a packet that met no entry at a link: an entry was lost there, or is
// not there yet. It is delivered if its path is known, and goes nowhere else.
func (n *Network) transit(frame []byte, from, to uint64, _ time.Time) {
	if h, p := n.hosts[to], n.paths[pair{from, to}]; h != nil && p != nil && p.failed.IsZero() {
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
	if fresh := int(now.Sub(p.refilled) / floodsEvery); fresh > 0 {
		p.tokens, p.refilled = min(p.tokens+fresh, floodsAtOnce), now
	}
	if p.tokens == 0 {
		return
	}
	p.tokens--
	for dpid := range n.towards(from.dpid) {
		m := n.switches[dpid]
		var out []of13.Action
		for number, q := range m.ports {
			if (place{dpid, number}) != from && q.up && m.edge(q, now) {
				out = append(out, of13.Output(number))
			}
		}
		if len(out) > 0 {
			m.s.Send(&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: out, Data: frame})
		}
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
	from, to := n.hosts[k.from], n.hosts[k.to]
	if from == nil || to == nil {
		n.drop(old)
		return
	}
	hops := n.route(from.at, to.at)
	if hops == nil {
		n.drop(old)
		return
	}
	p := &path{pair: k, hops: hops, cookie: n.cookies.Next(), waiting: len(hops)}
	n.paths[k], n.byCookie[p.cookie] = p, p
	n.unproven++
	for _, h := range slices.Backward(hops) {
		n.switches[h.dpid].table.Install(p.cookie, []Entry{pathEntry(k, h)}, now, func(err error) { n.shown(p, old, err) })
	}
}

func pathEntry(k pair, h hop) Entry {
	return Entry{
		Priority: pathPriority, Idle: pathIdle,
		Match:        of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, uint64(h.in)), of13.Exact(of13.EthDst, k.to), of13.Exact(of13.EthSrc, k.from)}},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{outputFrom(h)}}},
	}
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
			n.again(p, now)
		}
	}
}

// expired is a path whose packets have ended.
func (n *Network) expired(cookie uint64) { n.drop(n.byCookie[cookie]) }

// moved makes the paths of a station anew, or ends them.
func (n *Network) moved(a uint64, now time.Time) {
	for k, p := range n.paths {
		if k.from == a || k.to == a {
			n.again(p, now)
		}
	}
}

func (n *Network) again(p *path, now time.Time) {
	if n.hosts[p.pair.from] == nil || n.hosts[p.pair.to] == nil {
		n.drop(p)
		return
	}
	n.make(p.pair, now)
}

// reroute makes paths anew after links have changed: those over links that are
// gone, and those that can be shorter.
func (n *Network) reroute(now time.Time) {
	if n.improved == n.version {
		return
	}
	n.improved = n.version
	for _, p := range n.paths {
		from, to := n.hosts[p.pair.from], n.hosts[p.pair.to]
		if from == nil || to == nil {
			n.drop(p)
			continue
		}
		if hops := n.route(from.at, to.at); !slices.Equal(hops, p.hops) {
			n.again(p, now)
		}
	}
}
