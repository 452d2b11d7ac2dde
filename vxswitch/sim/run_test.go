package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

var fifo vxswitch.SchedulerKind = sched.FCFS{}

// A single queue with Poisson arrivals and equal packets waits as the theory
// says: rho/(2(1-rho)) transmission times (Pollaczek and Khinchine). Ten runs
// of 1.6 million packets have a standard deviation of half a percent.
func TestSingleQueue(t *testing.T) {
	s := small()
	s.Switch.Ports, s.Switch.Crosspoint = 1, 1<<30
	s.Duration, s.Warmup = 500*time.Millisecond, 10*time.Millisecond
	v := &s.VirtualSwitches[0]
	v.Ports, v.Rate, v.Buffer = []int{1}, vnet.Gbit, 1<<30
	s.VirtualSwitches = s.VirtualSwitches[:1]
	s.Traffic[0] = Traffic{Inputs: []int{1}, Outputs: []int{1}, Weights: []float64{1}, Rate: 800 * vnet.Mbit, Arrivals: "poisson", Sizes: Fixed(125)}
	o, err := Run(s, 5, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	const transmission, rho = 1000.0, 0.8 // ns
	want := transmission * rho / (2 * (1 - rho))
	if got := o.Total[DelayMean]; math.Abs(got/want-1) > 0.05 {
		t.Errorf("mean delay %g ns, want %g", got, want)
	}
	if want := rho * 1e9; math.Abs(o.Total[DeliveredRate]/want-1) > 0.01 {
		t.Errorf("delivered %g bit/s, want %g", o.Total[DeliveredRate], want)
	}
	// Little's law, against the sum over packets.
	if want := o.Total[DelayMean] * o.Total[DeliveredBytes] / float64(s.measured()); math.Abs(o.Total[OccupancyMean]/want-1) > 1e-9 {
		t.Errorf("mean occupancy %g, want %g", o.Total[OccupancyMean], want)
	}
}

// scenarios draws switches with every scheduler and manager.
var scenarios = rapid.Custom(func(t *rapid.T) *Scenario {
	s := small()
	s.Duration = 3 * time.Millisecond
	s.Warmup = time.Duration(rapid.IntRange(0, 1).Draw(t, "warmup")) * time.Millisecond
	s.Drain = rapid.Bool().Draw(t, "drain")
	s.Switch.Ports = rapid.IntRange(1, 4).Draw(t, "ports")
	s.Switch.Scheduler = rapid.SampledFrom(sched.Schedulers()).Draw(t, "host")
	s.Switch.Capped = rapid.Bool().Draw(t, "capped")
	s.Switch.Sharing = rapid.SampledFrom([]string{"strict", "flexible"}).Draw(t, "sharing")
	tenants := rapid.IntRange(1, 4).Draw(t, "tenants")
	template := s.VirtualSwitches[0]
	s.VirtualSwitches, s.Traffic[0].Weights = nil, nil
	var ports []int
	for p := range s.Switch.Ports {
		ports = append(ports, p+1)
	}
	for i := range tenants {
		v := template
		v.Name, v.Ports = string(rune('a'+i)), ports
		v.Rate, v.Buffer = vnet.Gbit/vnet.Rate(tenants), vnet.Bytes(rapid.IntRange(1500, 64000/tenants).Draw(t, "buffer"))
		v.Lend = rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "lend")
		v.Scheduler = rapid.SampledFrom(sched.Schedulers()).Draw(t, "scheduler")
		v.Manager = rapid.SampledFrom([]vxswitch.ManagerKind{sched.TailDrop{}, sched.RED{}, sched.CoDel{}}).Draw(t, "manager")
		v.Priority = rapid.IntRange(0, 2).Draw(t, "priority")
		v.Police = rapid.Bool().Draw(t, "police")
		s.VirtualSwitches = append(s.VirtualSwitches, v)
		s.Traffic[0].Weights = append(s.Traffic[0].Weights, 1)
	}
	s.Traffic[0].Inputs, s.Traffic[0].Outputs = ports, ports
	s.Traffic[0].Rate = vnet.Rate(rapid.IntRange(10, 1400).Draw(t, "load")) * vnet.Mbit
	return s
})

// ledger follows every packet of a run on its own.
type ledger struct {
	t       *rapid.T
	s       *Scenario
	arrived map[uint64]Arrival
	left    map[uint64]Departure
	last    map[[3]int]uint64     // sequence by virtual switch, input, output
	free    map[int]time.Duration // when an output's line is free, at the earliest
	now     time.Duration         // of the last departure
}

func (l *ledger) arrive(a *Arrival) {
	if _, twice := l.arrived[a.Sequence]; twice || uint64(len(l.arrived)) != a.Sequence {
		l.t.Fatalf("arrival %d is numbered %d", len(l.arrived), a.Sequence)
	}
	l.arrived[a.Sequence] = *a
}

func (l *ledger) depart(d *Departure, _ int) {
	a, known := l.arrived[d.Sequence]
	if _, twice := l.left[d.Sequence]; !known || twice || a != d.Arrival {
		l.t.Fatalf("%v leaves, which arrived as %v", d, a)
	}
	if l.left[d.Sequence] = *d; d.At < l.now {
		l.t.Fatalf("%v leaves after one at %v", d, l.now)
	}
	l.now = d.At
	flow := [3]int{int(d.Switch), int(d.Input), int(d.Output)}
	if before, ok := l.last[flow]; ok && before > d.Sequence {
		l.t.Fatalf("%d leaves after %d", d.Sequence, before)
	}
	l.last[flow] = d.Sequence
	out := int(d.Output)
	if d.At < l.free[out] || d.At < a.At {
		l.t.Fatalf("%v leaves at %v, its line is free at %v", d, d.At, l.free[out])
	}
	// Rounded down: a nanosecond's fraction is carried over.
	l.free[out] = d.At + time.Duration(int64(d.Size)*8*1e9/int64(l.s.Switch.Rate))
}

