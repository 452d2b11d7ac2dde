package impair

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch/impair"
)

// TestHeldFramesAreBounded: what is held is at most what the terms say, the rest
// is counted, and what is let go of counts no more.
func TestHeldFramesAreBounded(t *testing.T) {
	before := ofAll.Load()
	w := &Wire{out: -1, line: impair.New(vnet.Impairment{Delay: time.Second}, 1), most: 10_000}
	for range 25 {
		w.enter(0, make([]byte, 1000))
	}
	if w.held != 10_000 || w.queue.Len() != 10 || w.Counts().Overflowed != 15 || ofAll.Load()-before != 10*pooled {
		t.Errorf("%d bytes of %d frames are held, %+v, of all %d", w.held, w.queue.Len(), w.Counts(), ofAll.Load()-before)
	}
	w.write(time.Second) // nobody takes them
	if w.held != 0 || ofAll.Load() != before || len(w.free) != 10 || w.Counts().Lost != 10 {
		t.Errorf("%d bytes are held, of all %d, %d buffers, %+v", w.held, ofAll.Load()-before, len(w.free), w.Counts())
	}
	w.enter(time.Second, make([]byte, 5000))
	w.drop()
	if ofAll.Load() != before {
		t.Errorf("of all %d", ofAll.Load()-before)
	}
}

// Short frames take whole buffers: their memory is bounded too, and what others
// hold leaves each wire what is assured.
func TestShortFramesAreBoundedByMemory(t *testing.T) {
	w := &Wire{out: -1, line: impair.New(vnet.Impairment{Delay: time.Second}, 1), most: 1 << 20}
	defer w.drop()
	for range 10_000 {
		w.enter(0, make([]byte, header+14))
	}
	if w.taken < 1<<20 || w.taken > 1<<20+assured+pooled {
		t.Errorf("%d bytes of memory are taken", w.taken)
	}
	ofAll.Add(mostOfAll)
	defer ofAll.Add(-mostOfAll)
	other := &Wire{out: -1, line: impair.New(vnet.Impairment{Delay: time.Second}, 1), most: 1 << 20}
	defer other.drop()
	for range 10_000 {
		other.enter(0, make([]byte, 1000))
	}
	if other.taken < assured || other.taken > assured+pooled {
		t.Errorf("%d bytes while others hold all there is", other.taken)
	}
}

// TestEndedMergesLeaveNothing open.
func TestEndedMergesLeaveNothing(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := open()
	for range 50 {
		m, err := newMerge(ends[0], Terms{Hold: 1 << 20, Stall: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- m.Run() }()
		m.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m.Close() // who ends it twice harms nobody
	}
	if after := open(); after > before+10 {
		t.Errorf("%d descriptors were open, now %d are", before, after)
	}
}
