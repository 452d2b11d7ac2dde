package embed

import (
	"cmp"
	"slices"

	"sublet/embed/flow"
	"sublet/embed/graph"
	"sublet/vnet"
)

// Effort of splitting, counted so that it is the same on every machine.
const (
	splitAttempts = 6
	splitHosts    = 4    // tried for a node
	splitPrograms = 24   // linear programs solved
	mostSplit     = 2000 // links of a network that is split: a program takes the square of it in memory

	// mostDetour is how many hops a network's demand may take on average. A
	// dearer embedding pushes out more than it brings (docs/split-links.md). It
	// binds networks whose nodes go anywhere, but each to a host of its own.
	mostDetour = 1.05
)

// splitter looks for an embedding in which links that allow it are carried by
// several paths. It takes over where the search for single paths found
// nothing: nodes are placed one after another next to their neighbours, their
// links go the shortest single way that holds them and, once one of them has
// none, all links are spread anew by a linear program (embed/flow).
type splitter struct {
	*search
	shares   [][]flow.Share // by link; nil: an end is not placed; no walk: inside a host
	programs int            // that may still be solved
}

// split embeds with several paths for a link; false: no link may have them, or
// nothing was found.
func (s *search) split(hosts []vnet.SubstrateNode) (vnet.Mapping, bool) {
	if len(s.problem.links) > mostSplit || !slices.ContainsFunc(s.problem.links, func(l link) bool { return l.paths > 1 }) {
		return vnet.Mapping{}, false
	}
	s.clear()
	t := &splitter{search: s, shares: make([][]flow.Share, len(s.problem.links)), programs: splitPrograms}
	failed := make([]int, len(s.host))
	for attempt := range splitAttempts {
		v := t.place(s.orderOf(failed), attempt)
		if v < 0 && t.unconstrained() && t.detour() > mostDetour {
			t.clear()
			continue
		}
		if v < 0 {
			m := t.mapping(hosts)
			t.clear()
			return m, true
		}
		failed[v]++
		t.clear()
	}
	return vnet.Mapping{}, false
}

// unconstrained says that no node has a stated place, and no two share a host.
func (t *splitter) unconstrained() bool {
	placed := slices.ContainsFunc(t.problem.nodes, func(n node) bool {
		return slices.ContainsFunc(n.wants, func(w vnet.VirtualNode) bool { return w.Host != "" || w.Site != "" })
	})
	return t.problem.apart && !placed
}

// detour is the mean number of hops of what the links carry.
func (t *splitter) detour() float64 {
	hops, all := 0.0, 0.0
	for l, shares := range t.shares {
		w := t.problem.links[l].weight
		all += w
		for _, s := range shares {
			hops += w * float64(len(s.Walk)) * float64(s.Units) / vnet.ShareUnits
		}
	}
	return hops / max(all, 1)
}

// place puts the nodes of order, the first that has a choice on the one skip
// places from its best; the node that found no host, or -1.
func (t *splitter) place(order []int, skip int) int {
	for _, v := range order {
		list := t.hostOptions(v)
		if len(list) > 1 {
			skip %= len(list)
			list[0], list[skip] = list[skip], list[0]
			skip = 0
		}
		list = list[:min(len(list), splitHosts)]
		if !slices.ContainsFunc(list, func(c hostOption) bool { return t.placeNode(v, c.host) }) {
			return v
		}
	}
	return -1
}

// hostOption is a host for a node and what its links would cost there.
type hostOption struct {
	host int
	cost float64
}

// hostOptions lists hosts for a node, those first to which its links have the
// fewest hops over what has room for an equal part of them on each path.
func (t *splitter) hostOptions(v int) []hostOption {
	var list []hostOption
	for _, h := range t.candidates[v] {
		if t.fits(v, h) {
			list = append(list, hostOption{host: h})
		}
	}
	for _, l := range t.problem.nodes[v].links {
		if u := t.problem.links[l].far(v); t.host[u] >= 0 && len(list) > 0 {
			list = t.addLinkCost(list, l, u)
		}
	}
	slices.SortFunc(list, func(a, b hostOption) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(t.rank[a.host], t.rank[b.host]))
	})
	return list
}

// addLinkCost adds what a link from a placed node costs at the least.
func (t *splitter) addLinkCost(list []hostOption, l, placed int) []hostOption {
	v, from := &t.problem.links[l], t.host[placed]
	units := (vnet.ShareUnits + v.paths - 1) / v.paths
	reach := t.graph.Reach(from, graph.Query{To: -1, Bound: v.bound, Allow: func(a graph.Arc) bool { return t.holds(v, v.outward(placed), a, units) }})
	kept := list[:0]
	for _, c := range list {
		hops, ok := reach.Hops(c.host)
		if c.host == from {
			hops, ok = 0, t.carries(l, from)
		}
		if ok {
			kept = append(kept, hostOption{c.host, c.cost + v.weight*float64(hops)})
		}
	}
	return kept
}

