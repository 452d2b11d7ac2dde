package lease

import (
	"slices"
	"time"

	"sublet/vnet"
)

// shorter finds the longest duration, in whole seconds, for which a request
// fits from its start: until more becomes booked of something.
func (s *search) shorter(r vnet.Request) (vnet.Request, bool) {
	lengths := s.lengths(r)
	low, high := -1, len(lengths)
	for high-low > 1 {
		if middle := (low + high) / 2; s.fits(lasting(r, lengths[middle])) {
			low = middle
		} else {
			high = middle
		}
	}
	if low < 0 {
		return r, false
	}
	return lasting(r, lengths[low]), true
}

// lengths are the durations shorter than a request's, in order, after which
// something becomes booked, each long enough for all stages to begin.
func (s *search) lengths(r vnet.Request) []time.Duration {
	start := windowOf(s.now, s.relaxed(r)).Start
	var lengths []time.Duration
	rises := append(s.view.calendar.Rises(start), s.view.bounds(start, func(m vnet.Maintenance) time.Time { return m.Start })...)
	slices.SortFunc(rises, time.Time.Compare)
	for _, rise := range rises {
		length := min(rise.Sub(start).Truncate(time.Second), vnet.MaxDuration)
		if length >= shortest(r).For && (r.For == 0 || length < r.For) {
			lengths = append(lengths, length)
		}
	}
	return slices.Compact(lengths)
}

func lasting(r vnet.Request, length time.Duration) vnet.Request {
	r.For = length
	return r
}

// shortest is a request that lasts until its last stage has begun.
func shortest(r vnet.Request) vnet.Request {
	least := time.Second + r.LastTimed().Truncate(time.Second)
	if r.For == 0 || least < r.For {
		r.For = least
	}
	return r
}

func durationChanges(_ time.Time, asked, r vnet.Request) ([]vnet.Change, float64) {
	if asked.For == r.For {
		return nil, 0
	}
	from := "until released"
	if asked.For > 0 {
		from = vnet.FormatDuration(asked.For)
	}
	cost := max(float64(lengthOf(asked))/float64(r.For)-1, 0)
	return []vnet.Change{{What: "duration", From: from, To: vnet.FormatDuration(r.For)}}, cost
}
