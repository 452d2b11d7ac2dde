package live

import (
	"golang.org/x/sys/unix"

	"sublet/vxswitch"
)

// exchange has TAP devices read and written together: what the frames of a
// round cause to be sent goes with the reads of the next one, in one call.
// Without an io_uring, or with a kernel that would wait for such devices in it,
// each frame costs a call to read it and one to write it.
type exchange struct {
	ring *uring // nil: there is none
	jobs [uringJobs]job
}

// job is a frame to write, or a slot to read one into.
type job struct {
	p     *port
	ref   uint32
	piece []byte // nil: to write
}

// together are the frames of a port that were read together.
type together struct {
	on      bool
	frames  []uint32
	next    int  // of them
	asked   int  // reads of the last time
	more    bool // the device did not say that it is empty
	longest int  // frame; it shrinks by a 64th with each frame
}

func (t *together) waiting() bool { return t.next < len(t.frames) }

// join has p read and written with others if that can be.
func (h *Host) join(p *port) {
	ring := h.exchange.ring
	p.together = together{on: ring != nil && p.tap() && ring.waitless(p.fd) && ring.file(p.index, p.fd) == nil}
}

// part ends that. What was read and waits is gone, as what waits in the device.
func (h *Host) part(p *port) {
	h.swap()
	for _, ref := range p.together.frames[p.together.next:] {
		h.slots.give(ref)
	}
	if p.together.on && h.exchange.ring != nil {
		h.exchange.ring.file(p.index, -1)
	}
	p.together = together{}
}

// fetch writes what waits, and reads at most so many frames of each port that
// has some.
func (h *Host) fetch(now vxswitch.Time, frames int) {
	for _, p := range h.hot {
		if p.together.on && p.held <= now && !p.together.waiting() {
			h.prepare(p, frames)
		}
	}
	h.swap()
}

// prepare puts reads of p: one more than it had frames last time, twice as many if
// it had all that were asked for; of long frames only what may come in a round.
func (h *Host) prepare(p *port, frames int) {
	t := &p.together
	want := len(t.frames) + 1
	if len(t.frames) == t.asked {
		want = 2 * t.asked
	}
	t.asked = max(1, min(want, frames, bytesPerVisit/max(1, t.longest)))
	t.frames, t.next = t.frames[:0], 0
	for range t.asked {
		ref := h.slots.take()
		if ref == 0 {
			t.more = true
			return
		}
		piece := h.slots.borrow()
		h.job(job{p, ref, piece})
		h.exchange.ring.read(p.index, piece[headroom:])
	}
}

// job notes what is put next, when there is room for it.
func (h *Host) job(j job) {
	x := &h.exchange
	if x.ring.full() {
		h.swap()
	}
	x.jobs[x.ring.put] = j
}

// hand puts a frame to be written to p.
func (h *Host) hand(p *port, ref uint32) {
	h.job(job{p: p, ref: ref})
	h.exchange.ring.write(p.index, h.slots.all[ref].whole())
}

// swap does what was put.
func (h *Host) swap() {
	x := &h.exchange
	if x.ring == nil || x.ring.put == 0 {
		return
	}
	h.stages.lap(h, &h.stages.times.Overhead)
	n := x.ring.put
	x.ring.run()
	h.stages.lap(h, &h.stages.times.IO)
	for i, j := range x.jobs[:n] {
		if result := x.ring.results[i]; j.piece != nil {
			h.came(j, int(result))
		} else {
			h.wrote(j.p, j.ref, told(unix.Errno(-result)))
		}
	}
	if x.ring.broken != 0 {
		h.leave()
	}
}

// came takes a frame of n bytes that was read, or -n is why none was.
func (h *Host) came(j job, n int) {
	t := &j.p.together
	t.more = n != -int(unix.EAGAIN)
	if n < least {
		h.slots.give(j.ref)
		h.slots.back(j.piece)
		return
	}
	if !h.slots.all[j.ref].came(j.piece, n) {
		h.slots.back(j.piece)
	}
	t.frames = append(t.frames, j.ref)
	t.longest = max(n, t.longest-t.longest/64)
}

// leave goes on without the ring, which the kernel refuses.
func (h *Host) leave() {
	h.exchange.ring.close()
	h.exchange.ring = nil
	for _, p := range h.ports {
		if p != nil {
			p.together.on = false
		}
	}
}