// holds says whether an arc has room for so many units of a link.
func (t *splitter) holds(v *link, out vnet.Direction, a graph.Arc, units int) bool {
	share := vnet.PathShare{Units: units}
	return t.residual.fits(t.residual.arc(a), part(share, v.min[out])) && t.residual.fits(t.residual.arc(a.Opposite()), part(share, v.min[out.Opposite()]))
}

// placeNode puts a node on a host with its links to placed nodes; false, and
// nothing is changed, if they find no way.
func (t *splitter) placeNode(v, host int) bool {
	t.occupy(v, host)
	before := slices.Clone(t.shares)
	for _, l := range t.problem.nodes[v].links {
		if t.host[t.problem.links[l].far(v)] < 0 || t.single(l) {
			continue
		}
		if t.splitAll() {
			return true
		}
		t.replaceShares(before)
		t.vacate(v)
		return false
	}
	return true
}

// single gives a link the shortest path that holds all of it.
func (t *splitter) single(l int) bool {
	v := &t.problem.links[l]
	from, to := t.host[v.ends[0]], t.host[v.ends[1]]
	if from == to {
		if t.carries(l, from) {
			t.use(l, []flow.Share{{Units: vnet.ShareUnits}})
		}
		return t.shares[l] != nil
	}
	if walk, ok := t.shortestWalk(from, graph.Query{To: to, Bound: v.bound, Allow: func(a graph.Arc) bool {
		return t.holds(v, vnet.Forward, a, vnet.ShareUnits)
	}}); ok {
		t.use(l, []flow.Share{{Walk: walk, Units: vnet.ShareUnits}})
	}
	return t.shares[l] != nil
}

// splitAll routes all links between placed nodes anew; false: they do not fit,
// and none is routed.
func (t *splitter) splitAll() bool {
	if t.programs--; t.programs < 0 || t.ended() {
		return false
	}
	t.replaceShares(make([][]flow.Share, len(t.shares)))
	var links []flow.Link
	var index []int
	for l := range t.problem.links {
		v := &t.problem.links[l]
		from, to := t.host[v.ends[0]], t.host[v.ends[1]]
		switch {
		case from < 0 || to < 0:
		case from != to:
			links = append(links, flow.Link{From: from, To: to, Need: v.min, Cost: v.weight, Bound: v.bound, Spread: v.spread, Paths: v.paths})
			index = append(index, l)
		case !t.carries(l, from):
			return false
		default:
			t.use(l, []flow.Share{{Units: vnet.ShareUnits}})
		}
	}
	shares, ok := flow.Split(flow.Substrate{Graph: t.graph, Left: t.leftOf, Work: t.mayWork}, links)
	if !ok {
		return false
	}
	for i, l := range index {
		t.use(l, shares[i])
	}
	return true
}

// mayWork counts work on a linear program; false: the answer may take no more.
func (t *splitter) mayWork(units int) bool {
	t.effort.Spend(units)
	return !t.ended()
}

// leftOf is what is left of an arc, by span.
func (t *splitter) leftOf(a graph.Arc) []int64 {
	at := int(t.residual.arc(a)) * t.residual.spans
	return t.residual.amounts[at : at+t.residual.spans]
}

// replaceShares replaces how all links are carried.
func (t *splitter) replaceShares(shares [][]flow.Share) {
	for l := range t.shares {
		t.load(l, -1)
	}
	t.shares = shares
	for l := range t.shares {
		t.load(l, 1)
	}
}

// use carries a link that is not carried yet.
func (t *splitter) use(l int, shares []flow.Share) {
	t.shares[l] = shares
	t.load(l, 1)
}

// load takes or gives back what a link uses.
func (t *splitter) load(l int, sign int64) {
	v := &t.problem.links[l]
	for _, s := range t.shares[l] {
		for _, dir := range vnet.Directions {
			minima := part(vnet.PathShare{Units: s.Units}, v.min[dir])
			if len(s.Walk) == 0 {
				t.residual.take(t.residual.inside(t.host[v.ends[0]], dir), minima, sign)
			}
			for _, a := range s.Walk {
				t.residual.take(t.residual.arc(a^graph.Arc(dir)), minima, sign)
			}
		}
	}
}

// clear takes everything back.
func (t *splitter) clear() {
	t.replaceShares(make([][]flow.Share, len(t.shares)))
	for v, host := range t.host {
		if host >= 0 {
			t.vacate(v)
		}
	}
}

// mapping names the hosts and paths.
func (t *splitter) mapping(hosts []vnet.SubstrateNode) vnet.Mapping {
	m := vnet.Mapping{Nodes: make(map[string]vnet.HostID, len(t.host)), Links: make(map[string]vnet.Path, len(t.shares))}
	for v, h := range t.host {
		m.Nodes[t.problem.nodes[v].name] = hosts[h].Name
	}
	for l, shares := range t.shares {
		name := t.problem.links[l].name
		if len(shares) == 1 {
			m.Links[name] = t.graph.Path(shares[0].Walk)
			continue
		}
		if m.Splits == nil {
			m.Splits = make(map[string][]vnet.PathShare)
		}
		for _, s := range shares {
			m.Splits[name] = append(m.Splits[name], vnet.PathShare{Path: t.graph.Path(s.Walk), Units: s.Units})
		}
	}
	return m
}
