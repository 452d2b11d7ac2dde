package embed

import (
	"cmp"
	"slices"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/internal/splitmix"
	"sublet/vnet"
)

// Embed finds where request fits into what cal leaves of the embedder's substrate
// in every instant of window, which begins the request's stages, from opt.From on. It changes
// nothing: book the result's Bookings to keep it. The error is *Infeasible when
// no embedding was found, and another when the request is malformed.
//
// Among the embeddings it tries it takes the one that is best for the request's
// objective; by default the one of least cost: the sum over all links of their
// minima times the hops of their path, where a link without minima counts as
// 1 bit/s.
func (e *Embedder) Embed(cal *calendar.Calendar, request vnet.Request, window vnet.Window, opt Options) (vnet.Mapping, error) {
	if opt.effort().Over() {
		return vnet.Mapping{}, undecided()
	}
	if reasons, links := request.Overloaded(); len(reasons) > 0 {
		return vnet.Mapping{}, &Infeasible{Reasons: reasons, Links: links}
	}
	request, err := e.placedOut(request)
	if err != nil {
		return vnet.Mapping{}, err
	}
	outside, err := e.allOutside(cal, request, spansFrom(request, window, opt.From), opt.Present)
	if err != nil {
		return vnet.Mapping{}, err
	}
	m, err := e.embed(cal, request, window, opt)
	if err == nil {
		m, err = e.aroundCrowded(cal, request, window, opt, m)
	}
	m.Outside, m.VLANs, m.Joins = outside.Outside, outside.VLANs, outside.Joins
	return m, err
}

// embed is Embed without ways out.
func (e *Embedder) embed(cal *calendar.Calendar, request vnet.Request, window vnet.Window, opt Options) (vnet.Mapping, error) {
	if e.sub.Forwards == 0 { // else all hosts matter, not those of a region
		if m, ok := e.regional(cal, request, window, opt); ok {
			return m, nil
		}
	}
	p, err := problemOf(request, window)
	if err != nil {
		return vnet.Mapping{}, err
	}
	startFrom(p.spans, opt.From)
	left := residualOf(e.inventory(), cal, p.spans)
	opt.effort().Spend(2*p.size() + 4*len(left.amounts))
	t := e.totals(p, left, cal)
	exceeded := t.onHosts()
	if exceeded != nil && len(p.nodes)*len(e.sub.Hosts) > mostWorded {
		return vnet.Mapping{}, exceeded
	}
	s := newSearch(p, e.graph, left, request.Objective)
	s.effort = opt.effort()
	s.effort.Spend(2 * len(p.nodes) * len(e.sub.Hosts))
	d := diagnosis{search: s, cal: cal, sub: e.sub}
	if err := d.checkEachAlone(); err != nil {
		return vnet.Mapping{}, err
	}
	if exceeded != nil {
		return vnet.Mapping{}, exceeded
	}
	if err := cmp.Or(t.onLinks(), t.onMachine()); err != nil {
		return vnet.Mapping{}, err
	}
	s.useTables(&e.tables, e.shortestPaths())
	s.random = random{splitmix.Source(opt.Seed)}
	if !s.solve(opt.work(), max(1, opt.Patience)) {
		if m, ok := s.split(e.sub.Hosts); ok {
			return m, nil
		}
		return vnet.Mapping{}, d.explain(s.ended())
	}
	s.spent()
	return s.mapping(e.sub.Hosts), nil
}

// mostWorded bounds nodes times hosts, up to which a refusal of a network that
// exceeds the substrate looks for single nodes that no host takes: they say more.
const mostWorded = 1 << 18

// newSearch prepares a search with nothing placed.
func newSearch(p *problem, g *graph.Graph, left *residuals, of vnet.Objective) *search {
	s := &search{
		instance: instance{problem: p, graph: g},
		state:    state{residual: left, host: make([]int, len(p.nodes)), nodesAt: make([]int, len(left.sub.Hosts)), walks: make([][]graph.Arc, len(p.links))},
	}
	s.effort, s.reported = new(Effort), g.Steps()
	s.furthest.depth, s.costBound = -1, unlimited
	s.setPrices(of)
	s.groupEquivalent()
	for v := range p.nodes {
		s.host[v] = -1
		var hosts []int
		for h := range left.sub.Hosts {
			if s.eligible(v, h) && s.hasCapacity(v, h) && s.hasBandwidth(v, h) {
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
func ranks(left *residuals, hosts int) []int {
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
