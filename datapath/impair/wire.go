// Package impair carries the frames of impaired links in user space, on kernels
// without a queue that delays (netem): one thread reads the TAP devices of a
// wire, asks impair.Line what becomes of each frame, and writes what is due.
//
// The devices take no offloads, so the kernel cuts large packets and finishes
// checksums before they come here: what is lost or corrupted is a frame of the
// wire, never a part of a large packet more than it should be.
package impair

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch/impair"
)

// Frames of a wire.
const (
	frameRoom = 9216    // bytes of the largest one
	mostHeld  = 1 << 26 // bytes held in one direction: half a second of 1 Gbit/s
	round     = 64      // frames read of a device before others have their turn
)

// Wire joins two TAP devices, or one with itself: what is written to a device
// is read by its other end, delayed.
type Wire struct {
	directions []*direction
	wake       int // eventfd
	closed     atomic.Bool
}

// direction is one of a wire's.
type direction struct {
	in, out int // files of TAP devices
	line    *impair.Line
	change  atomic.Pointer[vnet.Impairment] // to take effect
	queue   impair.Queue[[]byte]
	held    int // bytes
	free    [][]byte
	counts  Counts
}

// Counts of one direction, of frames.
type Counts struct {
	Passed, Lost, Duplicated, Corrupted uint64
	Overflowed                          uint64 // more would have been held than mostHeld
}

// New returns a wire that carries frames from in[i] to out[i] with an
// impairment. It closes none of the files, which must not block.
func New(in, out []int, impairments []vnet.Impairment, seed uint64) (*Wire, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	w := &Wire{wake: wake}
	for i := range in {
		w.directions = append(w.directions, &direction{in: in[i], out: out[i], line: impair.New(impairments[i], seed+uint64(i))})
	}
	return w, nil
}

// Set changes the impairment of direction i for the frames that come from now
// on. Those that are held keep their fate.
func (w *Wire) Set(i int, impairment vnet.Impairment) {
	w.directions[i].change.Store(&impairment)
	w.poke()
}

// Close makes Run return.
func (w *Wire) Close() {
	w.closed.Store(true)
	w.poke()
}

func (w *Wire) poke() { _, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Run carries frames until Close, on a thread of its own.
func (w *Wire) Run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.Close(w.wake)
	// Sleeps of this thread end when they are to, not up to 50 us later.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set the timer slack: %w", err)
	}
	begun := time.Now()
	polled := []unix.PollFd{{Fd: int32(w.wake), Events: unix.POLLIN}}
	for _, d := range w.directions {
		polled = append(polled, unix.PollFd{Fd: int32(d.in), Events: unix.POLLIN})
	}
	for !w.closed.Load() {
		busy := false
		for _, d := range w.directions {
			d.takeChange()
			more, err := d.read(time.Since(begun))
			if err != nil {
				return err
			}
			d.write(time.Since(begun))
			busy = busy || more
		}
		if busy {
			continue
		}
		if err := w.sleep(polled, begun); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for frames, or until the first one that is held is due.
func (w *Wire) sleep(polled []unix.PollFd, begun time.Time) error {
	var wait *unix.Timespec
	for _, d := range w.directions {
		at, ok := d.queue.Next()
		if !ok {
			continue
		}
		if left := unix.NsecToTimespec(int64(max(0, at-time.Since(begun)))); wait == nil || left.Nano() < wait.Nano() {
			wait = &left
		}
	}
	if _, err := unix.Ppoll(polled, wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for frames: %w", err)
	}
	if polled[0].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(w.wake, count[:])
	}
	return nil
}

func (d *direction) takeChange() {
	if i := d.change.Swap(nil); i != nil {
		d.line.Set(*i)
	}
}

// read takes in some frames; true: there may be more.
func (d *direction) read(now time.Duration) (more bool, err error) {
	for range round {
		frame := d.buffer()
		n, err := unix.Read(d.in, frame[:cap(frame)])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			d.free = append(d.free, frame)
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read a frame: %w", err)
		}
		d.enter(now, frame[:n])
	}
	return true, nil
}

// enter decides what becomes of a frame.
func (d *direction) enter(now time.Duration, frame []byte) {
	copies := d.line.Decide(len(frame))
	if len(copies) == 0 {
		d.counts.Lost++
	}
	for i, c := range copies {
		if d.held+len(frame) > mostHeld {
			d.counts.Overflowed++
			continue
		}
		held := frame
		if i > 0 || i+1 < len(copies) { // each copy has bytes of its own
			held = append(d.buffer(), frame...)
		}
		if c.Flip >= 0 {
			held[c.Flip/8] ^= 1 << (c.Flip % 8)
			d.counts.Corrupted++
		}
		d.held += len(held)
		d.queue.Put(now+c.Delay, held)
	}
	if len(copies) == 2 {
		d.counts.Duplicated++
	}
	if len(copies) != 1 {
		d.free = append(d.free, frame[:0])
	}
}

// write sends what is due. What a device does not take is lost, as on a wire
// whose far end is down.
func (d *direction) write(now time.Duration) {
	for {
		frame, ok := d.queue.Take(now)
		if !ok {
			return
		}
		d.held -= len(frame)
		if _, err := unix.Write(d.out, frame); err == nil {
			d.counts.Passed++
		} else {
			d.counts.Lost++
		}
		d.free = append(d.free, frame[:0])
	}
}

// buffer is an empty one with room for a frame.
func (d *direction) buffer() []byte {
	if last := len(d.free) - 1; last >= 0 {
		b := d.free[last]
		d.free = d.free[:last]
		return b[:0]
	}
	return make([]byte, 0, frameRoom)
}
