package sim

import (
	"slices"
	"time"

	"sublet/vxswitch"
)

// wires puts departures into the order of time. With flexible sharing a frame
// may have to wait for its wire after it was its turn (vxswitch, sharing.go), by
// at most one longest frame, so that outputs do not tell their departures in
// order: what waits is a frame or two of each.
type wires struct {
	waiting []vxswitch.Departure // by Start
}

// put adds d behind what starts no later.
func (w *wires) put(d *vxswitch.Departure) {
	at := len(w.waiting)
	for at > 0 && w.waiting[at-1].Start > d.Start {
		at--
	}
	w.waiting = slices.Insert(w.waiting, at, *d)
}

// begun tells of those that start up to and at a time.
func (w *wires) begun(until vxswitch.Time, tell func(*vxswitch.Departure)) {
	n := 0
	for ; n < len(w.waiting) && w.waiting[n].Start <= until; n++ {
		tell(&w.waiting[n])
	}
	w.waiting = slices.Delete(w.waiting, 0, n)
}

// advance lets depart what departs up to and at a time.
func (r *run) advance(until vxswitch.Time) {
	if r.wires == nil {
		for r.host.DepartInto(&r.sent, until) {
			r.depart(&r.sent)
		}
	} else {
		r.decide(until)
	}
	if r.far != nil {
		r.far.advance(time.Duration(until))
	}
}

// decide is advance where frames wait for their wires.
func (r *run) decide(until vxswitch.Time) {
	for t := r.host.Next(); t <= until && t < vxswitch.Forever; t = r.host.Next() {
		r.wires.begun(t-1, r.depart)
		if r.host.DepartInto(&r.sent, t) {
			r.wires.put(&r.sent)
		}
	}
	r.wires.begun(until, r.depart)
}
