package live

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
)

// Host is a hosting switch at work.
type Host struct {
	cfg    *Config
	open   opener
	text   []byte // of cfg, as it was given
	s      *vxswitch.Switch
	ports  []*port
	slots  slots
	epoll  int
	wakeup int // event file that ends a wait
	base   time.Time
	spare  []byte // for the next long frame
	hot    []*port
	dirty  []*port // with frames to flush

	header   vxswitch.Header    // of the frame that is being forwarded
	leaving  vxswitch.Departure // the frame that is being sent
	seq      uint64
	orders   chan order // what others want done between two rounds
	asked    atomic.Bool
	stages   stages
	exchange exchange
}

// port is an open port.
type port struct {
	*device
	index    int
	name     string
	owner    vxswitch.ID   // whose every frame is, -1: lookup 1 decides
	input    int           // owner's port here
	held     vxswitch.Time // nothing is read before
	full     bool          // since it was last held it had a frame whenever one was due
	hot      bool
	dirty    bool // it is in Host.dirty
	count    PortCounters
	queue    []uint32 // frames to be written together, of a packet socket
	together together
}

// PortCounters are of a real port, in frames as they are read and written
// (segments not cut).
type PortCounters struct {
	In        vxswitch.Count `json:"in"`
	Out       vxswitch.Count `json:"out"`
	OutErrors uint64         `json:"out_errors"` // writes that failed
	Busy      uint64         `json:"out_busy"`   // writes for which the device had no room
	Missed    uint64         `json:"in_missed"`  // frames that did not wait to be read: the socket was full
}

// opener opens a port whose device should bring segments of a few milliseconds
// of rate at most.
type opener func(c PortConfig, rate vnet.Rate) (*device, error)

// order is something to be done by the loop's thread.
type order struct {
	do   func()
	done chan struct{}
}

// New makes a hosting switch of c and opens its ports.
func New(c *Config) (*Host, error) { return newHost(c, open) }

func newHost(c *Config, open opener) (*Host, error) {
	at := c.places()
	cfg, err := c.hosting(at)
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: &Config{}, open: open, base: time.Now(), orders: make(chan order, 16), ports: make([]*port, MaxPorts), epoll: -1, wakeup: -1}
	cfg.Dropped = func(_ vxswitch.ID, p vxswitch.Packet, _ vxswitch.Cause) { h.release(uint32(p.Ref)) }
	cfg.Clock, cfg.PickBudget = h.now, budget
	if h.s, err = vxswitch.New(cfg); err != nil {
		return nil, err
	}
	if err = h.openFiles(); err == nil {
		err = h.Change(c)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	h.spare = h.slots.borrow()
	return h, nil
}

// budget is what one call of a tenant's scheduler may take before its switch
// pays: ten times what those of package sched take, caches cold.
const budget = vxswitch.Time(5 * time.Microsecond)

func (h *Host) openFiles() (err error) {
	if h.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("make an epoll file: %w", err)
	}
	h.exchange.ring, _ = newUring(MaxPorts) // what has none goes without
	if h.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("make an event file: %w", err)
	}
	return h.watch(h.wakeup, -1)
}

// watch reports file fd, edge by edge, under number i.
func (h *Host) watch(fd, i int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: int32(i)}
	if err := unix.EpollCtl(h.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch a port: %w", err)
	}
	return nil
}

// own notes which ports one switch has for itself: their frames need no lookup
// 1, and their capacity is held.
func (h *Host) own() {
	for _, p := range h.ports {
		if p == nil {
			continue
		}
		p.owner = -1
		for _, id := range h.s.IDs() {
			v, _ := h.s.Virtual(id)
			for _, c := range v.Claims {
				if c.By == vxswitch.ByPort && c.Port == p.index && h.alone(p.index, id) {
					p.owner, p.input = id, slices.IndexFunc(v.Ports, func(q vxswitch.Port) bool { return q.Physical == p.index })
				}
			}
		}
	}
}

// alone says whether no other switch has a port there.
func (h *Host) alone(phys int, id vxswitch.ID) bool {
	for _, other := range h.s.IDs() {
		v, _ := h.s.Virtual(other)
		for _, p := range v.Ports {
			if p.Physical == phys && other != id {
				return false
			}
		}
	}
	return true
}

