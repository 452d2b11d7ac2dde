package lease

import (
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// offer is a request near the one refused that would be admitted.
type offer struct {
	request vnet.Request
	changes []vnet.Change
	// cost makes offers of different kinds comparable, in durations of the
	// window: how much longer moving the same volume takes at lower minima,
	// the delay of a start, the growth of a latency bound, the part of the
	// nodes that change site; a stated host given up counts as two.
	cost float64
}

// search looks for the cheapest offer along each axis.
type search struct {
	book  *Book
	now   time.Time
	asked vnet.Request
	why   *embed.Infeasible
	best  *offer
}

// reject turns a refusal into words, with the nearest offer there is. Every
// offer has been embedded: nothing is guessed.
func (b *Book) reject(now time.Time, asked vnet.Request, why *embed.Infeasible) *vnet.Rejection {
	s := search{book: b, now: now, asked: asked, why: why}
	s.lowerMinima()
	s.laterStart()
	s.otherPlaces()
	s.longerLatency()
	refusal := &vnet.Rejection{Reasons: why.Reasons}
	if s.best != nil {
		refusal.Offer, refusal.Changes = &s.best.request, s.best.changes
	}
	return refusal
}

// embed tries a request as Admit would.
func (s *search) embed(r vnet.Request) (vnet.Mapping, bool) {
	m, err := embed.Embed(s.book.sub, s.book.calendar, r, windowOf(s.now, r))
	return m, err == nil
}

func (s *search) fits(r vnet.Request) bool {
	_, ok := s.embed(r)
	return ok
}

// tooDear says whether an offer at this cost would not be taken anyway.
func (s *search) tooDear(cost float64) bool { return s.best != nil && cost >= s.best.cost }

// take keeps an offer if it is the cheapest so far.
func (s *search) take(o offer) {
	if !s.tooDear(o.cost) {
		s.best = &o
	}
}
