package impair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vxswitch/split"
)

// A frame that goes by one of several paths whose order is kept has a tag behind its
// addresses of Ethernet (struct tag of datapath/vxlink):
//
//	EtherType 0x88b5 | path, 8 bits | epoch, 8 bits | number, 32 bits
//
// The wire at which a link begins writes it but for the path, which is chosen by the
// program that takes the frame over. The epoch tells numbers from those that another
// process gave out before this one. 0x88b5 is for local experiments (IEEE 802), and
// no frame leaves the substrate with it.
const (
	tagBytes = 8
	tagType  = 0x88b5
	tagAt    = 12 // in a frame

	mostPaths = 8
)

// tagger numbers frames.
type tagger struct {
	epoch  byte
	next   split.Number
	tagged [largest + tagBytes]byte
}

// tag returns a frame with its header, tagged; it is good until the next.
func (t *tagger) tag(frame []byte) []byte {
	const at = header + tagAt
	if len(frame) < at {
		return nil
	}
	out := t.tagged[:len(frame)+tagBytes]
	copy(out, frame[:at])
	binary.BigEndian.PutUint16(out[at:], tagType)
	out[at+2], out[at+3] = 0, t.epoch
	binary.BigEndian.PutUint32(out[at+4:], uint32(t.next))
	copy(out[at+tagBytes:], frame[at:])
	t.next++
	return out
}

// Merge takes the frames of a link's paths that leave by a TAP device, and lets them
// come in by it again in the order of their numbers, without their tags.
type Merge struct {
	file    int
	terms   Terms
	order   *split.Resequencer[[]byte]
	epoch   byte
	begun   bool
	astray  int // frames in a row whose numbers were given up
	scratch [largest + tagBytes]byte
	free    [][]byte
	passed  atomic.Uint64
	late    atomic.Uint64
	full    atomic.Uint64
	wake    *bell
	closed  atomic.Bool
}

// NewMerge is one of a device. Its terms say how long a frame waits for others, and
// how many bytes each path holds meanwhile.
func NewMerge(file int, t Terms) (*Merge, error) {
	if err := unix.IoctlSetInt(file, unix.TUNSETOFFLOAD, 0); err != nil {
		return nil, fmt.Errorf("set offloads of a TAP device: %w", err)
	}
	return newMerge(file, t)
}

// newMerge is one of any file that takes a frame at a time.
func newMerge(file int, t Terms) (*Merge, error) {
	wake, err := newBell()
	if err != nil {
		return nil, err
	}
	buffers := make([]int, mostPaths)
	for i := range buffers {
		buffers[i] = t.Hold
	}
	return &Merge{file: file, terms: t, order: split.NewResequencer[[]byte](buffers, t.Stall), wake: wake}, nil
}

// Counts are those so far. Frames whose numbers were given up are lost.
func (m *Merge) Counts() Counts {
	return Counts{Passed: m.passed.Load(), Late: m.late.Load(), Overflowed: m.full.Load()}
}

// Close makes Run return.
func (m *Merge) Close() {
	m.closed.Store(true)
	m.wake.ring()
}

// Run carries frames until Close, on a thread of its own, once.
func (m *Merge) Run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer m.wake.close()
	begun := time.Now()
	for !m.closed.Load() {
		more, err := m.read()
		if err != nil {
			return err
		}
		again := m.write(time.Since(begun))
		if more {
			continue
		}
		var wait *unix.Timespec
		if again > 0 {
			left := unix.NsecToTimespec(int64(max(0, again-time.Since(begun))))
			wait = &left
		}
		polled := [2]unix.PollFd{{Fd: int32(m.wake.fd), Events: unix.POLLIN}, {Fd: int32(m.file), Events: unix.POLLIN}}
		if _, err := unix.Ppoll(polled[:], wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for frames: %w", err)
		}
	}
	return nil
}

// read takes in some frames; true: there may be more.
func (m *Merge) read() (more bool, err error) {
	for range round {
		n, err := unix.Read(m.file, m.scratch[:])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read a frame: %w", err)
		}
		m.enter(m.scratch[:n])
	}
	return true, nil
}

// Bounds of when a resequencer begins anew: what a splitter has at most numbered
// before its first frame came, and how many frames in a row may come whose numbers
// were given up, before these are taken for those of a splitter that began anew.
const (
	justBegun  = 1024
	mostAstray = 256
)

// enter takes a frame in. One without a tag is of no path.
func (m *Merge) enter(frame []byte) {
	const at = header + tagAt
	if len(frame) < at+tagBytes || binary.BigEndian.Uint16(frame[at:]) != tagType || frame[at+2] >= mostPaths {
		m.late.Add(1)
		return
	}
	path, epoch, n := int(frame[at+2]), frame[at+3], split.Number(binary.BigEndian.Uint32(frame[at+4:]))
	if !m.begun || epoch != m.epoch || m.astray > mostAstray {
		m.begun, m.epoch, m.astray = true, epoch, 0
		first := n
		if first < justBegun {
			first = 0
		}
		m.order.Restart(first)
	}
	held := append(m.buffer(len(frame)-tagBytes), frame[:at]...)
	held = append(held, frame[at+tagBytes:]...)
	late := m.order.Late
	if m.order.Push(path, n, cap(held), held) {
		m.astray = 0
		return
	}
	m.keep(held)
	if m.order.Late > late {
		m.astray++
		m.late.Add(1)
		return
	}
	m.full.Add(1)
}

// write sends what is in order, and says when to look again if nothing comes; 0:
// then there is nothing to send.
func (m *Merge) write(now time.Duration) (again time.Duration) {
	for {
		frame, ok, again := m.order.Pop(now)
		if !ok {
			return again
		}
		if _, err := unix.Write(m.file, frame); err == nil {
			m.passed.Add(1)
		} else {
			m.full.Add(1)
		}
		m.keep(frame)
	}
}

// buffer is an empty one with room for so many bytes.
func (m *Merge) buffer(bytes int) []byte {
	last := len(m.free) - 1
	if bytes > pooled || last < 0 {
		return make([]byte, 0, max(bytes, pooled))
	}
	b := m.free[last]
	m.free = m.free[:last]
	return b
}

// keep lets a buffer be used again.
func (m *Merge) keep(b []byte) {
	if cap(b) == pooled && len(m.free) < mostFree {
		m.free = append(m.free, b[:0])
	}
}