// Whatever a switch is like: each packet is accounted for once, nothing
// overtakes inside a flow, a line carries one packet at a time, and the
// figures are those of the packets.
func TestEveryPacketIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		l := &ledger{t, s, map[uint64]Arrival{}, map[uint64]Departure{}, map[[3]int]uint64{}, map[int]time.Duration{}, 0}
		o, err := Run(s, rapid.Uint64().Draw(t, "seed"), Watch{Arrived: l.arrive, Departed: l.depart})
		if err != nil {
			t.Fatal(err)
		}
		l.compare(o)
	})
}

func (l *ledger) compare(o *Outcome) {
	type want struct{ offered, delivered, bytes, delay float64 }
	by := make(map[[2]int]want) // virtual switch, output
	for seq, a := range l.arrived {
		if a.At < l.s.Warmup {
			continue
		}
		w := by[[2]int{int(a.Switch), int(a.Output)}]
		w.offered++
		if d, ok := l.left[seq]; ok {
			w.delivered++
			w.bytes += float64(d.Size)
			w.delay += float64(d.Delay())
		}
		by[[2]int{int(a.Switch), int(a.Output)}] = w
	}
	for i := range o.Switches {
		for port, f := range o.Switches[i].Outputs {
			w := by[[2]int{i, port}]
			if f[OfferedPackets] != w.offered || f[DeliveredPackets] != w.delivered || f[DeliveredBytes] != w.bytes {
				l.t.Errorf("switch %d output %d: figures %v, want %+v", i, port, f, w)
			}
			if w.delivered > 0 && math.Abs(f[DelayMean]-w.delay/w.delivered) > 1e-3 {
				l.t.Errorf("switch %d output %d: mean delay %g, want %g", i, port, f[DelayMean], w.delay/w.delivered)
			}
			l.balance(f)
		}
		for _, f := range o.Switches[i].Inputs {
			l.balance(f)
		}
		l.balance(o.Switches[i].Figures)
	}
	l.balance(o.Total)
}

// balance wants offered = delivered + dropped + queued, nothing queued after a
// drain, and delays in their order.
func (l *ledger) balance(f Figures) {
	if f[OfferedPackets] != f[DeliveredPackets]+f[DroppedPackets]+f[QueuedPackets] || f[OfferedBytes] != f[DeliveredBytes]+f[DroppedBytes]+f[QueuedBytes] {
		l.t.Errorf("it does not add up: %v", f)
	}
	if f[QueuedPackets] < 0 || f[DroppedPackets] < 0 || l.s.Drain && f[QueuedPackets] != 0 {
		l.t.Errorf("%g queued, %g dropped", f[QueuedPackets], f[DroppedPackets])
	}
	if f[DelayP50] > f[DelayP99] || f[DelayP99] > f[DelayMax]*1.035+1 {
		l.t.Errorf("median %g, p99 %g, most %g", f[DelayP50], f[DelayP99], f[DelayMax])
	}
}

// A run is a function of the scenario and the seed.
func TestRunsRepeat(t *testing.T) {
	s := small()
	a, err := Run(s, 3, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Run(s, 3, Watch{})
	c, _ := Run(s, 4, Watch{})
	if a.Total != b.Total || a.Total == c.Total {
		t.Errorf("seed 3 gives %v, then %v; seed 4 %v", a.Total, b.Total, c.Total)
	}
}

// A run ends when it is asked to.
func TestStop(t *testing.T) {
	s := small()
	s.Duration = time.Hour
	if _, err := Run(s, 1, Watch{Stop: func() bool { return true }}); err != ErrStopped {
		t.Errorf("got %v", err)
	}
}

// Nothing is allocated for a packet.
func TestNoAllocations(t *testing.T) {
	s := small()
	s.Duration = time.Hour
	r, err := newRun(s, 1, Watch{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*window{nil, newWindow(s.Switch.Ports)} {
		r.window = w
		for range 5 {
			r.some() // buffers have grown
		}
		if got := testing.AllocsPerRun(10, func() { r.some() }); got > 1 {
			t.Errorf("%v allocations for a window of packets (by output: %t)", got, w != nil)
		}
	}
}

// What passes output by output gives the figures of what passes in the order of
// time, which it does where somebody looks at packets. Sources that send at
// once, at whole microseconds, have many things happen at one instant.
func TestWindowsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		s.Switch.Sharing = "strict"
		for i := range s.VirtualSwitches {
			s.VirtualSwitches[i].Manager, s.VirtualSwitches[i].Police = nil, false
		}
		if rapid.Bool().Draw(t, "constant") {
			s.Traffic[0].Arrivals, s.Traffic[0].MMPP, s.Traffic[0].Peak = "constant", nil, 0
			s.Traffic[0].Sizes = Fixed(125)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		want, err := Run(s, seed, Watch{Departed: func(*Departure, int) {}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRun(s, seed, Watch{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.apart() {
			t.Fatal("not output by output")
		}
		r.window.size = rapid.IntRange(1, 300).Draw(t, "window")
		if !r.loop() {
			t.Fatal("it stops")
		}
		if got := r.outcome(seed); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}
