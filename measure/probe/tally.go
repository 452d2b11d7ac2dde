package probe

import "time"

// tally counts the datagrams of one epoch as they arrive.
//
// The rate is measured from arrival to arrival: from the last one before the
// window to the first one at or after its end, so that neither a burst nor a
// gap at an edge counts wrongly. A window that no arrival closes ends when it
// was to end: a link that falls silent is not flattered.
type tally struct {
	epoch          uint32
	warmUp, window int64  // ns; the window begins warmUp after the first arrival
	limit          uint64 // sequence numbers at or above are not ours

	first, begin, last int64 // arrivals, ns
	closed             bool
	datagrams, payload uint64 // in the window
	seen               []uint64
	distinct, again    uint64
}

// number notes a sequence number.
func (t *tally) number(seq uint64) {
	if seq >= t.limit {
		return
	}
	word, bit := seq/64, uint64(1)<<(seq%64)
	for uint64(len(t.seen)) <= word {
		t.seen = append(t.seen, 0)
	}
	if t.seen[word]&bit != 0 {
		t.again++
		return
	}
	t.seen[word] |= bit
	t.distinct++
}

// arrive notes datagrams that arrived together at a time.
func (t *tally) arrive(at int64, datagrams, payload uint64) {
	if t.first == 0 {
		t.first = at
	}
	switch {
	case at < t.first+t.warmUp || t.begin == 0:
		t.begin = at
	case !t.closed:
		t.datagrams += datagrams
		t.payload += payload
		t.last = at
		t.closed = at >= t.end()
	}
}

// end is when the window was to end.
func (t *tally) end() int64 { return t.first + t.warmUp + t.window }

// arrived sums up.
func (t *tally) arrived() arrived {
	a := arrived{Distinct: t.distinct, Duplicates: t.again, Datagrams: t.datagrams, Payload: t.payload}
	switch {
	case t.begin == 0: // nothing came
	case t.closed:
		a.Span = time.Duration(t.last - t.begin)
	default:
		a.Span = time.Duration(t.end() - t.begin)
	}
	return a
}
