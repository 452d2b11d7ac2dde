package pipeline

import (
	"container/heap"
	"slices"
	"sync/atomic"
)

// maxHeld bounds the bytes of packets that wait.
const maxHeld = 16 << 20

// held is a packet that waits at a meter.
type held struct {
	*run
	meter *meter
	at    int64  // when it goes on
	turn  uint64 // of two at one time the first goes first
	aside any
}

// holding is all that wait.
type holding struct {
	queue  waitingPackets
	turns  uint64
	bytes  int
	spares []*run
	told   []*meter // of which datapaths may believe that packets wait
}

// waitingPackets is a heap by time.
type waitingPackets []held

func (w waitingPackets) Len() int      { return len(w) }
func (w waitingPackets) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w waitingPackets) Less(i, j int) bool {
	return w[i].at < w[j].at || w[i].at == w[j].at && w[i].turn < w[j].turn
}
func (w *waitingPackets) Push(x any) { *w = append(*w, x.(held)) }
func (w *waitingPackets) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = held{}
	*w = (*w)[:len(*w)-1]
	return last
}

// passes says whether a packet goes on past a meter now. It may have been dropped, or wait.
func (s *Switch) passes(r *run, m *meter) bool {
	if m.state.Holds != 0 && s.waits(r, m) {
		return false
	}
	return m.pass(r.now, &r.packet)
}

// waits has a packet wait that a meter would drop, or that others wait before. What it
// takes of the meter's rate is taken at once: those that come after it leave after it.
func (s *Switch) waits(r *run, m *meter) bool {
	if m.placed && !m.waiter {
		m.waiter = true
		s.holding.told = append(s.holding.told, m)
	}
	units := r.segments
	if !m.packets() {
		units = uint64(len(r.b)) * 8
	}
	if _, over := m.exceeded(uint64(r.now)*ticks, units); over == 0 && m.held == 0 {
		return false
	}
	size := len(r.b) + headroom + 2048
	at, ok := m.reserve(r.now, units, s.config.Hold)
	if !ok || s.holding.bytes+size > maxHeld {
		return false
	}
	m.takeAll(r.now, units)
	atomic.StoreUint64(&m.state.Waiting, 1)
	atomic.AddUint64(&m.state.Packets, r.segments)
	atomic.AddUint64(&m.state.Bytes, uint64(len(r.b)))
	h := held{run: s.aside(r), meter: m, at: at, turn: s.holding.turns}
	if s.Aside != nil {
		h.aside = s.Aside()
	}
	s.holding.turns++
	s.holding.bytes += size
	m.held++
	heap.Push(&s.holding.queue, h)
	return true
}

// reserve is when all bands of a meter have what a packet takes; ok is false if that is
// later than it may wait.
func (m *meter) reserve(now int64, units uint64, most int64) (at int64, ok bool) {
	begin := uint64(now) * ticks
	when := begin
	for i := range m.rules {
		r := &m.rules[i]
		full := max(atomic.LoadUint64(&m.state.Bands[i].Full), begin) + min(r.cost(units), r.Depth)
		when = max(when, full-min(full, r.Depth))
	}
	at = int64((when + ticks - 1) / ticks)
	return at, at-now <= most
}

func (m *meter) takeAll(now int64, units uint64) {
	for i := range m.rules {
		m.take(i, uint64(now)*ticks, m.rules[i].cost(units))
	}
}

// aside is a packet on its way, which goes on later. Its Flow is that of those which do
// not wait.
func (s *Switch) aside(r *run) *run {
	var c *run
	if last := len(s.holding.spares) - 1; last >= 0 {
		c, s.holding.spares = s.holding.spares[last], s.holding.spares[:last]
	} else {
		c = &run{}
	}
	room := c.room
	*c = *r
	c.room = room
	c.packet.from(&r.packet)
	c.did = changes{}
	return c
}

// Holding is when the first packet that waits goes on; ok is false if none does.
func (s *Switch) Holding() (at int64, ok bool) {
	if len(s.holding.queue) == 0 {
		return 0, false
	}
	return s.holding.queue[0].at, true
}

// Waiting is how many packets wait at meters.
func (s *Switch) Waiting() int { return len(s.holding.queue) }

// Release has packets go on whose time has come.
func (s *Switch) Release(now int64) {
	for len(s.holding.queue) > 0 && s.holding.queue[0].at <= now {
		h := heap.Pop(&s.holding.queue).(held)
		h.meter.held--
		s.holding.bytes -= len(h.b) + headroom + 2048
		if h.now = now; s.Resume != nil {
			s.Resume(h.aside)
		}
		s.onward(h.run)
		if len(s.holding.spares) < 256 {
			s.holding.spares = append(s.holding.spares, h.run)
		}
	}
}

// onward takes a packet on from behind its meter.
func (s *Switch) onward(r *run) {
	next, on := s.behindMeter(r, &r.entry.does)
	switch {
	case on && next != 0:
		s.classifyFrom(r, next)
	case on:
		s.finish(r, 0)
	}
}

// Rested tells datapaths of meters for which no packet waits any more, once they have
// handed over all that was to wait.
func (s *Switch) Rested() {
	s.holding.told = slices.DeleteFunc(s.holding.told, func(m *meter) bool {
		if m.held > 0 {
			return false
		}
		atomic.StoreUint64(&m.state.Waiting, 0)
		m.waiter = false
		return true
	})
}
