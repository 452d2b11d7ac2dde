package calendar

import (
	"math"
	"sort"
	"time"

	"sublet/vnet"
)

// span is a window in nanoseconds since 1970; to is math.MaxInt64 when open.
type span struct{ from, to int64 }

func spanOf(w vnet.Window) span {
	s := span{from: nano(w.Start), to: math.MaxInt64}
	if !w.End.IsZero() {
		s.to = nano(w.End)
	}
	return s
}

// The instants whose distance from 1970 an int64 of nanoseconds can hold.
var earliest, latest = time.Unix(0, math.MinInt64+1), time.Unix(0, math.MaxInt64-1)

func nano(t time.Time) int64 {
	switch {
	case t.Before(earliest):
		return math.MinInt64 + 1 // one less is looked for too
	case t.After(latest):
		return math.MaxInt64 - 1
	}
	return t.UnixNano()
}

// change is an instant from which on another amount is booked, or the same by
// another number of bookings.
type change struct{ at, booked, holders int64 }

// profile is a step function of time: 0 before the first change, then each
// change's amount until the next. Neighbours differ, so equal bookings have
// equal profiles. A profile is never changed once made.
type profile []change

// after is the index of the first change later than t.
func (p profile) after(t int64) int {
	return sort.Search(len(p), func(i int) bool { return p[i].at > t })
}

// before is what is booked before change i.
func (p profile) before(i int) int64 { return p.state(i).booked }

// state is the change that holds before change i.
func (p profile) state(i int) change {
	if i == 0 {
		return change{}
	}
	return p[i-1]
}

// holders is how many bookings make up the largest amount in a span, at the
// first instant at which it is reached.
func (p profile) holders(s span) int64 {
	i := p.after(s.from)
	top := p.state(i)
	for ; i < len(p) && p[i].at < s.to; i++ {
		if p[i].booked > top.booked {
			top = p[i]
		}
	}
	return top.holders
}

// most is the largest amount in a span.
func (p profile) most(s span) int64 {
	i := p.after(s.from)
	most := p.before(i)
	for ; i < len(p) && p[i].at < s.to; i++ {
		most = max(most, p[i].booked)
	}
	return most
}

// least is the smallest amount in a span.
func (p profile) least(s span) int64 {
	i := p.after(s.from)
	least := p.before(i)
	for ; i < len(p) && p[i].at < s.to; i++ {
		least = min(least, p[i].booked)
	}
	return least
}

// add returns the profile with amount more throughout a span, by so many
// bookings more.
func (p profile) add(s span, amount, holders int64) profile {
	i := p.after(s.from - 1)
	j := i + sort.Search(len(p)-i, func(k int) bool { return p[i+k].at >= s.to })
	next := make(profile, 0, len(p)+2)
	next = append(next, p[:i]...)
	if i == len(p) || p[i].at != s.from {
		was := p.state(i)
		next = next.then(change{s.from, was.booked + amount, was.holders + holders})
	}
	for _, c := range p[i:j] {
		next = next.then(change{c.at, c.booked + amount, c.holders + holders})
	}
	if s.to == math.MaxInt64 {
		return next
	}
	was := p.state(j)
	next = next.then(change{s.to, was.booked, was.holders})
	for _, c := range p[j:] {
		next = next.then(c)
	}
	return next
}

// then appends a change, unless it changes nothing.
func (p profile) then(c change) profile {
	if n := len(p); n > 0 && p[n-1].at == c.at {
		p = p[:n-1]
	}
	if was := p.state(len(p)); was.booked == c.booked && was.holders == c.holders {
		return p
	}
	return append(p, c)
}
