package live

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// memory does not move, as a stack does.
var memory = make([]byte, 8*uringJobs)

// aRing is an io_uring, if there are any here.
func aRing(t *testing.T) *uring {
	t.Helper()
	u, err := newUring(4)
	if err != nil {
		t.Skip("no io_uring here: ", err)
	}
	t.Cleanup(u.close)
	return u
}

// aPipe keeps apart what is written to it.
func aPipe(t *testing.T) (from, to int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_DIRECT|unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
	return p[0], p[1]
}

// files registers files from 0 on.
func (u *uring) filesOf(t *testing.T, fds ...int) {
	t.Helper()
	for i, fd := range fds {
		if err := u.file(i, fd); err != nil {
			t.Fatal(err)
		}
	}
}

// What is put is done in order, what fails is told and stops nothing, and what
// a file has not got is not waited for.
func TestUringDoesAllInOrder(t *testing.T) {
	u := aRing(t)
	from, to := aPipe(t)
	u.filesOf(t, from, to)
	for round := range 10 {
		for i := range 3 {
			u.write(1, memory[2*i:][:copy(memory[2*i:], []byte{byte(round), byte(i)})])
		}
		u.write(2, memory)
		b := memory[100:]
		for i := range 5 {
			u.read(0, b[16*i:][:16])
		}
		u.run()
		want := []int32{0, 0, 0, -int32(unix.EBADF), 2, 2, 2, -int32(unix.EAGAIN), -int32(unix.EAGAIN)}
		for i, w := range want {
			if u.results[i] != w {
				t.Fatalf("round %d, %d: %d, want %d", round, i, u.results[i], w)
			}
		}
		for i := range 3 {
			if b[16*i] != byte(round) || b[16*i+1] != byte(i) {
				t.Errorf("round %d, read %d: %v", round, i, b[16*i:][:2])
			}
		}
	}
}

// A run does as many as the ring holds, however often.
func TestUringWraps(t *testing.T) {
	u := aRing(t)
	from, to := aPipe(t)
	u.filesOf(t, from, to)
	for round := range 50 {
		for n := 0; !u.full(); n += 2 {
			text := memory[8*n:][:8]
			u.write(1, fmt.Append(text[:0], n%100))
			u.read(0, text)
		}
		u.run()
		for i, got := range u.results {
			if i%2 == 1 && got != int32(len(fmt.Sprint((i-1)%100))) || i%2 == 0 && got != 0 {
				t.Fatalf("round %d, %d: %d", round, i, got)
			}
		}
	}
}

// A file that the ring had is closed with its last descriptor when it is taken
// back, so that a TAP device goes.
func TestUringLetsFilesGo(t *testing.T) {
	u := aRing(t)
	from, to := aPipe(t)
	copied, err := unix.Dup(to)
	if err != nil {
		t.Fatal(err)
	}
	u.filesOf(t, from, copied)
	unix.Close(copied)
	if err := unix.Dup3(from, to, unix.O_CLOEXEC); err != nil { // the other one
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if _, err := unix.Read(from, b); err != unix.EAGAIN {
		t.Errorf("read: %v", err)
	}
	if err := u.file(1, -1); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(from, b); n != 0 || err != nil {
		t.Errorf("read %d, %v, want the end", n, err)
	}
}

// Devices that the kernel would wait for are known.
func TestUringKnowsWhatWaits(t *testing.T) {
	u := aRing(t)
	from, _ := aPipe(t)
	if !u.waitless(from) {
		t.Error("a pipe is not for io_uring")
	}
	f, err := os.Open("/proc/self/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if u.waitless(int(f.Fd())) {
		t.Error("a file of /proc is")
	}
}

// A host whose ring the kernel refuses goes on with a call for each frame, and
// one without any does the same.
func TestGoesOnWithoutRing(t *testing.T) {
	aRing(t)
	l := newLab(t, fmt.Sprintf(pair, "1Gbit", "1Gbit"))
	if l.h.exchange.ring == nil || !l.h.ports[0].together.on {
		t.Fatal("TAP devices are not read together")
	}
	l.stream("a", "b")
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	ring := -1
	l.h.Do(context.Background(), func() {
		ring, _ = unix.Dup(l.h.exchange.ring.fd) // it holds the devices until it is closed
		err = unix.Dup3(null, l.h.exchange.ring.fd, unix.O_CLOEXEC)
	})
	defer unix.Close(ring)
	if err != nil {
		t.Fatal(err)
	}
	l.stream("a", "b")
	l.stream("b", "a")
	l.h.Do(context.Background(), func() {
		if l.h.exchange.ring != nil || l.h.ports[0].together.on {
			t.Error("the ring is still in use")
		}
	})
	if _, err := l.tcp("a", "b", 4<<20); err != nil {
		t.Error(err)
	}
}

// A round reads more of a port that had all it was asked for, one more than a
// port had that had less, and of long frames no more than may come in.
func TestReadsFollowWhatComes(t *testing.T) {
	h := &Host{}
	h.exchange.ring = aRing(t)
	from, to := aPipe(t)
	h.exchange.ring.filesOf(t, from, to)
	p := &port{}
	h.hot = []*port{p}
	p.together.on = true
	fetch := func(frames, size int) (asked, got int) {
		for range frames {
			unix.Write(to, make([]byte, size))
		}
		h.fetch(0, framesPerRound)
		p.together.next = len(p.together.frames)
		for _, ref := range p.together.frames {
			h.slots.give(ref)
		}
		return p.together.asked, p.together.next
	}
	for i, c := range []struct{ frames, size, asked, got int }{
		{1, 100, 1, 1}, {2, 100, 2, 2}, {4, 100, 4, 4}, {12, 100, 8, 8}, {4, 100, 16, 8}, {3, 100, 9, 3}, {0, 100, 4, 0}, {2, 4000, 1, 1},
		{4, 4000, 2, 2}, {4, 4000, 4, 4}, {4, 100, 4, 4},
	} {
		if asked, got := fetch(c.frames, c.size); asked != c.asked || got != c.got {
			t.Errorf("%d: asked for %d, got %d; want %d, %d", i, asked, got, c.asked, c.got)
		}
	}
	if h.slots.used != 0 {
		t.Errorf("%d slots are lost", h.slots.used)
	}
}
