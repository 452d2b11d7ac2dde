package vxswitch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// scene is a random switch with one busy output.
type scene struct {
	cfg   vxswitch.Config
	list  []vxswitch.Virtual
	trace []arrival
}

const outRate = vnet.Gbit

func randomScene(r *rand.Rand, sharing vxswitch.Sharing, managers bool) scene {
	ports, switches := 1+r.IntN(4), 1+r.IntN(5)
	sc := scene{cfg: vxswitch.Config{Crosspoint: 1 << 20, MaxFrame: 1500, Sharing: sharing}}
	for range ports {
		sc.cfg.Ports = append(sc.cfg.Ports, vxswitch.PhysicalPort{In: outRate, Out: outRate, Scheduler: anyKind(r), Capped: r.IntN(3) == 0})
	}
	for v := range switches {
		sc.list = append(sc.list, randomVirtual(r, v, ports, switches, managers))
	}
	sc.trace = burstyTrace(r, 300, switches, ports, 1, outRate, 0.4+1.2*r.Float64())
	return sc
}

func randomVirtual(r *rand.Rand, v, ports, switches int, managers bool) vxswitch.Virtual {
	w := vxswitch.Virtual{Name: fmt.Sprint("v", v)}
	for p := range ports {
		w.Ports = append(w.Ports, vxswitch.Port{
			Physical: p, In: outRate / vnet.Rate(switches), Out: (1 + vnet.Rate(r.Int64N(int64(outRate)))) / vnet.Rate(switches),
			Quantum: vnet.Bytes(1 + r.IntN(4000)), OutBurst: vnet.Bytes(1 + r.IntN(20000)), Priority: r.IntN(3), Scheduler: anyKind(r),
		})
	}
	for range ports {
		row := make([]vxswitch.Crosspoint, ports)
		for out := range row {
			row[out] = randomCrosspoint(r, managers)
		}
		w.Crosspoints = append(w.Crosspoints, row)
	}
	return w
}

func randomCrosspoint(r *rand.Rand, managers bool) vxswitch.Crosspoint {
	c := vxswitch.Crosspoint{Size: vnet.Bytes(r.IntN(9000)), Lend: float64(r.IntN(5)) / 4, Quantum: vnet.Bytes(1 + r.IntN(3000)), Priority: r.IntN(3)}
	if managers {
		c.Manager = every{accept: 5 + r.IntN(9), keep: 3 + r.IntN(9)}
	}
	return c
}

func anyKind(r *rand.Rand) vxswitch.SchedulerKind {
	k := sched.Schedulers()
	return k[r.IntN(len(k))]
}

// every is a queue manager that refuses and drops each so manyth frame.
type every struct{ accept, keep int }

func (e every) New(int, int64, uint64) vxswitch.Manager { return &everyState{every: e} }
func (e every) String() string                          { return "every" }

type everyState struct {
	every
	accepted, kept int
}

func (e *everyState) Accept(vxswitch.Time, vxswitch.Occupancy, int) bool {
	e.accepted++
	return e.accepted%e.accept != 0
}

func (e *everyState) Keep(_, _ vxswitch.Time, _ vxswitch.Occupancy, _ int) bool {
	e.kept++
	return e.kept%e.keep != 0
}

func (sc scene) switchOf(t *testing.T) *driver {
	d := newDriver(t, sc.cfg)
	for _, v := range sc.list {
		d.apply(0, vxswitch.Add{Virtual: v})
	}
	return d
}

// reference builds the slow reference of output 0.
func (sc scene) reference() *reference {
	port := sc.cfg.Ports[0]
	clock := referenceClock{rate: int64(port.Out)}
	t := &reference{rate: int64(port.Out), maxFrame: int(sc.cfg.MaxFrame), flexible: sc.cfg.Sharing == vxswitch.Flexible, capped: port.Capped,
		line: clock, wire: clock, dropped: map[uint64]vxswitch.Cause{}, above: make([][]*referenceQueue, len(sc.cfg.Ports))}
	t.host = newChooser(port.Scheduler)
	for id, v := range sc.list {
		t.vs = append(t.vs, sc.referenceSwitch(t, id, v))
	}
	vs := func(i int) *referenceSwitch { return t.vs[i] }
	offered := func(i int) *referenceFrame { return vs(i).queues[vs(i).choice.pick()].own()[0] }
	t.host.size = func(i int) int { return int(offered(i).size) }
	t.host.order = func(i int) uint64 { return offered(i).order }
	t.host.backlog = func(i int) int { return bytesOf(vs(i).own()) }
	t.host.quantum = func(i int) int { return vs(i).quantum }
	t.host.priority = func(i int) int { return vs(i).priority }
	return t
}

func (sc scene) referenceSwitch(t *reference, id int, v vxswitch.Virtual) *referenceSwitch {
	p := v.Ports[0]
	s := &referenceSwitch{t: t, id: id, out: int64(p.Out), burst: int64(p.OutBurst), quantum: int(p.Quantum), priority: p.Priority, choice: newChooser(p.Scheduler)}
	s.ownCap.rate, s.realCap.rate = s.out, s.out
	for in := range v.Ports {
		c := v.Crosspoints[in][0]
		q := &referenceQueue{sw: s, in: in, size: int(c.Size), lend: int(float64(c.Size) * c.Lend), quantum: int(c.Quantum), priority: c.Priority, manager: sched.TailDrop{}.New(0, 0, 0)}
		if c.Manager != nil {
			q.manager = c.Manager.New(0, 0, 0)
		}
		s.queues = append(s.queues, q)
	}
	s.choice.size = func(i int) int { return int(s.queues[i].own()[0].size) }
	s.choice.order = func(i int) uint64 { return s.queues[i].own()[0].order }
	s.choice.backlog = func(i int) int { return bytesOf(s.queues[i].own()) }
	s.choice.quantum = func(i int) int { return s.queues[i].quantum }
	s.choice.priority = func(i int) int { return s.queues[i].priority }
	return s
}

