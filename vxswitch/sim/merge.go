package sim

import "time"

// merge joins sources by time. At equal times the source of the lower index
// comes first.
type merge struct {
	sources []source
	heads   []Arrival // of each source
	order   *timeline
	count   uint64
	keep    bool // the numbers of the source
}

func newMerge(sources []source) *merge {
	m := &merge{sources: sources, heads: make([]Arrival, len(sources)), order: newTimeline(len(sources))}
	for i := range sources {
		m.advance(i)
	}
	return m
}

// advance fetches the next arrival of a source.
func (m *merge) advance(i int) {
	at := never
	if m.sources[i].next(&m.heads[i]) {
		at = m.heads[i].At
	}
	m.order.set(i, at)
}

// peek is the time of the next arrival, or never.
func (m *merge) peek() time.Duration {
	_, at := m.order.earliest()
	return at
}

// next fills a with the earliest arrival and numbers it.
func (m *merge) next(a *Arrival) bool {
	i, at := m.order.earliest()
	if at == never {
		return false
	}
	*a = m.heads[i]
	if !m.keep {
		a.Sequence = m.count
		m.count++
	}
	m.advance(i)
	return true
}
