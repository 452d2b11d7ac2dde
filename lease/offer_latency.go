package lease

import (
	"time"

	"sublet/vnet"
)

// longerLatency looks for longer bounds of the links that found no path, then
// of all that have one: what the best paths without the bounds take.
func (s *search) longerLatency() {
	for _, named := range []map[string]bool{setOf(s.why.Links), s.bounded()} {
		if len(named) > 0 && s.stretch(named) {
			return
		}
	}
}

// bounded is the set of links with a latency bound.
func (s *search) bounded() map[string]bool {
	bounded := make(map[string]bool)
	for _, l := range s.asked.Union().Links {
		if l.Latency > 0 {
			bounded[l.Name] = true
		}
	}
	return bounded
}

func (s *search) stretch(named map[string]bool) bool {
	free := rewrite(s.asked)
	eachLink(&free, func(l *vnet.VirtualLink) {
		if named[l.Name] {
			l.Latency = 0
		}
	})
	mapping, ok := s.embed(free)
	if !ok {
		return false
	}
	longer := rewrite(s.asked)
	eachLink(&longer, func(l *vnet.VirtualLink) {
		if named[l.Name] && l.Latency > 0 {
			l.Latency = max(l.Latency, s.latency(mapping, *l))
		}
	})
	changes, cost := latencyChanges(s.asked, longer)
	if len(changes) == 0 || s.tooDear(cost) || !s.fits(longer) {
		return false
	}
	s.take(offer{longer, changes, cost})
	return true
}

// latency of the path that carries a link.
func (s *search) latency(m vnet.Mapping, l vnet.VirtualLink) time.Duration {
	hops, err := s.book.sub.Walk(m.Nodes[l.Ends[0]], m.Links[l.Name])
	if err != nil {
		return vnet.MaxLatency
	}
	sum := time.Duration(0)
	for _, hop := range hops {
		sum += hop.Link.Latency
	}
	return sum
}

// latencyChanges names the bounds that differ, and the largest growth.
func latencyChanges(asked, longer vnet.Request) (changes []vnet.Change, cost float64) {
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
