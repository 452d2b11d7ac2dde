package lease

import (
	"time"

	"sublet/vnet"
)

// slower finds longer bounds of the links that found no path or, if that does
// not suffice, of all that have one: what the best paths without the bounds
// take.
func (s *search) slower(r vnet.Request) (vnet.Request, bool) {
	for _, named := range []map[string]bool{setOf(s.why.Links), bounded(r)} {
		if len(named) == 0 {
			continue
		}
		if longer, ok := s.stretch(r, named); ok {
			return longer, true
		}
	}
	return r, false
}

// bounded is the set of links with a latency bound.
func bounded(r vnet.Request) map[string]bool {
	bounded := make(map[string]bool)
	for _, l := range r.Union().Links {
		if l.Latency > 0 {
			bounded[l.Name] = true
		}
	}
	return bounded
}

func (s *search) stretch(r vnet.Request, named map[string]bool) (vnet.Request, bool) {
	free := rewrite(r)
	eachLink(&free, func(l *vnet.VirtualLink) {
		if named[l.Name] {
			l.Latency = 0
		}
	})
	mapping, ok := s.embed(free)
	if !ok {
		return r, false
	}
	engine, err := s.view.engine(s.view.sub)
	if err != nil {
		return r, false
	}
	longer := rewrite(r)
	eachLink(&longer, func(l *vnet.VirtualLink) {
		if named[l.Name] && l.Latency > 0 {
			l.Latency = max(l.Latency, engine.Latency(*l, mapping))
		}
	})
	changes, _ := latencyChanges(s.now, r, longer)
	return longer, len(changes) > 0 && s.fits(longer)
}

// latencyChanges names the bounds that differ, and the largest growth.
func latencyChanges(_ time.Time, asked, longer vnet.Request) (changes []vnet.Change, cost float64) {
	after := longer.Union().Links
	for i, l := range asked.Union().Links {
		if was, is := l.Latency, after[i].Latency; is > was {
			changes = append(changes, vnet.Change{
				What: "latency of " + l.Name, From: vnet.FormatDuration(was), To: vnet.FormatDuration(is),
			})
			cost = max(cost, float64(is-was)/float64(was))
		}
	}
	return changes, cost
}
