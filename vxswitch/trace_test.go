package vxswitch_test

import (
	"math/rand/v2"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
)

// arrival is one line of a trace.
type arrival struct {
	at      vxswitch.Time
	vs      int
	in, out int
	size    int32
}

// burstyTrace makes n arrivals of several virtual switches, in bursts and with
// two modes of size, at about load times what one output of rate sends.
func burstyTrace(r *rand.Rand, n, switches, ports, outs int, rate vnet.Rate, load float64) []arrival {
	trace := make([]arrival, n)
	t, vs, in, out, left := 0.0, 0, 0, 0, 0
	for i := range trace {
		if left == 0 {
			vs, in, out, left = r.IntN(switches), r.IntN(ports), r.IntN(outs), 1+r.IntN(12)
		}
		left--
		if r.IntN(4) > 0 { // else at the same instant
			t += r.ExpFloat64() * 4 / 3 * 780 * 8e9 / (float64(rate) * load)
		}
		trace[i] = arrival{vxswitch.Time(t), vs, in, out, frameSize(r)}
	}
	return trace
}

// frameSize draws from the two modes of Anhalt (thesis, section 4.4.2.1).
func frameSize(r *rand.Rand) int32 {
	if r.IntN(2) == 0 {
		return int32(64 + r.IntN(37))
	}
	return int32(1350 + r.IntN(151))
}

// driver feeds a switch and checks what holds in every run: frames of a VXB
// leave in order, lines send one frame at a time at their rate, nothing
// departs before it arrives, and nothing is lost sight of.
type driver struct {
	t       *testing.T
	s       *vxswitch.Switch
	all     []vxswitch.Departure
	last    map[[3]int]uint64     // order of the last departure of a VXB
	busy    map[int]vxswitch.Time // end of the last departure of an output
	dropped map[uint64]vxswitch.Cause
	offered int
}

func newDriver(t *testing.T, cfg vxswitch.Config) *driver {
	t.Helper()
	d := &driver{t: t, last: map[[3]int]uint64{}, busy: map[int]vxswitch.Time{}, dropped: map[uint64]vxswitch.Cause{}}
	cfg.Dropped = func(_ vxswitch.ID, p vxswitch.Packet, c vxswitch.Cause) { d.dropped[p.Seq] = c }
	s, err := vxswitch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.s = s
	return d
}

func (d *driver) apply(now vxswitch.Time, changes ...vxswitch.Change) {
	d.t.Helper()
	if err := d.s.Apply(now, changes...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) drain(until vxswitch.Time) {
	for {
		dep, ok := d.s.Depart(until)
		if !ok {
			return
		}
		d.see(dep)
	}
}

func (d *driver) see(dep vxswitch.Departure) {
	vxb := [3]int{int(dep.Switch), int(dep.In), int(dep.Out)}
	switch {
	case dep.Start < dep.At:
		d.t.Fatalf("frame %d leaves at %d, before it arrived at %d", dep.Seq, dep.Start, dep.At)
	case dep.Start < d.busy[dep.Port]:
		d.t.Fatalf("frame %d leaves at %d while output %d sends until %d", dep.Seq, dep.Start, dep.Port, d.busy[dep.Port])
	case dep.Order <= d.last[vxb]:
		d.t.Fatalf("frame %d (arrival %d) of VXB %v leaves after arrival %d", dep.Seq, dep.Order, vxb, d.last[vxb])
	}
	d.last[vxb], d.busy[dep.Port] = dep.Order, dep.End
	d.all = append(d.all, dep)
}

func (d *driver) enqueue(a arrival, seq int) vxswitch.Cause {
	d.drain(a.at)
	d.offered++
	c := d.s.Enqueue(a.at, vxswitch.ID(a.vs), a.out, vxswitch.Packet{Seq: uint64(seq), Size: a.size, In: int16(a.in)})
	if c != vxswitch.None {
		d.dropped[uint64(seq)] = c
	}
	return c
}

// run sends a whole trace through and waits until nothing is queued.
func (d *driver) run(trace []arrival) {
	for i, a := range trace {
		d.enqueue(a, i)
		d.balance()
	}
	d.drain(vxswitch.Forever - 1)
	d.balance()
}

// balance is the conservation law, by the driver's count and by the switch's.
func (d *driver) balance() {
	c := d.s.Total()
	if c.Offered != c.Delivered.Plus(c.Lost()).Plus(c.Queued) {
		d.t.Fatalf("offered %v, but delivered %v, lost %v, queued %v", c.Offered, c.Delivered, c.Lost(), c.Queued)
	}
	if int(c.Offered.Packets) != d.offered || int(c.Delivered.Packets) != len(d.all) || int(c.Lost().Packets) != len(d.dropped) {
		d.t.Fatalf("the switch counts %d offered, %d delivered, %d lost; the driver %d, %d, %d",
			c.Offered.Packets, c.Delivered.Packets, c.Lost().Packets, d.offered, len(d.all), len(d.dropped))
	}
}
