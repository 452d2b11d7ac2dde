package split

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every path stays within a packet for each path of its part, whatever the
// sizes.
func TestSplitterKeepsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 5).Draw(t, "weights")
		sum := 0
		for _, w := range weights {
			sum += w
		}
		s := NewSplitter(weights)
		sent, total, largest := make([]int, len(weights)), 0, 0
		for i := range 300 {
			size := rapid.SampledFrom([]int{64, 100, 576, 1350, 1500, 9000}).Draw(t, "size")
			path, n := s.Choose(size)
			if n != Number(i) {
				t.Fatalf("packet %d got number %d", i, n)
			}
			sent[path] += size
			total += size
			largest = max(largest, size)
		}
		for i, w := range weights {
			share := float64(total) * float64(w) / float64(sum)
			if diff := float64(sent[i]) - share; diff > float64(largest*len(weights)) || diff < -float64(largest*len(weights)) {
				t.Errorf("path %d of weight %d/%d sent %d of %d bytes", i, w, sum, sent[i], total)
			}
		}
	})
}

// Sums that would overflow are settled before they do.
func TestSplitterForever(t *testing.T) {
	s := NewSplitter([]int{1, 1})
	s.sent[0], s.sent[1] = 1<<63, 1<<63
	paths := [2]int{}
	for range 1000 {
		p, _ := s.Choose(1500)
		paths[p]++
	}
	if paths != [2]int{500, 500} {
		t.Errorf("paths %v", paths)
	}
}

// step is one event at the far end.
type step struct {
	at   time.Duration
	path int
	n    Number
}

// outcome runs steps through a resequencer that is asked whenever it wants to
// be, and returns what left when.
func outcome(t *testing.T, r *Resequencer[Number], steps []step) (out []Number, at []time.Duration) {
	t.Helper()
	drain := func(now, until time.Duration) {
		for {
			n, ok, again := r.Pop(now)
			switch {
			case ok:
				out, at = append(out, n), append(at, now)
			case again == 0 || again > until:
				return
			case again <= now:
				t.Fatalf("asked at %v to ask again at %v", now, again)
			default:
				now = again
			}
		}
	}
	for i, s := range steps {
		r.Push(s.path, s.n, 100, s.n)
		until := time.Hour
		if i+1 < len(steps) {
			until = steps[i+1].at - 1
		}
		drain(s.at, until)
	}
	return out, at
}

func TestResequencer(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		first Number
		steps []step
		out   []Number
		last  time.Duration
	}{
		"in order":         {0, []step{{1, 0, 0}, {2, 1, 1}, {3, 0, 2}}, []Number{0, 1, 2}, 3},
		"slow path":        {0, []step{{1, 0, 1}, {2, 0, 2}, {3, 1, 0}}, []Number{0, 1, 2}, 3},
		"lost, proven":     {0, []step{{1, 0, 1}, {2, 1, 2}}, []Number{1, 2}, 2},
		"lost, stalled":    {0, []step{{1, 0, 1}}, []Number{1}, 1 + 10*ms},
		"late is dropped":  {0, []step{{1, 0, 1}, {20 * ms, 1, 0}, {21 * ms, 1, 2}}, []Number{1, 2}, 21 * ms},
		"dead path":        {0, []step{{1, 0, 1}, {20 * ms, 0, 3}, {21 * ms, 0, 5}}, []Number{1, 3, 5}, 21 * ms},
		"path comes back":  {0, []step{{1, 0, 1}, {20 * ms, 0, 3}, {21 * ms, 1, 4}, {22 * ms, 0, 6}, {23 * ms, 1, 5}}, []Number{1, 3, 4, 5, 6}, 23 * ms},
		"numbers wrap":     {1<<32 - 2, []step{{1, 0, 1<<32 - 1}, {2, 0, 0}, {3, 1, 1<<32 - 2}}, []Number{1<<32 - 2, 1<<32 - 1, 0}, 3},
		"several missing":  {0, []step{{1, 0, 5}, {2, 1, 3}}, []Number{3, 5}, 2 + 10*ms},
		"stall from miss":  {0, []step{{1, 0, 0}, {50 * ms, 0, 2}}, []Number{0, 2}, 60 * ms},
		"repeated is late": {0, []step{{1, 0, 0}, {2, 1, 0}}, []Number{0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewResequencer[Number]([]int{1000, 1000}, 10*ms)
			r.expected = c.first
			out, at := outcome(t, r, c.steps)
			if len(out) != len(c.out) || len(at) == 0 || at[len(at)-1] != c.last {
				t.Fatalf("out %v at %v, want %v, the last at %v", out, at, c.out, c.last)
			}
			for i := range out {
				if out[i] != c.out[i] {
					t.Errorf("out %v, want %v", out, c.out)
				}
			}
		})
	}
}

