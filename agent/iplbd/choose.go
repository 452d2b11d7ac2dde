package iplbd

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/fabric"
	"sublet/plan"
)

// Computed are the paths from a host's switch to all others, and over which
// links they go.
type Computed struct {
	Spreads []plan.Spread
	hops    map[netip.Prefix][][]hop // of a spread's paths
}

// hop is one direction of a link: from a router by its interface to another.
type hop struct{ from, by, to netip.Addr }

// Compute are the paths from a host's switch to all others: for each the
// shortest ones, with the parts of flows that load the fabric least, each with
// the fewest relays that pin it, proven hop by hop against how the switches
// forward. A path that cannot be pinned with the addresses there are, or by few
// enough headers, is left out. One that was there before keeps its relays if they
// still pin it and no fewer do: its flows stay where they are.
func Compute(db Database, c Choice, before Computed) (Computed, error) {
	f, err := newFabric(db)
	if err != nil {
		return Computed{}, err
	}
	if f.own < 0 || len(f.graph.Leaving(f.own)) == 0 {
		return Computed{}, fmt.Errorf("router %s has no link to the fabric: links must be point-to-point in its routing protocol", db.Self)
	}
	all := Computed{hops: make(map[netip.Prefix][][]hop)}
	f.before = before.byPrefix()
	counts := f.advertisers()
	if !c.Even {
		f.prices = f.graph.Prices(f.hosts)
	}
	for to := range f.ids {
		if to == f.own || !f.address[to].IsValid() {
			continue
		}
		if s, hops := f.spread(to, c, counts); len(s.Paths) > 0 {
			all.Spreads = append(all.Spreads, s)
			all.hops[s.Prefix] = hops
		}
	}
	return all, nil
}

// chosenPath is a path that was computed before, with its hops.
type chosenPath struct {
	plan.RelayPath
	hops []hop
}

func (c Computed) byPrefix() map[netip.Prefix][]chosenPath {
	all := make(map[netip.Prefix][]chosenPath, len(c.Spreads))
	for _, s := range c.Spreads {
		for i, p := range s.Paths {
			all[s.Prefix] = append(all[s.Prefix], chosenPath{p, c.hops[s.Prefix][i]})
		}
	}
	return all
}

// Without is what is left of paths that were computed before: those all of
// whose links are still there.
func (c Computed) Without(db Database) (left Computed, lost bool) {
	links := make(map[hop]bool)
	for _, r := range db.Routers {
		for _, l := range twoWay(db, r) {
			links[hop{r.ID, l.Address, l.Neighbour}] = true
		}
	}
	left.hops = make(map[netip.Prefix][][]hop)
	for _, s := range c.Spreads {
		kept := s
		kept.Paths = nil
		for i, p := range s.Paths {
			if intact(c.hops[s.Prefix][i], links) {
				kept.Paths = append(kept.Paths, p)
				left.hops[s.Prefix] = append(left.hops[s.Prefix], c.hops[s.Prefix][i])
			}
		}
		lost = lost || len(kept.Paths) < len(s.Paths)
		if len(kept.Paths) > 0 {
			left.Spreads = append(left.Spreads, kept)
		}
	}
	return left, lost
}

func intact(hops []hop, links map[hop]bool) bool {
	return !slices.ContainsFunc(hops, func(h hop) bool { return !links[h] })
}

// hops of a path.
func (f *topology) hops(p fabric.Path) []hop {
	hops := make([]hop, len(p.Links))
	for i, link := range p.Links {
		hops[i] = hop{f.ids[p.Nodes[i]], f.ends[[2]int{link, p.Nodes[i]}], f.ids[p.Nodes[i+1]]}
	}
	return hops
}

// advertisers counts the switches that say a prefix is behind them: the links
// between switches are behind two.
func (f *topology) advertisers() map[netip.Prefix]int {
	counts := make(map[netip.Prefix]int)
	for _, prefixes := range f.behind {
		for _, p := range unique(prefixes) {
			counts[p]++
		}
	}
	return counts
}

