package impair

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

const frames = 200_000

// certain is how many standard deviations hold 99.99 % of a normal distribution.
const certain = 3.891

// binomial wants a count of frames within the 99.99 % interval of a share.
func binomial(t *testing.T, what string, count int, share vnet.Share) {
	t.Helper()
	p := float64(share) / float64(vnet.WholeShare)
	mean, deviation := p*frames, math.Sqrt(frames*p*(1-p))
	if d := math.Abs(float64(count) - mean); d > certain*deviation {
		t.Errorf("%s: %d of %d, want %.0f +- %.0f", what, count, frames, mean, certain*deviation)
	}
}

// TestShares: each share of frames is lost, corrupted, duplicated and
// reordered, within its binomial interval; 0 % and 100 % exactly.
func TestShares(t *testing.T) {
	for _, share := range []vnet.Share{0, 100, 10_000, 300_000, vnet.WholeShare} {
		t.Run(share.String(), func(t *testing.T) {
			lost, corrupt, twice, early := 0, 0, 0, 0
			loss := New(vnet.Impairment{Loss: share}, 1)
			other := New(vnet.Impairment{Delay: time.Millisecond, Corrupt: share, Duplicate: share, Reorder: share}, 2)
			for range frames {
				if len(loss.Decide(100)) == 0 {
					lost++
				}
				copies := other.Decide(100)
				if len(copies) == 2 {
					twice++
				}
				if copies[0].Flip >= 800 {
					t.Fatalf("bit %d of 800 is flipped", copies[0].Flip)
				}
				if copies[0].Flip >= 0 {
					corrupt++
				}
				if copies[0].Delay == 0 {
					early++
				}
			}
			binomial(t, "lost", lost, share)
			binomial(t, "corrupt", corrupt, share)
			binomial(t, "duplicated", twice, share)
			binomial(t, "reordered", early, share)
		})
	}
}

// TestDelays: mean and standard deviation are those that are stated.
func TestDelays(t *testing.T) {
	const delay, jitter = 20 * time.Millisecond, 4 * time.Millisecond
	for _, c := range []struct {
		distribution vnet.Distribution
		deviation    float64 // in units of the jitter
	}{
		{"", 1 / math.Sqrt(3)}, {vnet.Uniform, 1 / math.Sqrt(3)}, {vnet.Normal, 1}, {vnet.Pareto, 1}, {vnet.ParetoNormal, 1},
	} {
		t.Run(string(c.distribution), func(t *testing.T) {
			l := New(vnet.Impairment{Delay: delay, Jitter: jitter, Distribution: c.distribution}, 3)
			sum, squares := 0.0, 0.0
			for range frames {
				d := float64(l.Decide(100)[0].Delay-delay) / float64(jitter)
				sum, squares = sum+d, squares+d*d
			}
			mean := sum / frames
			deviation := math.Sqrt(squares/frames - mean*mean)
			if math.Abs(mean) > 0.02 || math.Abs(deviation-c.deviation) > 0.02 {
				t.Errorf("mean %.3f, deviation %.3f, want 0, %.3f", mean, deviation, c.deviation)
			}
		})
	}
}

// TestDistributions: delays differ from the uniform and the normal distribution
// by no more than 99.99 % of samples do (Kolmogorov and Smirnov).
func TestDistributions(t *testing.T) {
	const delay, jitter = 20 * time.Millisecond, 4 * time.Millisecond
	for d, below := range map[vnet.Distribution]func(x float64) float64{
		vnet.Uniform: func(x float64) float64 { return (x + 1) / 2 },
		vnet.Normal:  func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 },
	} {
		l := New(vnet.Impairment{Delay: delay, Jitter: jitter, Distribution: d}, 6)
		all := make([]float64, frames)
		for i := range all {
			all[i] = float64(l.Decide(100)[0].Delay-delay) / float64(jitter)
		}
		slices.Sort(all)
		most := 0.0
		for i, x := range all {
			most = max(most, math.Abs(below(x)-float64(i)/frames), math.Abs(below(x)-float64(i+1)/frames))
		}
		if bound := 2.225 / math.Sqrt(frames); most > bound {
			t.Errorf("%s: %.4f from its distribution, want at most %.4f", d, most, bound)
		}
	}
}

// TestNoDelayIsNegative, and without jitter all are alike.
func TestNoDelayIsNegative(t *testing.T) {
	for _, d := range vnet.Distributions {
		l := New(vnet.Impairment{Delay: time.Millisecond, Jitter: time.Millisecond, Distribution: d}, 4)
		for range frames {
			if got := l.Decide(1)[0].Delay; got < 0 {
				t.Fatalf("%s: %s", d, got)
			}
		}
	}
	l := New(vnet.Impairment{}, 5)
	l.Set(vnet.Impairment{Delay: time.Second})
	if got := l.Decide(0); len(got) != 1 || got[0] != (Copy{time.Second, -1}) {
		t.Errorf("got %+v", got)
	}
}

// TestQueueIsInOrder compares a queue with a sorted list.
func TestQueueIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			at    time.Duration
			order int
		}
		var q Queue[frame]
		var all []frame
		now, order := time.Duration(0), 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				f := frame{now + time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")), order}
				q.Put(f.at, f)
				all = append(all, f)
				slices.SortStableFunc(all, func(a, b frame) int { return cmp.Compare(a.at, b.at) })
				order++
				continue
			}
			now += time.Duration(rapid.IntRange(0, 3).Draw(t, "time"))
			for {
				if at, ok := q.Next(); ok != (len(all) > 0) || ok && at != all[0].at || q.Len() != len(all) {
					t.Fatalf("next is %s, %t, %d wait, want %v", at, ok, q.Len(), all)
				}
				got, ok := q.Take(now)
				if ok != (len(all) > 0 && all[0].at <= now) || ok && got != all[0] {
					t.Fatalf("at %s took %v, %t of %v", now, got, ok, all)
				}
				if !ok {
					break
				}
				all = all[1:]
			}
		}
	})
}

func BenchmarkLine(b *testing.B) {
	l := New(vnet.Impairment{Delay: 20 * time.Millisecond, Jitter: time.Millisecond, Distribution: vnet.Normal, Loss: 1000}, 1)
	var q Queue[[]byte]
	for range 4096 {
		q.Put(0, nil)
	}
	now := time.Duration(0)
	for b.Loop() {
		now += 12 * time.Microsecond
		for _, c := range l.Decide(1514) {
			q.Put(now+c.Delay, nil)
		}
		q.Take(now)
	}
}
