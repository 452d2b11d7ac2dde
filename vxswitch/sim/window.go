package sim

import (
	"time"

	"sublet/vxswitch"
)

// A window is some thousands of arrivals that pass output by output instead of
// in the order of time: what one output has to do then finds its queues,
// schedulers and counters in the processor's caches, where those of a whole
// large switch have no room. Afterwards the window is replayed in the order of
// time for what more than one output counts, and then input by input. Figures
// are the same to the last bit (TestWindowsChangeNothing).
//
// This needs outputs that have nothing to do with each other: see apart.
type window struct {
	size     int // arrivals
	arrivals []Arrival
	queued   []bool    // by arrival
	strips   []strip   // by output
	inputs   [][]event // by input
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

// event is what an input counts of a packet that came or went.
type event struct {
	delay   time.Duration
	size    int32
	of      int32 // virtual switch
	went    bool
	counted bool
	queued  bool
}

// windowSize is a few arrivals for each queue of a large switch; a window of it
// takes 25 MB.
const windowSize = 1 << 17

func newWindow(ports int) *window {
	return &window{size: windowSize, strips: make([]strip, ports+1), inputs: make([][]event, ports+1), order: newTimeline(ports + 1)}
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
	for input := range w.inputs {
		r.across(input)
	}
	return true
}

// fill fetches the next arrivals.
func (w *window) fill(from *merge) bool {
	w.arrivals, w.queued = w.arrivals[:0], w.queued[:0]
	for i := range w.strips {
		s := &w.strips[i]
		s.arrivals, s.left, s.replayed = s.arrivals[:0], s.left[:0], 0
		w.inputs[i] = w.inputs[i][:0]
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
		side.came(a.Size, a.At >= r.s.Warmup, queued)
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
		side.went(left.Size, left.Delay(), left.Arrival.At >= r.s.Warmup, fineOutput)
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
		queued := w.queued[place]
		w.inputs[a.Input] = append(w.inputs[a.Input], event{size: a.Size, of: a.Switch, counted: a.At >= r.s.Warmup, queued: queued})
		if queued {
			r.count.enter(a)
		}
		if s := &w.strips[a.Output]; s.replayed < len(s.left) && s.left[s.replayed].behind == int32(place) {
			w.order.set(int(a.Output), s.left[s.replayed].Departure.At)
		}
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
		w.inputs[d.Input] = append(w.inputs[d.Input], event{delay: d.Delay(), size: d.Size, of: d.Switch, went: true, counted: d.Arrival.At >= r.s.Warmup})
		r.count.leave(&d.Arrival)
		r.events++
		s.replayed++
		w.offer(output, behind)
	}
}

// across counts what the window has of one input.
func (r *run) across(input int) {
	sides := r.count.inputs[max(input-1, 0):]
	for i := range r.window.inputs[input] {
		e := &r.window.inputs[input][i]
		side := &sides[int(e.of)*r.count.ports]
		if e.went {
			side.went(e.size, e.delay, e.counted, fineInput)
		} else {
			side.came(e.size, e.counted, e.queued)
		}
	}
}
