package vxswitch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// TestThousandChangesUnderLoad changes buffers, schedulers, managers,
// capacities, ports, the host's schedulers and the set of virtual switches
// themselves 1,000 times while frames flow. The driver fails at the first
// frame out of order, and frames may be lost only as the rules say: those that
// had been queued are delivered, but for loans that were called back.
func TestThousandChangesUnderLoad(t *testing.T) {
	for _, sharing := range []vxswitch.Sharing{vxswitch.Strict, vxswitch.Flexible} {
		r := rand.New(rand.NewPCG(uint64(sharing), 7))
		cfg := small(sched.DRR{}, 3)
		cfg.Sharing, cfg.Crosspoint = sharing, 60000
		d := newDriver(t, cfg)
		w := &changer{driver: d, r: r, names: map[string]vxswitch.Virtual{}}
		for w.made < 1000 {
			w.change()
			for range 20 {
				w.now += vxswitch.Time(r.IntN(300_000))
				w.send()
			}
		}
		d.drain(vxswitch.Forever - 1)
		d.balance()
		for seq, why := range d.dropped {
			if w.queued[seq] && why != vxswitch.Reclaimed {
				t.Fatalf("frame %d was queued and then dropped: %v", seq, why)
			}
		}
		if c := d.s.Total(); c.Queued.Packets != 0 || c.Delivered.Packets < 5000 {
			t.Fatalf("%v left in queues, %v delivered", c.Queued, c.Delivered)
		}
	}
}

type changer struct {
	*driver
	r      *rand.Rand
	now    vxswitch.Time
	names  map[string]vxswitch.Virtual
	made   int
	seq    int
	queued map[uint64]bool
}

// change tries one random change; the ones that admission refuses change nothing.
func (w *changer) change() {
	w.drain(w.now)
	before := w.s.Total()
	changes, names := w.draw()
	if err := w.s.Apply(w.now, changes...); err != nil {
		if after := w.s.Total(); after != before {
			w.t.Fatalf("a refused change (%v) changed what is counted", err)
		}
		return
	}
	w.made++
	w.names = names
	if after := w.s.Total(); after.Queued != before.Queued || after.Lost() != before.Lost() {
		w.t.Fatalf("change %d (%T): %v queued and %v lost before, %v and %v after", w.made, changes[0], before.Queued, before.Lost(), after.Queued, after.Lost())
	}
}

// draw makes one or two changes of what is there.
func (w *changer) draw() (list []vxswitch.Change, names map[string]vxswitch.Virtual) {
	names = map[string]vxswitch.Virtual{}
	for n, v := range w.names {
		names[n] = v
	}
	for range 1 + w.r.IntN(2) {
		name := fmt.Sprint("v", w.r.IntN(6))
		_, hosted := names[name]
		switch {
		case w.r.IntN(6) == 0:
			p := w.s.Config().Ports[1]
			p.Scheduler, p.Capped = anyKind(w.r), w.r.IntN(2) == 0
			list = append(list, vxswitch.SetPort{Port: 1, PhysicalPort: p})
		case !hosted:
			names[name] = w.virtual(name, 1+w.r.IntN(3))
			list = append(list, vxswitch.Add{Virtual: names[name]})
		case w.r.IntN(3) == 0:
			delete(names, name)
			list = append(list, vxswitch.Remove{Name: name})
		default:
			names[name] = w.virtual(name, max(len(names[name].Ports), 1+w.r.IntN(3)))
			list = append(list, vxswitch.Set{Virtual: names[name]})
		}
	}
	return list, names
}

// virtual is random in everything; a port may be missing.
func (w *changer) virtual(name string, ports int) vxswitch.Virtual {
	v := randomVirtual(w.r, 0, ports, 1, false)
	v.Name = name
	for i := range v.Ports {
		p := &v.Ports[i]
		p.In, p.Out = vnet.Rate(1+w.r.Int64N(2e6)), vnet.Rate(1e5+w.r.Int64N(2e6))
		if w.r.IntN(8) == 0 {
			p.Physical = -1
		}
	}
	return v
}

// send sends a frame to a random port of a random switch.
func (w *changer) send() {
	if w.queued == nil {
		w.queued = map[uint64]bool{}
	}
	for _, id := range w.s.IDs() {
		v, ok := w.s.Virtual(id)
		if !ok {
			continue // it has just sent its last frame
		}
		n := len(v.Ports)
		a := arrival{at: w.now, vs: int(id), in: w.r.IntN(n), out: w.r.IntN(n), size: frameSize(w.r)}
		if w.enqueue(a, w.seq) == vxswitch.None {
			w.queued[uint64(w.seq)] = true
		}
		w.seq++
	}
}

