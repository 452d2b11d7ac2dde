package ofload

import (
	"sublet/measure"
)

// conclude makes figures of what was counted.
func (g *generator) conclude() {
	r := &g.result
	r.Seconds = g.end.Sub(g.begin).Seconds()
	r.PerSecond = float64(r.Responses) / r.Seconds
	r.Latency = g.latency.figures()
	shares := make([]float64, 0, len(g.peers))
	r.Least = ^uint64(0)
	for _, p := range g.peers {
		for _, s := range p.slots {
			if s.live {
				r.Unanswered++
			}
		}
		if p == g.late {
			continue
		}
		shares = append(shares, float64(p.answered))
		r.Least, r.Most = min(r.Least, p.answered), max(r.Most, p.answered)
	}
	r.Jain = measure.Jain(shares)
	if g.config.Malformed {
		r.Malformed = &g.closed
	}
	if g.late != nil {
		r.Newcomer = g.newcomer()
	}
}

func (g *generator) newcomer() *Newcomer {
	p, n := g.late, &Newcomer{GreetedMS: -1, FirstMS: -1}
	if !p.greeted.IsZero() {
		n.GreetedMS = p.greeted.Sub(p.joined).Seconds() * 1e3
	}
	if p.first.IsZero() {
		return n
	}
	n.FirstMS = p.first.Sub(p.began).Seconds() * 1e3
	others := 0.0
	for _, other := range g.peers {
		if other != p {
			others += float64(other.since)
		}
	}
	if others > 0 {
		n.Share = float64(p.since) * float64(len(g.peers)-1) / others
	}
	return n
}
