package sim

import (
	"time"

	"sublet/vxswitch"
)

// A window is some thousands of arrivals that pass output by output instead of
// in the order of time: what one output has to do then finds its queues,
// schedulers and counters in the processor's caches, where those of a whole
// large switch have no room. Afterwards the window is replayed in the order of
// time for what more than one output counts: inputs, virtual switches, the
// total. Figures are the same to the last bit (TestWindowsChangeNothing).
//
// This needs outputs that have nothing to do with each other: see apart.
type window struct {
	size     int // arrivals
	arrivals []Arrival
	queued   []bool // by arrival
	strips   []strip
	order    *timeline // of departures, by output
	end      time.Duration
}

// strip is what a window has of one output.
type strip struct {
	arrivals []numbered
	left     []leaving
	replayed int // of left
}

// numbered is an arrival and its place in the window.
type numbered struct {
	Arrival
	place int32
}

// leaving is a departure and the place of the output's last arrival before it,
// -1: it is of an earlier window.
type leaving struct {
	Departure
	behind int32
}

// windowSize is a few arrivals for each queue of a large switch.
const windowSize = 1 << 15

func newWindow(ports int) *window {
	return &window{size: windowSize, strips: make([]strip, ports+1), order: newTimeline(ports + 1)}
}

// apart says that no output's decisions depend on what another one does, that
// every packet leaves or was dropped when it came, and that nobody wants to see
// packets in their order.
func (r *run) apart() bool {
	if r.s.Split != nil || r.s.Switch.Sharing == "flexible" || r.watch.Arrived != nil || r.watch.Departed != nil {
		return false
	}
	for i := range r.s.VirtualSwitches {
		v := &r.s.VirtualSwitches[i]
		manages := v.Manager != nil && v.Manager.New(int(v.Buffer), int64(v.Rate), 0) != nil
		if manages || v.Police {
			return false
		}
	}
	return true
}

// pass lets a window of packets arrive, and depart what departs before the one
// behind them; false: there are no more.
func (r *run) pass() bool {
	w := r.window
	if !w.fill(r.arrivals) {
		return false
	}
	for output := range w.strips {
		r.along(output)
	}
	r.replay()
	return true
}

// fill fetches the next arrivals.
func (w *window) fill(from *merge) bool {
	w.arrivals, w.queued = w.arrivals[:0], w.queued[:0]
	for i := range w.strips {
		s := &w.strips[i]
		s.arrivals, s.left, s.replayed = s.arrivals[:0], s.left[:0], 0
	}
	var a Arrival
	for len(w.arrivals) < w.size && from.next(&a) {
		s := &w.strips[a.Output]
		s.arrivals = append(s.arrivals, numbered{a, int32(len(w.arrivals))})
		w.arrivals, w.queued = append(w.arrivals, a), append(w.queued, false)
		w.end = a.At
	}
	if at := from.peek(); at != never {
		w.end = at
	}
	return len(w.arrivals) > 0
}

// along passes the window at one output.
func (r *run) along(output int) {
	s, behind := &r.window.strips[output], int32(-1)
	for i := range s.arrivals {
		a := &s.arrivals[i]
		r.leave(output, s, behind, a.At)
		behind = a.place
		queued := r.enqueue(&a.Arrival, a.Sequence) == vxswitch.None
		r.window.queued[a.place] = queued
		side, _ := r.count.sides(&a.Arrival)
		side.came(&a.Arrival, a.At >= r.s.Warmup, queued)
	}
	r.leave(output, s, behind, r.window.end)
}

// leave lets depart from one output what departs up to and at a time.
func (r *run) leave(output int, s *strip, behind int32, until time.Duration) {
	d := &r.sent
	for r.host.DepartFrom(output, d, vxswitch.Time(until)) {
		s.left = append(s.left, leaving{Departure{time.Duration(d.Start), r.arrival(d.Switch, &d.Packet)}, behind})
		left := &s.left[len(s.left)-1].Departure
		side, _ := r.count.sides(&left.Arrival)
		side.went(left, left.Arrival.At >= r.s.Warmup, fineOutput)
	}
}

// replay counts, in the order of time, what outputs share. A departure comes
// when its output's last arrival before it has come, then by time and output.
func (r *run) replay() {
	w := r.window
	for i := range w.strips {
		w.offer(i, -1)
	}
	for place := range w.arrivals {
		a := &w.arrivals[place]
		r.leaveUntil(a.At, int32(place)-1)
		_, side := r.count.sides(a)
		side.came(a, a.At >= r.s.Warmup, w.queued[place])
		if w.queued[place] {
			r.count.enter(a)
		}
		w.offer(int(a.Output), int32(place))
	}
	r.leaveUntil(w.end, int32(len(w.arrivals)))
	r.events += uint64(len(w.arrivals))
}

// offer puts an output's next departure into the order, if its turn may come
// behind an arrival.
func (w *window) offer(output int, behind int32) {
	s := &w.strips[output]
	at := never
	if s.replayed < len(s.left) && s.left[s.replayed].behind <= behind {
		at = s.left[s.replayed].Departure.At
	}
	w.order.set(output, at)
}

func (r *run) leaveUntil(until time.Duration, behind int32) {
	w := r.window
	for {
		output, at := w.order.earliest()
		if at > until || at == never {
			return
		}
		s := &w.strips[output]
		d := &s.left[s.replayed].Departure
		_, side := r.count.sides(&d.Arrival)
		side.went(d, d.Arrival.At >= r.s.Warmup, fineInput)
		r.count.leave(&d.Arrival)
		r.events++
		s.replayed++
		w.offer(output, behind)
	}
}
