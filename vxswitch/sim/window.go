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
	arrivals []passing
	queued   []bool    // by arrival
	strips   []strip   // by output, from 0
	inputs   [][]event // by input, from 0
	order    *timeline // of departures, by output
	end      time.Duration
}

// The records of a window are as short as can be: there are hundreds of
// thousands, and memory is what a large switch waits for.

// passing is an arrival as all outputs share it.
type passing struct {
	at      time.Duration
	size    int32
	of      int32 // virtual switch
	input   int16 // from 0, as output
	output  int16
	counted bool
}

// strip is what a window has of one output.
type strip struct {
	arrivals []numbered
	left     []leaving
	replayed int // of left
}

// numbered is an arrival at one output, and its place in the window.
type numbered struct {
	at    time.Duration
	size  int32
	of    int32
	place int32
	input int16
}

// leaving is a departure and the place of the output's last arrival before it,
// -1: it is of an earlier window.
type leaving struct {
	at      time.Duration
	delay   time.Duration
	size    int32
	of      int32
	behind  int32
	input   int16
	counted bool
}

// event is what an input counts of a packet that came or went.
type event struct {
	delay time.Duration
	size  int32
	of    int32 // virtual switch, and 3 bits: went, counted, queued
}

const (
	eventWent    = 1 << 0
	eventCounted = 1 << 1
	eventQueued  = 1 << 2
	eventBits    = 3
)

// flag is bit if it is true.
func flag(is bool, bit int32) int32 {
	if is {
		return bit
	}
	return 0
}

// windowSize is a few arrivals for each queue of a large switch; a window of it
// takes 33 MB.
const windowSize = 1 << 18

func newWindow(ports int) *window {
	return &window{size: windowSize, strips: make([]strip, ports), inputs: make([][]event, ports), order: newTimeline(ports)}
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
	if !w.fill(r.arrivals, r.s.Warmup) {
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

// fill fetches the next arrivals. Those before the warm-up's end do not count.
func (w *window) fill(from *merge, warmup time.Duration) bool {
	w.arrivals, w.queued = w.arrivals[:0], w.queued[:0]
	for i := range w.strips {
		s := &w.strips[i]
		s.arrivals, s.left, s.replayed = s.arrivals[:0], s.left[:0], 0
		w.inputs[i] = w.inputs[i][:0]
	}
	var a Arrival
	for len(w.arrivals) < w.size && from.next(&a) {
		s := &w.strips[a.Output-1]
		s.arrivals = append(s.arrivals, numbered{a.At, a.Size, a.Switch, int32(len(w.arrivals)), a.Input})
		w.arrivals = append(w.arrivals, passing{at: a.At, size: a.Size, of: a.Switch, input: a.Input - 1, output: a.Output - 1, counted: a.At >= warmup})
		w.queued = append(w.queued, false)
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
		n := &s.arrivals[i]
		r.leave(output, s, behind, n.at)
		behind = n.place
		a := Arrival{At: n.at, Switch: n.of, Input: n.input, Output: int16(output + 1), Size: n.size}
		queued := r.enqueue(&a, 0) == vxswitch.None
		r.window.queued[n.place] = queued
		side, _ := r.count.sides(&a)
		side.came(a.Size, a.At >= r.s.Warmup, queued)
	}
	r.leave(output, s, behind, r.window.end)
}

// leave lets depart from one output what departs up to and at a time.
func (r *run) leave(output int, s *strip, behind int32, until time.Duration) {
	d := &r.sent
	for r.host.DepartFrom(output+1, d, vxswitch.Time(until)) {
		a := r.arrival(d.Switch, &d.Packet)
		l := leaving{time.Duration(d.Start), time.Duration(d.Start) - a.At, a.Size, a.Switch, behind, a.Input - 1, a.At >= r.s.Warmup}
		s.left = append(s.left, l)
		side, _ := r.count.sides(&a)
		side.went(l.size, l.delay, l.counted, fineOutput)
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
		r.leaveUntil(a.at, int32(place)-1)
		queued := w.queued[place]
		of := a.of<<eventBits | flag(a.counted, eventCounted) | flag(queued, eventQueued)
		w.inputs[a.input] = append(w.inputs[a.input], event{size: a.size, of: of})
		if queued {
			r.count.enter(a.of, a.size)
		}
		if s := &w.strips[a.output]; s.replayed < len(s.left) && s.left[s.replayed].behind == int32(place) {
			w.order.set(int(a.output), s.left[s.replayed].at)
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
		at = s.left[s.replayed].at
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
		l := &s.left[s.replayed]
		w.inputs[l.input] = append(w.inputs[l.input], event{l.delay, l.size, l.of<<eventBits | eventWent | flag(l.counted, eventCounted)})
		r.count.leave(l.of, l.size)
		r.events++
		s.replayed++
		w.offer(output, behind)
	}
}

// across counts what the window has of one input.
func (r *run) across(input int) {
	sides := r.count.inputs[input:]
	for i := range r.window.inputs[input] {
		e := &r.window.inputs[input][i]
		side := &sides[int(e.of>>eventBits)*r.count.ports]
		if counted := e.of&eventCounted != 0; e.of&eventWent != 0 {
			side.went(e.size, e.delay, counted, fineInput)
		} else {
			side.came(e.size, counted, e.of&eventQueued != 0)
		}
	}
}
