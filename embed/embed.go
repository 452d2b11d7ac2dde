package embed

import (
	"cmp"
	"slices"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/internal/splitmix"
	"sublet/vnet"
)

// Embed finds where request fits into what cal leaves of sub in every
// instant of window, which begins the request's stages. It changes nothing:
// book the result's Bookings to keep it. The error is *Infeasible when no
// embedding was found, and another when the request or substrate is malformed.
//
// Among the embeddings it tries it takes the one that is best for the request's
// objective; by default the one of least cost: the sum over all links of their
// minima times the hops of their path, where a link without minima counts as
// 1 bit/s. It spends DefaultBudget, see Options.
func Embed(sub vnet.Substrate, cal *calendar.Calendar, request vnet.Request, window vnet.Window) (vnet.Mapping, error) {
	e, err := New(sub)
	if err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, request, window, Options{})
}

// Embed is the package's Embed, on the engine's substrate.
func (e *Engine) Embed(cal *calendar.Calendar, request vnet.Request, window vnet.Window, opt Options) (vnet.Mapping, error) {
	if opt.effort().Over() {
		return vnet.Mapping{}, undecided()
	}
	if e.sub.Forwards == 0 { // else all hosts matter, not those of a region
		if m, ok := e.regional(cal, request, window, opt); ok {
			return m, nil
		}
	}
	p, err := problemOf(request, window)
	if err != nil {
		return vnet.Mapping{}, err
	}
	left := residual(e.inventory(), cal, p.spans)
	opt.effort().Spend(2*p.size() + 4*len(left.left))
	t := e.totals(p, left, cal)
	exceeded := t.onHosts()
	if exceeded != nil && len(p.nodes)*len(e.sub.Hosts) > mostWorded {
		return vnet.Mapping{}, exceeded
	}
	s := newSearch(p, e.graph, left, request.Objective)
	s.effort = opt.effort()
	s.effort.Spend(2 * len(p.nodes) * len(e.sub.Hosts))
	d := diagnosis{search: s, cal: cal, sub: e.sub}
	if err := d.alone(); err != nil {
		return vnet.Mapping{}, err
	}
	if exceeded != nil {
		return vnet.Mapping{}, exceeded
	}
	if err := cmp.Or(t.onLinks(), t.onMachine()); err != nil {
		return vnet.Mapping{}, err
	}
	s.work(&e.charts, e.working())
	s.random = random{splitmix.Source(opt.Seed)}
	if !s.solve(opt.work(), max(1, opt.Patience)) {
		if m, ok := s.split(e.sub.Hosts); ok {
			return m, nil
		}
		return vnet.Mapping{}, d.given(s.ended())
	}
	s.spent()
	return s.mapping(e.sub.Hosts), nil
}

// mostWorded is for how many nodes times hosts it is found out, of a network that
// exceeds what there is, whether one of its nodes alone does: that says more.
const mostWorded = 1 << 18

// newSearch prepares a search with nothing placed.
func newSearch(p *problem, g *graph.Graph, left *resources, of vnet.Objective) *search {
	s := &search{problem: p, graph: g, left: left, host: make([]int, len(p.nodes)), nodesAt: make([]int, len(left.sub.Hosts)), walks: make([][]graph.Arc, len(p.links))}
	s.effort, s.told = new(Effort), g.Steps()
	s.worst.depth, s.bound = -1, unlimited
	s.priced(of)
	s.pair()
	for v := range p.nodes {
		s.host[v] = -1
		var hosts []int
		for h := range left.sub.Hosts {
			if s.welcome(v, h) && s.has(v, h) && s.wide(v, h) {
				hosts = append(hosts, h)
			}
		}
		s.candidates = append(s.candidates, hosts)
		s.shortlists = append(s.shortlists, s.shortlist(hosts))
	}
	s.rank = ranks(left, len(left.sub.Hosts))
	return s
}

// ranks orders hosts by what is free on them: processor, then memory.
func ranks(left *resources, hosts int) []int {
	order, rank := make([]int, hosts), make([]int, hosts)
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := cmp.Compare(left.least(left.of(b, cpu)), left.least(left.of(a, cpu))); c != 0 {
			return c
		}
		return cmp.Compare(left.least(left.of(b, memory)), left.least(left.of(a, memory)))
	})
	for place, h := range order {
		rank[h] = place
	}
	return rank
}
