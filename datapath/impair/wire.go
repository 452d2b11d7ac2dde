// Package impair carries the frames of impaired links in user space, on kernels
// without a queue that delays (netem): one thread reads the TAP devices of a
// wire, asks impair.Line what becomes of each frame, and writes what is due.
//
// Where each frame has a fate of its own, the kernel cuts large packets and
// finishes checksums before they come here, so what is lost or corrupted is a
// frame of the wire. Where all are delayed alike, large packets stay whole:
// offloads of the device are switched with the impairment.
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
	header   = 10                  // virtio_net_hdr, before each frame
	largest  = header + 1<<16 + 64 // bytes of a large packet
	mostHeld = 1 << 26             // bytes held in one direction: half a second of 1 Gbit/s
	round    = 64                  // frames read of a device before others have their turn
)

// offloads are what the kernel may leave undone of what all frames share:
// checksums, TCP and UDP segments (linux/if_tun.h); older kernels have no USO.
var offloads = []int{
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN,
}

// Wire joins TAP devices (IFF_VNET_HDR): what leaves by one comes in by another,
// or by itself, impaired.
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
	scratch [largest]byte
	free    [][]byte // of frames of the wire
	counts  Counts
}

// Counts of one direction, of frames.
type Counts struct {
	Passed, Lost, Duplicated, Corrupted uint64
	Overflowed                          uint64 // more would have been held than mostHeld
}

// New returns a wire that carries frames from in[i] to out[i] with an
// impairment. The files must not block, and stay the caller's.
func New(in, out []int, impairments []vnet.Impairment, seed uint64) (*Wire, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	w := &Wire{wake: wake}
	for i := range in {
		d := &direction{in: in[i], out: out[i], line: impair.New(impairments[i], seed+uint64(i))}
		w.directions = append(w.directions, d)
		if err := d.set(impairments[i]); err != nil {
			unix.Close(wake)
			return nil, err
		}
	}
	return w, nil
}

// set changes the impairment, and whether large packets stay whole.
func (d *direction) set(i vnet.Impairment) error {
	d.line.Set(i)
	if i != (vnet.Impairment{Delay: i.Delay}) {
		return d.setOffloads(0)
	}
	err := d.setOffloads(offloads[0])
	if err != nil {
		err = d.setOffloads(offloads[1])
	}
	return err
}

func (d *direction) setOffloads(which int) error {
	if err := unix.IoctlSetInt(d.in, unix.TUNSETOFFLOAD, which); err != nil {
		return fmt.Errorf("set offloads of a TAP device: %w", err)
	}
	return nil
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
			if err := d.takeChange(); err != nil {
				return err
			}
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

func (d *direction) takeChange() error {
	if i := d.change.Swap(nil); i != nil {
		return d.set(*i)
	}
	return nil
}

// read takes in some frames; true: there may be more.
func (d *direction) read(now time.Duration) (more bool, err error) {
	for range round {
		n, err := unix.Read(d.in, d.scratch[:])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read a frame: %w", err)
		case n > header:
			d.enter(now, d.scratch[:n])
		}
	}
	return true, nil
}

// enter decides what becomes of a frame, which begins with its header.
func (d *direction) enter(now time.Duration, frame []byte) {
	copies := d.line.Decide(len(frame) - header)
	switch len(copies) {
	case 0:
		d.counts.Lost++
	case 2:
		d.counts.Duplicated++
	}
	for _, c := range copies {
		if d.held+len(frame) > mostHeld {
			d.counts.Overflowed++
			continue
		}
		held := append(d.buffer(len(frame)), frame...)
		if c.Flip >= 0 {
			held[header+c.Flip/8] ^= 1 << (c.Flip % 8)
			d.counts.Corrupted++
		}
		d.held += len(held)
		d.queue.Put(now+c.Delay, held)
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
		if cap(frame) == pooled {
			d.free = append(d.free, frame[:0])
		}
	}
}

// pooled is the room of the buffers that are used again.
const pooled = 2048

// buffer is an empty one with room for so many bytes.
func (d *direction) buffer(bytes int) []byte {
	if bytes > pooled {
		return make([]byte, 0, bytes)
	}
	if last := len(d.free) - 1; last >= 0 {
		b := d.free[last]
		d.free = d.free[:last]
		return b
	}
	return make([]byte, 0, pooled)
}