func unique(prefixes []netip.Prefix) []netip.Prefix {
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	return slices.Compact(sorted)
}

// spread is the paths to one switch. Its name is the switch's own address,
// which stays when prefixes behind it come and go.
func (f *topology) spread(to int, c Choice, counts map[netip.Prefix]int) (plan.Spread, [][]hop) {
	s := plan.Spread{Prefix: netip.PrefixFrom(f.address[to], 32), Mode: c.Mode, By: c.By}
	for _, p := range unique(f.behind[to]) {
		if counts[p] == 1 && p != s.Prefix {
			s.Also = append(s.Also, p)
		}
	}
	shortest, hops, taken := 0, [][]hop(nil), []fabric.Path(nil)
	for _, path := range f.graph.Shortest(f.own, to, c.Paths) {
		if shortest == 0 {
			shortest = path.Cost
		}
		if c.Stretch > 0 && float64(path.Cost) > c.Stretch*float64(shortest) {
			break
		}
		over := f.hops(path)
		p, ok := f.pinned(path)
		if i := slices.IndexFunc(f.before[s.Prefix], func(k chosenPath) bool { return slices.Equal(k.hops, over) }); ok && i >= 0 {
			p = f.keep(path, f.before[s.Prefix][i].RelayPath, p)
		}
		if ok && !slices.ContainsFunc(s.Paths, func(q plan.RelayPath) bool { return slices.Equal(q.Relays, p.Relays) }) {
			s.Paths = append(s.Paths, p)
			hops, taken = append(hops, over), append(taken, path)
		}
	}
	if f.prices != nil {
		for i, w := range f.graph.Weights(taken, f.prices) {
			s.Paths[i].Weight = w
		}
	}
	return s, hops
}

// maxRelays of a path, as the table has it.
const maxRelays = 8

// pinned is a path as relays, there and back.
func (f *topology) pinned(p fabric.Path) (plan.RelayPath, bool) {
	list := f.graph.Pin(p)
	if len(list) > maxRelays || f.graph.Follow(p, list) != nil {
		return plan.RelayPath{}, false
	}
	relays, ok := f.addresses(list)
	if !ok {
		return plan.RelayPath{}, false
	}
	out := plan.RelayPath{Relays: relays, Turn: f.address[p.Nodes[len(p.Nodes)-1]], Back: []netip.Addr{}}
	back := reversed(p)
	if list := f.graph.Pin(back); f.graph.Follow(back, list) == nil {
		if relays, ok := f.addresses(list); ok {
			out.Back = relays
		}
	}
	return out, true
}

// keep is a path with its relays of before, there and back, where these still
// pin it and are no more than the new ones.
func (f *topology) keep(p fabric.Path, was, now plan.RelayPath) plan.RelayPath {
	if len(was.Relays) <= len(now.Relays) && f.pins(p, was.Relays) {
		now.Relays = was.Relays
	}
	if len(was.Back) <= len(now.Back) && f.pins(reversed(p), was.Back) {
		now.Back = was.Back
	}
	return now
}

// pins says whether relays pin a path.
func (f *topology) pins(p fabric.Path, relays []netip.Addr) bool {
	list := make(fabric.List, len(relays))
	for i, address := range relays {
		r, there := f.relay[address]
		if !there {
			return false
		}
		list[i] = r
	}
	return f.graph.Follow(p, list) == nil
}

// addresses of a list's relays; false: a switch has none.
func (f *topology) addresses(list fabric.List) ([]netip.Addr, bool) {
	relays := make([]netip.Addr, len(list))
	for i, r := range list {
		relays[i] = f.address[r.Node]
		if r.Link != fabric.None {
			relays[i] = f.ends[[2]int{r.Link, r.Node}]
		}
		if !relays[i].IsValid() {
			return nil, false
		}
	}
	return relays, true
}

func reversed(p fabric.Path) fabric.Path {
	back := fabric.Path{Nodes: slices.Clone(p.Nodes), Links: slices.Clone(p.Links)}
	slices.Reverse(back.Nodes)
	slices.Reverse(back.Links)
	return back
}
