package impair

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// merging is a merge between a pair of sockets, in place of a TAP device.
type merging struct {
	t    *testing.T
	far  int
	from tagger
}

func newMerging(t *testing.T, stall time.Duration) *merging {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		t.Fatal(err)
	}
	m, err := newMerge(pair[0], Terms{Stall: stall, Hold: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run() }()
	t.Cleanup(func() {
		m.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		unix.Close(pair[0])
		unix.Close(pair[1])
	})
	timeout := unix.NsecToTimeval(int64(10 * time.Second))
	if err := unix.SetsockoptTimeval(pair[1], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		t.Fatal(err)
	}
	return &merging{t: t, far: pair[1]}
}

// frame is one of the tenant's, which says its number.
func frame(n int) []byte {
	b := make([]byte, header+60)
	binary.BigEndian.PutUint32(b[header+14:], uint32(n))
	return b
}

// tagged is a frame that went by a path.
func (m *merging) tagged(n, path int) []byte {
	b := bytes.Clone(m.from.tag(frame(n)))
	b[header+tagAt+2] = byte(path)
	return b
}

func (m *merging) send(b []byte) {
	m.t.Helper()
	if _, err := unix.Write(m.far, b); err != nil {
		m.t.Fatal(err)
	}
}

// comes wants frames, and no other before them.
func (m *merging) comes(numbers ...int) {
	m.t.Helper()
	for _, n := range numbers {
		var b [2048]byte
		size, err := unix.Read(m.far, b[:])
		if err != nil {
			m.t.Fatalf("frame %d: %v", n, err)
		}
		if !bytes.Equal(b[:size], frame(n)) {
			m.t.Fatalf("%x came in place of frame %d", b[:size], n)
		}
	}
}

// Frames of two paths come in the order in which they were numbered, whole and without
// their tags; one that is lost is waited for no longer than the stall.
func TestMerge(t *testing.T) {
	m := newMerging(t, 20*time.Millisecond)
	first, second, third := m.tagged(0, 0), m.tagged(1, 1), m.tagged(2, 0)
	m.send(second)
	m.send(first)
	m.send(third)
	m.comes(0, 1, 2)
	_ = m.tagged(3, 1) // is lost
	m.send(m.tagged(4, 0))
	m.comes(4)
	for n := 5; n < 200; n += 2 {
		odd, even := m.tagged(n, 0), m.tagged(n+1, 1)
		m.send(odd)
		m.send(even)
		m.comes(n, n+1)
	}
}

// A process that numbers anew is followed at once; so is one of the same epoch, once it
// is clear that its numbers are no late ones.
func TestMergeFollowsNewNumbers(t *testing.T) {
	m := newMerging(t, 20*time.Millisecond)
	m.from.next = 5000
	m.send(m.tagged(0, 0))
	m.comes(0)
	m.from = tagger{epoch: m.from.epoch + 1}
	m.send(m.tagged(1, 0))
	m.comes(1)
	m.from.next = 1 << 30
	m.send(m.tagged(2, 0))
	m.comes(2)
	m.from.next = 7
	for range mostAstray + 1 {
		m.send(m.tagged(3, 0))
	}
	m.send(m.tagged(4, 0))
	m.comes(4)
}

// What has no tag, or one of no path, goes no further.
func TestMergeTakesNumberedFramesOnly(t *testing.T) {
	m := newMerging(t, 20*time.Millisecond)
	m.send(frame(0))
	m.send(make([]byte, header))
	m.send(m.tagged(1, mostPaths))
	m.from.next = 0
	m.send(m.tagged(2, 0))
	m.comes(2)
}