// Close closes all ports; TAP devices go.
func (h *Host) Close() {
	for _, p := range h.ports {
		if p != nil {
			h.shut(p)
		}
	}
	h.exchange.ring.close()
	h.exchange.ring = nil
	for _, fd := range []int{h.epoll, h.wakeup} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (h *Host) now() vxswitch.Time { return vxswitch.Time(time.Since(h.base)) }

// Do runs f on the loop's thread between two rounds, and waits for it.
func (h *Host) Do(ctx context.Context, f func()) error {
	o := order{f, make(chan struct{})}
	select {
	case h.orders <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.wake()
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Host) wake() {
	h.asked.Store(true)
	one := [8]byte{0: 1}
	unix.Write(h.wakeup, one[:])
}

// Run carries frames until ctx is done. It takes a thread for itself.
func (h *Host) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	if h.cfg.CPU != nil {
		var set unix.CPUSet
		set.Set(*h.cfg.CPU)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("run on CPU %d: %w", *h.cfg.CPU, err)
		}
	}
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	stop := context.AfterFunc(ctx, h.wake)
	defer stop()
	defer h.swap()
	for ctx.Err() == nil {
		if err := h.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn is a round over the ports that have something, then a look at all: a
// frame that comes to a quiet port waits for one round, whatever the others do.
func (h *Host) turn() (err error) {
	h.stages.begin(h)
	if h.asked.Load() {
		h.obey()
	}
	if h.round() {
		_, err = h.poll(0)
	} else {
		err = h.rest()
	}
	h.stages.lap(h, &h.stages.times.Overhead)
	return err
}

// rest waits for a frame, or for the time something is due. Short waits spin:
// waking up takes longer.
func (h *Host) rest() error {
	began := h.now()
	for now := began; ; now = h.now() {
		due := h.due()
		wait := min(due-now, vxswitch.Time(time.Second))
		if spin := vxswitch.Time(h.cfg.Spin); wait <= 0 || spin > shortSpin && now-began < spin {
			wait = 0
		}
		news, err := h.poll(wait)
		if err != nil || news || due <= now || wait > 0 || h.asked.Load() {
			return err
		}
	}
}

// shortSpin is less than a look takes: it goes to sleep at once.
const shortSpin = vxswitch.Time(2 * time.Microsecond)

// due is when a frame may leave, or come in that is held.
func (h *Host) due() vxswitch.Time {
	if len(h.dirty) > 0 {
		return 0
	}
	due := h.s.Next()
	for _, p := range h.hot {
		due = min(due, p.held)
	}
	return due
}

// obey runs what others want done.
func (h *Host) obey() {
	h.asked.Store(false)
	h.swap()
	for {
		select {
		case o := <-h.orders:
			o.do()
			close(o.done)
		default:
			return
		}
	}
}

// poll looks which ports have frames, waiting at most d; news says that one has
// that had none.
func (h *Host) poll(d vxswitch.Time) (news bool, err error) {
	var events [64]unix.EpollEvent
	h.stages.lap(h, &h.stages.times.Overhead)
	n, errno := h.epollWait(events[:], d)
	if d > 0 {
		h.stages.slept(h)
	} else {
		h.stages.lap(h, &h.stages.times.Polling)
	}
	if errno != 0 && errno != unix.EINTR {
		return false, fmt.Errorf("wait for frames: %w", errno)
	}
	for i := range max(n, 0) {
		at := int(events[i].Fd)
		if at < 0 {
			var b [8]byte
			unix.Read(h.wakeup, b[:])
			continue
		}
		if p := h.ports[at]; p != nil && !p.hot {
			p.hot, news = true, true
			h.hot = append(h.hot, p)
		}
	}
	return news, nil
}

// epollWait is a raw system call also when it waits: telling Go's scheduler of
// it costs as much as carrying a frame. Run leaves Go another processor for the
// rest of the program, and a collector's signal ends the wait.
func (h *Host) epollWait(events []unix.EpollEvent, d vxswitch.Time) (int, unix.Errno) {
	t := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(h.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(&t)), 0, 0)
	return int(n), errno
}

// What one port may send in a round: what a frame at another port may have to
// wait for. 16 KB take as long to copy as the calls for eight small frames. Few
// ports may send more where that makes calls fewer.
const (
	framesPerVisit = 8
	framesPerRound = batch
	bytesPerVisit  = 16 << 10
)

// round lets leave what may, and reads a few frames of every hot port. It says
// whether something was read.
func (h *Host) round() (busy bool) {
	h.stages.rounds++
	now := h.now()
	h.send(now)
	frames := max(framesPerVisit, framesPerRound/max(1, len(h.hot)))
	h.fetch(now, frames)
	for i := 0; i < len(h.hot); {
		p := h.hot[i]
		limit := framesPerVisit
		if p.batched || p.together.on {
			limit = frames
		}
		n, more := h.visit(p, limit)
		busy = busy || n > 0
		if more {
			i++
			continue
		}
		p.hot = false
		h.hot[i] = h.hot[len(h.hot)-1]
		h.hot = h.hot[:len(h.hot)-1]
	}
	h.flushAll()
	if !busy || len(h.hot) == 0 { // there is no next round at once
		h.swap()
	}
	return busy
}

// visit reads at most so many frames of p; more says that there may be more.
func (h *Host) visit(p *port, frames int) (n int, more bool) {
	for limit := p.count.In.Bytes + bytesPerVisit; n < frames && p.count.In.Bytes < limit; {
		now := h.now()
		var due vxswitch.Time
		if p.owner >= 0 {
			if due = h.s.Ready(p.owner, p.input); due > now {
				p.held, p.full = due, true
				return n, true
			}
		}
		if !p.full {
			due = 0
		}
		p.held = 0
		if !h.receive(p, now, due) {
			p.full = p.full && p.together.more
			return n, p.held > 0 || p.together.more
		}
		n++
	}
	return n, true
}

// receive takes one frame of p through the switch.
func (h *Host) receive(p *port, now, due vxswitch.Time) bool {
	ref := h.obtain(p, now)
	if ref == 0 {
		return false
	}
	if h.stages.on {
		h.stages.samples++
	}
	h.send(now) // what is due by now leaves before what arrives now (package vxswitch, Time)
	h.forward(p, ref, &h.slots.all[ref], now, due)
	h.stages.lap(h, &h.stages.times.Rules)
	h.send(now)
	return true
}

// obtain returns a frame of p, or 0.
func (h *Host) obtain(p *port, now vxswitch.Time) uint32 {
	if t := &p.together; t.waiting() {
		t.next++
		return t.frames[t.next-1]
	} else if t.on {
		return 0
	}
	ref := h.slots.take()
	if ref == 0 {
		p.held = now + vxswitch.Time(time.Millisecond) // until something has left
		return 0
	}
	h.stages.lap(h, &h.stages.times.Overhead)
	ok, kept := p.device.read(&h.slots.all[ref], h.spare)
	if kept {
		h.spare = h.slots.borrow()
	}
	if !ok {
		h.stages.lap(h, &h.stages.times.Polling)
		h.slots.give(ref)
		return 0
	}
	h.stages.lap(h, &h.stages.times.IO)
	return ref
}

// forward queues a frame for its outputs.
func (h *Host) forward(p *port, ref uint32, f *slot, now, due vxswitch.Time) {
	k := vxswitch.Packet{Ref: uint64(ref), Seq: h.seq, Size: f.size(), Due: due}
	h.seq++
	p.count.In.Packets++
	p.count.In.Bytes += uint64(k.Size)
	f.refs = ours
	lookup.Parse(f.frame(), &h.header)
	var queued int
	if p.owner >= 0 {
		queued, _ = h.s.Forward(now, p.owner, p.index, &h.header, k)
	} else {
		_, queued, _ = h.s.Arrive(now, p.index, &h.header, k)
	}
	if f.refs -= ours - int32(queued); f.refs == 0 {
		h.slots.give(ref)
	}
}

// ours are references that a frame has while its copies are being queued.
const ours = 1 << 20

// release gives back one of a frame's copies.
func (h *Host) release(ref uint32) {
	f := &h.slots.all[ref]
	if f.refs--; f.refs == 0 {
		h.slots.give(ref)
	}
}

// send writes all that may leave by now.
func (h *Host) send(now vxswitch.Time) {
	for {
		d := &h.leaving
		ok := h.s.DepartInto(d, now)
		h.stages.lap(h, &h.stages.times.Actions)
		if !ok {
			return
		}
		h.write(h.ports[d.Port], uint32(d.Ref))
		h.stages.lap(h, &h.stages.times.IO)
	}
}

// write hands a frame to its device, or keeps it to go with others (flush).
func (h *Host) write(p *port, ref uint32) {
	f := &h.slots.all[ref]
	if p == nil { // its port is gone
		h.release(ref)
		return
	}
	if p.together.on {
		h.hand(p, ref)
		return
	}
	if p.batched {
		if !p.dirty {
			p.dirty = true
			h.dirty = append(h.dirty, p)
		}
		if p.queue = append(p.queue, ref); len(p.queue) == batch {
			h.flush(p)
		}
		return
	}
	h.wrote(p, ref, p.device.write(f))
}

// wrote counts what came of a frame.
func (h *Host) wrote(p *port, ref uint32, err error) {
	switch err {
	case nil:
		p.count.Out.Packets++
		p.count.Out.Bytes += uint64(h.slots.all[ref].size())
	case errBusy:
		p.count.Busy++
	default:
		p.count.OutErrors++
	}
	h.release(ref)
}

// flush writes what p's frames wait for.
func (h *Host) flush(p *port) {
	if len(p.queue) == 0 && p.lags() {
		p.xdp.Out().Send()
	}
	for len(p.queue) > 0 {
		n, err := p.writeAll(h.slots.all, p.queue)
		for _, ref := range p.queue[:n] {
			h.wrote(p, ref, nil)
		}
		rest := p.queue[n:]
		if err != nil { // of the first that is left
			h.wrote(p, rest[0], err)
			rest = rest[1:]
		}
		p.queue = p.queue[:copy(p.queue, rest)]
	}
}

// flushAll flushes every port that has something. One whose device was busy is
// asked again in the next round.
func (h *Host) flushAll() {
	busy := h.dirty[:0]
	for _, p := range h.dirty {
		if p.fd < 0 {
			continue
		}
		if h.flush(p); p.lags() {
			busy = append(busy, p)
		} else {
			p.dirty = false
		}
	}
	h.dirty = busy
	h.stages.lap(h, &h.stages.times.IO)
}
