// Package impair carries the frames of impaired links in user space, on TAP
// devices: a thread for each impaired direction reads the frames, asks
// impair.Line what becomes of each, and writes what is due. One process of a
// host has all of them (Wires), which outlives the agent that starts it (Process).
//
// Where each frame has a fate of its own, the kernel cuts large packets and
// finishes checksums before they come here, so what is lost or corrupted is a
// frame of the wire. Where all are delayed alike, large packets stay whole:
// offloads of the device are switched with the impairment.
package impair

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch/impair"
)

// Frames of a wire.
const (
	header  = 10                  // virtio_net_hdr, before each frame
	largest = header + 1<<16 + 64 // bytes of a large packet
	round   = 64                  // frames read before those that are due have their turn
)

// How many bytes of memory all wires of the process hold at most, whatever is
// asked of each, and how many each has whatever others hold. A short frame takes
// a whole buffer, so memory is counted besides bytes of frames.
const (
	mostOfAll = 1 << 30
	assured   = 1 << 20
)

var ofAll atomic.Int64

// offloads are what the kernel may leave undone of what all frames share:
// checksums, TCP and UDP segments (linux/if_tun.h); older kernels have no USO.
var offloads = []int{
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN,
}

// Terms are what a wire does.
type Terms struct {
	Impairment vnet.Impairment `json:"impairment"`
	Hold       int             `json:"hold_bytes"` // at most, of frames that are not due; of a merge for each path
	// Number says that frames get numbers, for a link's paths to keep their order.
	Number bool `json:"number,omitempty"`
	// Stall says that they have some, and how long each waits at most for those before.
	Stall time.Duration `json:"stall_ns,omitempty"`
}

// Wire takes the frames that leave by one TAP device (IFF_VNET_HDR) and lets
// them come in by another, or by the same, impaired.
type Wire struct {
	in, out int // files of TAP devices
	line    *impair.Line
	change  atomic.Pointer[Terms] // to take effect
	queue   impair.Queue[[]byte]
	held    int // bytes of frames
	taken   int // bytes of memory
	most    int // bytes of frames, and with what is assured of memory
	scratch [largest]byte
	free    [][]byte // of frames of the wire
	tagger  *tagger  // nil: frames are not numbered
	counts  struct{ passed, lost, duplicated, corrupted, overflowed atomic.Uint64 }
	wake    *bell
	closed  atomic.Bool
	late    time.Duration // how much later than asked this thread wakes, of late
	woken   bool          // frames that are read now had it wake
}