func newChooser(k vxswitch.SchedulerKind) *chooser {
	return &chooser{kind: k.String(), deficit: map[int]int{}, served: map[int]int{}}
}

func (t *reference) run(trace []arrival) {
	for i, a := range trace {
		t.arrive(a, uint64(i))
	}
	for t.decide(vxswitch.Forever - 1) {
	}
}

// TestSwitchDoesWhatItsReferenceDoes compares every departure, its time and every
// drop of random switches, under every scheduler at both levels, caps, sharing
// rules and managers, with a reference written as one would explain the rules.
func TestSwitchDoesWhatItsReferenceDoes(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		sc := randomScene(r, vxswitch.Sharing(seed%2), seed%3 == 0)
		d, w := sc.switchOf(t), sc.reference()
		d.run(sc.trace)
		w.run(sc.trace)
		var got []referenceDeparture
		for _, dep := range d.all {
			got = append(got, referenceDeparture{dep.Seq, dep.Start})
		}
		for i := range max(len(got), len(w.departed)) {
			if i >= len(got) || i >= len(w.departed) || got[i] != w.departed[i] {
				t.Fatalf("seed %d (%v): departure %d is %v, the reference's %v", seed, sc.cfg, i, at(got, i), at(w.departed, i))
			}
		}
		for seq, why := range w.dropped {
			if d.dropped[seq] != why {
				t.Fatalf("seed %d: frame %d: %v, the reference says %v", seed, seq, d.dropped[seq], why)
			}
		}
		if len(d.dropped) != len(w.dropped) {
			t.Fatalf("seed %d: %d frames dropped, by the reference %d", seed, len(d.dropped), len(w.dropped))
		}
	}
}

func at(list []referenceDeparture, i int) any {
	if i >= len(list) {
		return "none"
	}
	return list[i]
}

// TestFlexibleNeverLosesMoreThanStrict is the theorem of sharing.go, for every
// virtual switch, in frames and in bytes, at every arrival and at the end.
func TestFlexibleNeverLosesMoreThanStrict(t *testing.T) {
	var strictLost, flexibleLost uint64
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		sc := randomScene(r, vxswitch.Strict, seed%4 == 0)
		strict := sc.switchOf(t)
		sc.cfg.Sharing = vxswitch.Flexible
		flexible := sc.switchOf(t)
		for i, a := range sc.trace {
			strict.enqueue(a, i)
			flexible.enqueue(a, i)
			compareLoss(t, seed, sc, strict, flexible, false)
		}
		strict.drain(vxswitch.Forever - 1)
		flexible.drain(vxswitch.Forever - 1)
		compareLoss(t, seed, sc, strict, flexible, true)
		strictLost += strict.s.Total().Lost().Packets
		flexibleLost += flexible.s.Total().Lost().Packets
	}
	if flexibleLost*10 > strictLost*9 {
		t.Errorf("flexible sharing lost %d frames, strict %d: what is lent is not used", flexibleLost, strictLost)
	}
}

func compareLoss(t *testing.T, seed uint64, sc scene, strict, flexible *driver, end bool) {
	t.Helper()
	for v := range sc.list {
		a, b := strict.s.Counters(vxswitch.ID(v)), flexible.s.Counters(vxswitch.ID(v))
		if s, f := a.Lost(), b.Lost(); f.Packets > s.Packets || end && f.Bytes > s.Bytes {
			t.Fatalf("seed %d, switch %d (end %v): flexible lost %v, strict %v", seed, v, end, f, s)
		}
	}
}

// TestOwnerNeverLosesToALoan: whatever others borrowed, a frame that fits
// beside its VXB's own frames is taken, and crosspoints hold no more than they
// have.
func TestOwnerNeverLosesToALoan(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		sc := randomScene(r, vxswitch.Flexible, false)
		d := sc.switchOf(t)
		for i, a := range sc.trace {
			d.drain(a.at)
			held := d.s.Crosspoint(vxswitch.ID(a.vs), a.in, a.out).Queued.Bytes
			size := sc.list[a.vs].Crosspoints[a.in][a.out].Size
			if c := d.enqueue(a, i); c != vxswitch.None && vnet.Bytes(held)+vnet.Bytes(a.size) <= size {
				t.Fatalf("seed %d: frame %d of %d bytes dropped (%v): its VXB of %d holds %d", seed, i, a.size, c, size, held)
			}
			checkMemory(t, sc, d)
		}
	}
}

func checkMemory(t *testing.T, sc scene, d *driver) {
	for in := range sc.cfg.Ports {
		var held, size vnet.Bytes
		for v := range sc.list {
			held += vnet.Bytes(d.s.Crosspoint(vxswitch.ID(v), in, 0).Queued.Bytes)
			size += sc.list[v].Crosspoints[in][0].Size
		}
		if held > size {
			t.Fatalf("crosspoint %d-0 holds %d bytes, leased are %d", in, held, size)
		}
	}
}
