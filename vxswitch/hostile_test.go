package vxswitch_test

import (
	"math/rand/v2"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// broken is a scheduler of a tenant that does not mean well. In virtual time
// its slowness is what it adds to the switch's clock.
type broken struct {
	how   string
	clock *vxswitch.Time
}

func (b broken) String() string { return b.how }

func (b broken) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	if b.how == "panics when made" {
		panic("no")
	}
	return &brokenScheduler{broken: b, n: n, e: e, inner: sched.RR{}.New(n, e)}
}

type brokenScheduler struct {
	broken
	n     int
	e     vxswitch.Entries
	inner vxswitch.Scheduler
	calls int
}

func (b *brokenScheduler) Wake(i int)       { b.inner.Wake(i) }
func (b *brokenScheduler) Sleep(i int)      { b.inner.Sleep(i) }
func (b *brokenScheduler) Changed(int)      {}
func (b *brokenScheduler) Sent(i, size int) { b.inner.Sent(i, size) }

func (b *brokenScheduler) Pick(now vxswitch.Time) int {
	b.calls++
	switch b.how {
	case "returns nothing":
		return vxswitch.Nobody
	case "returns an empty queue":
		return (b.inner.Pick(now) + 1) % b.n
	case "returns what is not there":
		return 1 << 20 * (b.calls%3 - 1)
	case "is slow":
		*b.clock += 1e6
	case "panics":
		panic("no")
	case "looks at queues that are not its":
		b.e.Head(b.n + 7)
		b.e.Size(-3)
	}
	return b.inner.Pick(now)
}

var waysToBreak = []string{"returns nothing", "returns an empty queue", "returns what is not there", "is slow", "panics", "panics when made", "looks at queues that are not its"}

// TestBrokenSchedulerCostsNeighboursNothing runs a victim beside a switch whose
// scheduler is broken and saturates its share, and beside one that is honest:
// the victim gets the same service, frame by frame, to within one quantum.
func TestBrokenSchedulerCostsNeighboursNothing(t *testing.T) {
	for _, host := range []vxswitch.SchedulerKind{sched.DRR{}, sched.RR{}} {
		honest := victimDelays(t, host, sched.RR{}, new(vxswitch.Time))
		for _, how := range waysToBreak {
			clock := new(vxswitch.Time)
			got := victimDelays(t, host, broken{how, clock}, clock)
			if len(got) != len(honest) {
				t.Errorf("%v: beside a scheduler that %s the victim delivers %d frames, else %d", host, how, len(got), len(honest))
				continue
			}
			for i := range got {
				// one quantum and one frame of the neighbour's, 1 byte a microsecond
				if late := got[i] - honest[i]; late > 3000*byteTime {
					t.Errorf("%v: beside a scheduler that %s frame %d leaves %d ns later", host, how, i, late)
					break
				}
			}
		}
	}
}

// victimDelays returns when the frames of switch 0 leave, beside a neighbour
// that always has something to send.
func victimDelays(t *testing.T, host, neighbour vxswitch.SchedulerKind, clock *vxswitch.Time) (at []vxswitch.Time) {
	cfg := small(host, 2)
	cfg.Clock, cfg.PickBudget = func() vxswitch.Time { return *clock }, 1000
	d := newDriver(t, cfg)
	quantum := func(p *vxswitch.Port) { p.Quantum, p.Out = 1500, 4*vnet.Mbit }
	d.apply(0, vxswitch.Add{Virtual: member("victim", 2, sched.RR{}, quantum)}, vxswitch.Add{Virtual: member("neighbour", 2, neighbour, quantum)})
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 2000 {
		now := vxswitch.Time(i) * 750 * byteTime
		if i%4 == 0 { // a third of its half
			d.enqueue(arrival{at: now, vs: 0, in: r.IntN(2), size: int32(64 + r.IntN(900))}, i)
		} else {
			d.enqueue(arrival{at: now, vs: 1, in: r.IntN(2), size: 1500}, i)
		}
	}
	d.drain(vxswitch.Forever - 1)
	d.balance()
	for _, dep := range d.all {
		if dep.Switch == 0 {
			at = append(at, dep.Start)
		}
	}
	return at
}

// TestBrokenSchedulerIsSeen: faults are counted at the switch that has them.
func TestBrokenSchedulerIsSeen(t *testing.T) {
	for _, how := range waysToBreak[1:6] {
		clock := new(vxswitch.Time)
		cfg := small(sched.DRR{}, 2)
		cfg.Clock, cfg.PickBudget = func() vxswitch.Time { return *clock }, 1000
		d := newDriver(t, cfg)
		d.apply(0, vxswitch.Add{Virtual: member("a", 2, broken{how, clock})}, vxswitch.Add{Virtual: member("b", 2, sched.DRR{})})
		for i := range 20 {
			d.enqueue(arrival{vs: i % 2, in: i / 2 % 2, size: 500}, i)
		}
		d.drain(vxswitch.Forever - 1)
		if d.s.Counters(0).Faults == 0 || d.s.Counters(1).Faults != 0 {
			t.Errorf("a scheduler that %s: %d faults, its neighbour %d", how, d.s.Counters(0).Faults, d.s.Counters(1).Faults)
		}
		if c := d.s.Counters(0); c.Delivered.Packets != 10 {
			t.Errorf("a scheduler that %s: %d of its 10 frames left", how, c.Delivered.Packets)
		}
	}
}

// TestSteadyStateAllocatesNothing, with every scheduler and both sharing rules.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, k := range sched.Schedulers() {
		for _, sharing := range []vxswitch.Sharing{vxswitch.Strict, vxswitch.Flexible} {
			s := hosting(t, 8, 8, k, sharing)
			trace := burstyTrace(rand.New(rand.NewPCG(1, 1)), 4096, 8, 8, 2, 20*vnet.Gbit, 1.1)
			var base vxswitch.Time
			pass := func() {
				for _, a := range trace {
					for ok := true; ok; {
						_, ok = s.Depart(base + a.at)
					}
					s.Enqueue(base+a.at, vxswitch.ID(a.vs), a.out, vxswitch.Packet{Size: a.size, In: int16(a.in)})
				}
				base += trace[len(trace)-1].at
			}
			pass()
			if n := testing.AllocsPerRun(3, pass); n != 0 {
				t.Errorf("%v, sharing %d: %v allocations for %d frames", k, sharing, n, len(trace))
			}
		}
	}
}