// Counts are of frames, or large packets.
type Counts struct {
	Passed     uint64 `json:"passed"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Corrupted  uint64 `json:"corrupted"`
	Overflowed uint64 `json:"overflowed"`     // more would have been held than the terms allow
	Late       uint64 `json:"late,omitempty"` // came after their number was given up
}

// New returns a wire from one file to another. They must not block, and stay
// the caller's.
func New(in, out int, t Terms, seed uint64) (*Wire, error) {
	wake, err := newBell()
	if err != nil {
		return nil, err
	}
	w := &Wire{in: in, out: out, line: impair.New(t.Impairment, seed), wake: wake}
	if err := w.obey(t); err != nil {
		wake.close()
		return nil, err
	}
	return w, nil
}

// obey changes the terms, and whether large packets stay whole.
func (w *Wire) obey(t Terms) error {
	w.line.Set(t.Impairment)
	w.most = t.Hold
	w.number(t.Number)
	if t.Number || t.Impairment != (vnet.Impairment{Delay: t.Impairment.Delay}) {
		return w.setOffloads(0)
	}
	err := w.setOffloads(offloads[0])
	if err != nil {
		err = w.setOffloads(offloads[1])
	}
	return err
}

// number begins to number frames, or ends it.
func (w *Wire) number(is bool) {
	switch {
	case !is:
		w.tagger = nil
	case w.tagger == nil:
		w.tagger = &tagger{epoch: byte(rand.Uint32())}
	}
}

func (w *Wire) setOffloads(which int) error {
	if err := unix.IoctlSetInt(w.in, unix.TUNSETOFFLOAD, which); err != nil {
		return fmt.Errorf("set offloads of a TAP device: %w", err)
	}
	return nil
}

// Set changes the terms for the frames that come from now on. Those that are
// held keep their fate.
func (w *Wire) Set(t Terms) {
	w.change.Store(&t)
	w.wake.ring()
}

// Counts are those so far.
func (w *Wire) Counts() Counts {
	c := &w.counts
	return Counts{c.passed.Load(), c.lost.Load(), c.duplicated.Load(), c.corrupted.Load(), c.overflowed.Load(), 0}
}

// Close makes Run return.
func (w *Wire) Close() {
	w.closed.Store(true)
	w.wake.ring()
}

// Run carries frames until Close, on a thread of its own, once.
func (w *Wire) Run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.wake.close()
	// Sleeps of this thread end when they are to, not up to 50 us later.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set the timer slack: %w", err)
	}
	defer w.drop()
	begun := time.Now()
	for !w.closed.Load() {
		if t := w.change.Swap(nil); t != nil {
			if err := w.obey(*t); err != nil {
				return err
			}
		}
		more, err := w.read(time.Since(begun))
		if err != nil {
			return err
		}
		w.write(time.Since(begun))
		w.woken = false
		if more {
			continue
		}
		if err := w.sleep(begun); err != nil {
			return err
		}
	}
	return nil
}

// drop lets go of what is held.
func (w *Wire) drop() {
	for {
		frame, ok := w.queue.Take(math.MaxInt64)
		if !ok {
			return
		}
		ofAll.Add(-int64(cap(frame)))
	}
}

// sleep waits for frames, or until the first one that is held is due. The thread
// wakes late, so it is to wake that much before, and then looks at the clock.
func (w *Wire) sleep(begun time.Time) error {
	var wait *unix.Timespec
	at, held := w.queue.Next()
	until := at - w.late
	if held {
		left := unix.NsecToTimespec(int64(max(0, until-time.Since(begun))))
		wait = &left
	}
	timed := held && wait.Nano() > 0
	polled := [2]unix.PollFd{{Fd: int32(w.wake.fd), Events: unix.POLLIN}, {Fd: int32(w.in), Events: unix.POLLIN}}
	n, err := unix.Ppoll(polled[:], wait, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for frames: %w", err)
	}
	if polled[0].Revents != 0 {
		w.wake.heard()
	}
	w.woken = n > 0
	if n == 0 && timed {
		w.learn(time.Since(begun) - until)
	}
	for n == 0 && held && time.Since(begun) < at {
		// less than mostLate
	}
	return nil
}

// mostLate bounds what the thread makes up for. When it wakes later than that, it
// lacks a processor, and looking at the clock would take one from others.
const mostLate = 100 * time.Microsecond

// learn takes in how late the thread woke: the mean of the last eight times or so.
func (w *Wire) learn(late time.Duration) {
	w.late = min(w.late+(late-w.late)/8, mostLate)
}

// read takes in some frames; true: there may be more. Those that had the thread wake
// came as much before as it wakes late.
func (w *Wire) read(now time.Duration) (more bool, err error) {
	if w.woken {
		now -= w.late
	}
	for range round {
		n, err := unix.Read(w.in, w.scratch[:])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read a frame: %w", err)
		case n > header:
			w.enter(now, w.scratch[:n])
		}
	}
	return true, nil
}

// enter decides what becomes of a frame, which begins with its header.
func (w *Wire) enter(now time.Duration, frame []byte) {
	copies := w.line.Decide(len(frame) - header)
	switch len(copies) {
	case 0:
		w.counts.lost.Add(1)
	case 2:
		w.counts.duplicated.Add(1)
	}
	for _, c := range copies {
		if w.held+len(frame) > w.most || w.taken > w.most+assured || ofAll.Load() > mostOfAll && w.taken > assured {
			w.counts.overflowed.Add(1)
			continue
		}
		held := append(w.buffer(len(frame)), frame...)
		w.taken += cap(held)
		ofAll.Add(int64(cap(held)))
		if c.Flip >= 0 {
			held[header+c.Flip/8] ^= 1 << (c.Flip % 8)
			w.counts.corrupted.Add(1)
		}
		w.held += len(held)
		w.queue.Put(now+c.Delay, held)
	}
}

// write sends what is due. What a device does not take is lost, as on a wire
// whose far end is down.
func (w *Wire) write(now time.Duration) {
	for {
		frame, ok := w.queue.Take(now)
		if !ok {
			return
		}
		w.held -= len(frame)
		w.taken -= cap(frame)
		ofAll.Add(-int64(cap(frame)))
		out := frame
		if w.tagger != nil {
			out = w.tagger.tag(frame)
		}
		if _, err := unix.Write(w.out, out); err == nil {
			w.counts.passed.Add(1)
		} else {
			w.counts.lost.Add(1)
		}
		if cap(frame) == pooled && len(w.free) < mostFree {
			w.free = append(w.free, frame[:0])
		}
	}
}

// Buffers that are used again: their room, and how many are kept.
const (
	pooled   = 2048
	mostFree = 256
)

// buffer is an empty one with room for so many bytes.
func (w *Wire) buffer(bytes int) []byte {
	if bytes > pooled {
		return make([]byte, 0, bytes)
	}
	if last := len(w.free) - 1; last >= 0 {
		b := w.free[last]
		w.free = w.free[:last]
		return b
	}
	return make([]byte, 0, pooled)
}