// Whatever paths lose and however long they take: nothing overtakes, nothing
// stays, nothing waits longer than a stall for each number that is missing,
// and without loss or overflow everything comes out.
func TestResequencerKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const stall = 50 * time.Nanosecond
		lossy := rapid.Bool().Draw(t, "lossy")
		r := NewResequencer[Number]([]int{1 << 20, 1 << 20, 1 << 20}, stall)
		clock := [3]time.Duration{}
		var pending [3][]step
		const packets = 100
		lost := 0
		for n := range Number(packets) {
			p := rapid.IntRange(0, 2).Draw(t, "path")
			// Up to 12 packets of at most 4 ns: without loss no path is
			// more than the stall behind.
			clock[p] = max(clock[p], time.Duration(n)) + time.Duration(rapid.IntRange(0, 1).Draw(t, "delay"))
			if lossy && rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				lost++
				continue
			}
			pending[p] = append(pending[p], step{clock[p], p, n})
		}
		var out []Number
		now := time.Duration(0)
		for now < 10*packets*stall {
			for p := range pending {
				for len(pending[p]) > 0 && pending[p][0].at <= now {
					r.Push(p, pending[p][0].n, 64, pending[p][0].n)
					pending[p] = pending[p][1:]
				}
			}
			for {
				n, ok, again := r.Pop(now)
				if !ok {
					if again > now+stall {
						t.Fatalf("at %v it wants to wait until %v", now, again)
					}
					break
				}
				out = append(out, n)
			}
			now++
		}
		for i := 1; i < len(out); i++ {
			if !out[i-1].Before(out[i]) {
				t.Fatalf("%d left before %d", out[i-1], out[i])
			}
		}
		if len(out)+int(r.Late)+lost != packets {
			t.Errorf("%d out, %d late, %d lost of %d", len(out), r.Late, lost, packets)
		}
		if !lossy && len(out) != packets {
			t.Errorf("%d of %d came out", len(out), packets)
		}
	})
}

// A full buffer drops what comes and nothing else.
func TestResequencerBuffer(t *testing.T) {
	r := NewResequencer[int]([]int{300, 300}, time.Second)
	for n, want := range []bool{true, true, true, false} {
		if got := r.Push(0, Number(n+1), 100, n); got != want {
			t.Errorf("packet %d: %v", n, got)
		}
	}
	if _, ok, again := r.Pop(5); ok || again != 5+time.Second {
		t.Errorf("it does not wait for the other path: %v", again)
	}
	if !r.Push(1, 0, 300, 9) {
		t.Error("the other path has no room")
	}
	for _, want := range []int{9, 0, 1, 2} {
		if got, ok, _ := r.Pop(6); !ok || got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if r.paths[0].held != 0 || r.paths[1].held != 0 {
		t.Error("bytes stay")
	}
}

// A resequencer that begins anew holds nothing of before, waits for all paths, and
// takes numbers that it had given up.
func TestResequencerRestarts(t *testing.T) {
	r := NewResequencer[int]([]int{300, 300}, 10)
	r.Push(0, 5, 300, 5)
	if v, ok, _ := r.Pop(0); ok {
		t.Fatalf("%d did not wait", v)
	}
	if v, ok, _ := r.Pop(10); !ok || v != 5 {
		t.Fatalf("%d, %v after the stall", v, ok)
	}
	r.Push(0, 9, 300, 9)
	r.Restart(2)
	if !r.Push(0, 3, 300, 3) {
		t.Error("the buffer is still full")
	}
	if v, ok, again := r.Pop(20); ok || again != 30 {
		t.Errorf("%d came, or is asked for at %v: the other path is silent", v, again)
	}
	r.Push(1, 2, 100, 2)
	for _, want := range []int{2, 3} {
		if v, ok, _ := r.Pop(21); !ok || v != want {
			t.Errorf("%d, want %d", v, want)
		}
	}
	if _, ok, _ := r.Pop(22); ok {
		t.Error("something of before came")
	}
}

// TestPathThatKeepsNoOrder: what it brings behind a later packet is dropped once the later
// one went out, whatever was waited for.
func TestPathThatKeepsNoOrder(t *testing.T) {
	const stall = time.Second
	r := NewResequencer[Number]([]int{1000, 1000}, stall)
	for _, n := range []Number{2, 0, 4, 3} {
		if !r.Push(0, n, 100, n) {
			t.Fatalf("%d is refused", n)
		}
	}
	var out []Number
	for now := time.Duration(0); now < 5*stall; now += stall {
		for {
			n, ok, _ := r.Pop(now)
			if !ok {
				break
			}
			out = append(out, n)
		}
	}
	if !slices.Equal(out, []Number{2, 4}) || r.Late != 2 {
		t.Errorf("%v went out, %d were late", out, r.Late)
	}
	for range 10 { // nothing is held any more
		if !r.Push(0, 5, 100, 5) {
			t.Fatal("the buffer is full")
		}
	}
}