// TestChangesAreAllOrNothing: the second of two changes cannot be, so the first is not made.
func TestChangesAreAllOrNothing(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 2))
	a := member("a", 2, sched.DRR{})
	d.apply(0, vxswitch.Add{Virtual: a})
	smaller := a
	smaller.Buffer.Size = 10
	tooMuch := member("b", 2, sched.DRR{}, func(p *vxswitch.Port) { p.Out = 8 * vnet.Mbit })
	err := d.s.Apply(0, vxswitch.Set{Virtual: smaller}, vxswitch.Add{Virtual: tooMuch})
	var r *vxswitch.Rejection
	if !errors.As(err, &r) || r.Switch != "b" || r.Free != 7e6 {
		t.Fatalf("got %v", err)
	}
	if v, _ := d.s.Virtual(0); v.Buffer.Size != a.Buffer.Size || len(d.s.IDs()) != 1 {
		t.Error("a refused set of changes was made in part")
	}
	d.apply(0, vxswitch.Remove{Name: "a"}, vxswitch.Add{Virtual: tooMuch}) // together they fit
}

// TestRemovedSwitchSendsWhatItHas and gives its ID to the next.
func TestRemovedSwitchSendsWhatItHas(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 1))
	d.apply(0, vxswitch.Add{Virtual: member("a", 1, sched.DRR{})})
	for i := range 5 {
		d.enqueue(arrival{size: 1500}, i)
	}
	d.apply(1, vxswitch.Remove{Name: "a"})
	if c := d.enqueue(arrival{at: 2, size: 100}, 9); c != vxswitch.Ended {
		t.Errorf("a switch that is being removed took a frame: %v", c)
	}
	d.apply(3, vxswitch.Add{Virtual: member("b", 1, sched.DRR{})})
	if id, _ := d.s.Find("b"); id != 1 {
		t.Errorf("b has ID %d while a still sends", id)
	}
	d.drain(vxswitch.Forever - 1)
	d.balance()
	if len(d.all) != 5 || len(d.s.IDs()) != 1 {
		t.Errorf("%d frames left, switches %v", len(d.all), d.s.IDs())
	}
	d.apply(1e9, vxswitch.Add{Virtual: member("c", 1, sched.DRR{})})
	if id, _ := d.s.Find("c"); id != 0 {
		t.Errorf("c has ID %d, 0 is free", id)
	}
}

// TestAdmissionOverTime: conditions 4.1 and 4.2 hold at every instant, not in sum.
func TestAdmissionOverTime(t *testing.T) {
	cfg := small(sched.DRR{}, 2)
	cfg.Crosspoint = 10000
	lease := func(name string, from, until vxswitch.Time, mbit vnet.Rate, buffer vnet.Bytes) vxswitch.Virtual {
		v := member(name, 2, sched.DRR{}, func(p *vxswitch.Port) { p.In, p.Out = mbit*vnet.Mbit, mbit*vnet.Mbit })
		v.From, v.Until, v.Buffer.Size = from, until, buffer
		return v
	}
	for _, c := range []struct {
		name string
		list []vxswitch.Virtual
		want string
	}{
		{"one after the other", []vxswitch.Virtual{lease("a", 0, 10, 8, 10000), lease("b", 10, 20, 8, 10000), lease("c", 20, 0, 8, 10000)}, ""},
		{"together in part", []vxswitch.Virtual{lease("a", 0, 10, 4, 1000), lease("b", 5, 0, 4, 1000), lease("c", 10, 20, 4, 1000)}, ""},
		{"rate", []vxswitch.Virtual{lease("a", 0, 11, 4, 1000), lease("b", 5, 0, 4, 1000), lease("c", 10, 20, 1, 1000)},
			`virtual switch "c" asks 1000000 bit/s of input capacity of port 0, where 0 are free at 10 ns: ask for less, or for another time`},
		{"memory", []vxswitch.Virtual{lease("a", 0, 11, 1, 6000), lease("b", 10, 0, 1, 4001)},
			`virtual switch "b" asks 4001 bytes of memory of crosspoint 0-0, where 4000 are free at 10 ns: ask for less, or for another time`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := vxswitch.Admit(cfg, c.list); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// TestLifetime: a switch takes frames from From until Until, and sends what it has.
func TestLifetime(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 1))
	v := member("a", 1, sched.DRR{})
	v.From, v.Until = 1000, 2000
	d.apply(0, vxswitch.Add{Virtual: v})
	for i, at := range []vxswitch.Time{0, 999, 1000, 1999, 2000} {
		want := vxswitch.Ended
		if i == 2 || i == 3 {
			want = vxswitch.None
		}
		if got := d.enqueue(arrival{at: at, size: 1500}, i); got != want {
			t.Errorf("a frame at %d: %v, want %v", at, got, want)
		}
	}
	d.drain(vxswitch.Forever - 1)
	if d.balance(); len(d.all) != 2 {
		t.Errorf("%d frames left, want 2", len(d.all))
	}
}
