package split

import "time"

// Resequencer puts the packets of several paths back into order. Each path has
// a buffer of its own, as each input of a crosspoint-queued switch has.
//
// The next packet out is the one with the expected number. If no path has it
// at its head:
//
//   - when every path has a later number at its head, the expected one is lost,
//     because paths keep order: go on with the least number there is;
//   - otherwise wait for it, at most the stall since it was first missed, then
//     go on likewise. A path that had nothing when a stall ran out is silent:
//     it is not waited for again until it brings a packet. So a path that fails
//     costs one stall, not one for each of its packets;
//   - a packet whose number was given up is dropped when it comes: late packets
//     never overtake.
type Resequencer[T any] struct {
	paths    []path[T]
	stall    time.Duration
	expected Number
	missed   time.Duration // since when the expected number is missing
	missing  bool

	Late   uint64 // packets dropped because their number was given up
	Lost   uint64 // numbers given up because all paths had passed them
	Stalls uint64 // stalls that ran out
}

type path[T any] struct {
	queue  ring[T]
	held   int // bytes
	limit  int // bytes
	silent bool
}

type item[T any] struct {
	number Number
	size   int
	value  T
}

// NewResequencer has one path for each buffer size, in bytes.
func NewResequencer[T any](buffers []int, stall time.Duration) *Resequencer[T] {
	r := &Resequencer[T]{paths: make([]path[T], len(buffers)), stall: stall}
	for i, limit := range buffers {
		r.paths[i].limit = limit
	}
	return r
}

// Restart drops what is held, forgets which paths are silent, and expects a number
// next: the splitter began anew, or what it numbered before is not known.
func (r *Resequencer[T]) Restart(n Number) {
	for i := range r.paths {
		p := &r.paths[i]
		*p = path[T]{queue: p.queue, limit: p.limit}
		for !p.queue.empty() {
			p.queue.pop()
		}
	}
	r.expected, r.missing = n, false
}

// Push takes a packet that a path brought; false if it is dropped, because its
// buffer is full or its number was given up.
func (r *Resequencer[T]) Push(from int, n Number, size int, value T) bool {
	p := &r.paths[from]
	p.silent = false
	if n.Before(r.expected) {
		r.Late++
		return false
	}
	if p.held+size > p.limit {
		return false
	}
	p.held += size
	p.queue.push(item[T]{n, size, value})
	return true
}

// Pop gives the next packet. If there is none, again is when to ask at the
// latest even if no packet comes until then; 0 if only a packet can help.
func (r *Resequencer[T]) Pop(now time.Duration) (value T, ok bool, again time.Duration) {
	first, waitFor := r.look()
	if first < 0 {
		r.missing = false
		return value, false, 0
	}
	if n := r.paths[first].queue.head().number; n != r.expected {
		if waitFor && !r.expired(now) {
			return value, false, r.missed + r.stall
		}
		r.give(n, waitFor)
	}
	r.missing = false
	r.expected++
	p := &r.paths[first]
	i := p.queue.pop()
	p.held -= i.size
	return i.value, true, 0
}

// look finds the path with the least number at its head, or -1, and whether a
// path without packets may still bring a lesser one.
func (r *Resequencer[T]) look() (first int, waitFor bool) {
	first = -1
	for i := range r.paths {
		p := &r.paths[i]
		r.drop(p)
		switch {
		case p.queue.empty():
			waitFor = waitFor || !p.silent
		case first < 0 || p.queue.head().number.Before(r.paths[first].queue.head().number):
			first = i
		}
	}
	return first, waitFor
}

// drop lets go of what a path that has not kept order brought behind later packets,
// whose numbers have been given up.
func (r *Resequencer[T]) drop(p *path[T]) {
	for !p.queue.empty() && p.queue.head().number.Before(r.expected) {
		p.held -= p.queue.pop().size
		r.Late++
	}
}

// expired says whether the expected number has been missed for a stall.
func (r *Resequencer[T]) expired(now time.Duration) bool {
	if !r.missing {
		r.missing, r.missed = true, now
	}
	return now-r.missed >= r.stall
}

// give gives up the numbers before n.
func (r *Resequencer[T]) give(n Number, stalled bool) {
	if stalled {
		r.Stalls++
		for i := range r.paths {
			if p := &r.paths[i]; p.queue.empty() {
				p.silent = true
			}
		}
	} else {
		r.Lost += uint64(n - r.expected)
	}
	r.expected = n
}

// ring is a queue that grows by doubling and never shrinks.
type ring[T any] struct {
	items       []item[T]
	first, size int
}

func (q *ring[T]) empty() bool    { return q.size == 0 }
func (q *ring[T]) head() *item[T] { return &q.items[q.first] }

func (q *ring[T]) push(i item[T]) {
	if q.size == len(q.items) {
		grown := make([]item[T], max(2*q.size, 16))
		n := copy(grown, q.items[q.first:])
		copy(grown[n:], q.items[:q.first])
		q.items, q.first = grown, 0
	}
	q.items[(q.first+q.size)&(len(q.items)-1)] = i
	q.size++
}

func (q *ring[T]) pop() item[T] {
	i := q.items[q.first]
	q.items[q.first] = item[T]{}
	q.first = (q.first + 1) & (len(q.items) - 1)
	q.size--
	return i
}
