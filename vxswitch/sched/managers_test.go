package sched_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// rfcCoDel is RFC 8289, section 5, line by line over a queue of arrival times.
type rfcCoDel struct {
	queue            []rfcPacket
	bytes            int
	firstAbove       vxswitch.Time
	dropNext         vxswitch.Time
	count, lastCount int
	dropping         bool
	dropped          []int
}

type rfcPacket struct {
	at       vxswitch.Time
	seq, len int
}

const (
	target   = vxswitch.Time(5 * time.Millisecond)
	interval = vxswitch.Time(100 * time.Millisecond)
)

func (c *rfcCoDel) law(t vxswitch.Time) vxswitch.Time {
	return t + vxswitch.Time(float64(interval)/math.Sqrt(float64(c.count)))
}

func (c *rfcCoDel) dodequeue(now vxswitch.Time) (p *rfcPacket, ok bool) {
	if len(c.queue) == 0 {
		c.firstAbove = 0
		return nil, false
	}
	p = &c.queue[0]
	c.queue = c.queue[1:]
	c.bytes -= p.len
	if now-p.at < target || c.bytes <= 1514 {
		c.firstAbove = 0
		return p, false
	}
	if c.firstAbove == 0 {
		c.firstAbove = now + interval
		return p, false
	}
	return p, now >= c.firstAbove
}

func (c *rfcCoDel) deque(now vxswitch.Time) *rfcPacket {
	p, ok := c.dodequeue(now)
	if c.dropping {
		if !ok {
			c.dropping = false
		}
		for now >= c.dropNext && c.dropping {
			c.dropped = append(c.dropped, p.seq)
			c.count++
			if p, ok = c.dodequeue(now); !ok {
				c.dropping = false
			} else {
				c.dropNext = c.law(c.dropNext)
			}
		}
	} else if ok {
		c.dropped = append(c.dropped, p.seq)
		p, _ = c.dodequeue(now)
		c.dropping = true
		delta := c.count - c.lastCount
		c.count = 1
		if delta > 1 && now-c.dropNext < 16*interval {
			c.count = delta
		}
		c.dropNext = c.law(now)
		c.lastCount = c.count
	}
	return p
}

// TestCoDelIsRFC8289 compares drops and departures with the RFC's own loop.
func TestCoDelIsRFC8289(t *testing.T) {
	dropped := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := oneQueue(t, sched.CoDel{}, 8*vnet.Mbit)
		reference := &rfcCoDel{}
		var lineFree, now vxswitch.Time
		var got, want []int
		take := func(until vxswitch.Time) {
			for {
				d, ok := s.Depart(until)
				if !ok {
					break
				}
				got = append(got, int(d.Seq))
			}
			for len(reference.queue) > 0 && max(lineFree, reference.queue[0].at) <= until {
				at := max(lineFree, reference.queue[0].at)
				if p := reference.deque(at); p != nil {
					want = append(want, p.seq)
					lineFree = at + vxswitch.Time(p.len)*1000
				}
			}
		}
		load := 0.7 + r.Float64()
		for seq := range 8000 {
			size := 64 + r.IntN(1437)
			if seq/1000%2 == 0 { // load comes and goes
				now += vxswitch.Time(780 * 1000 / load * r.ExpFloat64())
			} else {
				now += vxswitch.Time(780 * 1000 / 0.5 * r.ExpFloat64())
			}
			take(now)
			s.Enqueue(now, 0, 0, vxswitch.Packet{Seq: uint64(seq), Size: int32(size)})
			reference.queue = append(reference.queue, rfcPacket{now, seq, size})
			reference.bytes += size
		}
		take(vxswitch.Forever - 1)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("seed %d: departure %d of %d differs from the RFC's %d", seed, i, len(got), len(want))
			}
		}
		dropped += len(reference.dropped)
		if n := s.Counters(0).Dropped[vxswitch.Late].Packets; int(n) != len(reference.dropped) {
			t.Fatalf("seed %d: %d dropped, by the RFC %d", seed, n, len(reference.dropped))
		}
	}
	if dropped < 100 {
		t.Fatalf("only %d frames were dropped: nothing was tested", dropped)
	}
}

func oneQueue(t *testing.T, m vxswitch.ManagerKind, rate vnet.Rate) *vxswitch.Switch {
	t.Helper()
	s, err := vxswitch.New(vxswitch.Config{Crosspoint: 1 << 30, Ports: []vxswitch.PhysicalPort{{In: rate, Out: rate, Scheduler: sched.DRR{}}}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(0, vxswitch.Add{Virtual: vxswitch.Virtual{Name: "a", Buffer: vxswitch.Crosspoint{Size: 1 << 30, Manager: m},
		Ports: []vxswitch.Port{{In: rate, Out: rate, Scheduler: sched.FCFS{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestREDRefusesAsThePaperSays, with the queue's length held still, so that the
// average is known: nothing below min, between min and max one of at most 1/p
// frames with gaps spread evenly, everything above twice max.
func TestREDRefusesAsThePaperSays(t *testing.T) {
	for _, c := range []struct {
		average int
		pb      float64
	}{{2999, 0}, {4500, 0.025}, {6000, 0.05}, {8999, 0.1}, {13500, 0.55}, {18000, 1}, {50000, 1}} {
		m := sched.RED{Min: 3000, Max: 9000}.New(60000, 1e9, 1)
		for range 10000 { // the average gets there
			m.Accept(0, vxswitch.Occupancy{Bytes: c.average, Packets: 1}, 100)
		}
		refused, gap, longest := 0, 0, 0
		const n = 200000
		for range n {
			gap++
			if !m.Accept(0, vxswitch.Occupancy{Bytes: c.average, Packets: 1}, 100) {
				longest, gap = max(longest, gap), 0
				refused++
			}
		}
		switch {
		case c.pb == 0:
			if refused != 0 {
				t.Errorf("average %d: %d frames refused", c.average, refused)
			}
		case c.pb == 1:
			if refused != n {
				t.Errorf("average %d: %d of %d frames refused", c.average, refused, n)
			}
		default: // gaps are uniform from 1 to 1/p - 1: their mean is half of 1/p
			want := min(1, 2*c.pb)
			if got := float64(refused) / n; got < 0.93*want || got > 1.07*want {
				t.Errorf("average %d: %.4f refused, want about %.4f", c.average, got, want)
			}
			if float64(longest) > 1/c.pb {
				t.Errorf("average %d: a gap of %d, want at most 1/p = %.1f", c.average, longest, 1/c.pb)
			}
		}
	}
}

// TestREDForgetsWhileIdle: an old average decays while the queue is empty.
func TestREDForgetsWhileIdle(t *testing.T) {
	m := sched.RED{Min: 3000, Max: 9000}.New(60000, 8e6, 1) // 500 bytes take 0.5 ms
	for range 10000 {
		m.Accept(0, vxswitch.Occupancy{Bytes: 30000, Packets: 1}, 100)
	}
	m.Keep(0, 0, vxswitch.Occupancy{Bytes: 100, Packets: 1}, 100) // the last one leaves
	if m.Accept(vxswitch.Time(time.Millisecond), vxswitch.Occupancy{}, 100) {
		t.Error("an average of 30000 is forgotten in a millisecond")
	}
	m.Keep(vxswitch.Time(time.Millisecond), 0, vxswitch.Occupancy{Bytes: 100, Packets: 1}, 100)
	if !m.Accept(vxswitch.Time(10*time.Second), vxswitch.Occupancy{}, 100) {
		t.Error("an average is not forgotten in ten seconds")
	}
}

func TestParseManager(t *testing.T) {
	for text, want := range map[string]vxswitch.ManagerKind{
		"tail-drop": sched.TailDrop{}, "red": sched.RED{}, "codel": sched.CoDel{},
		"red:min=3000,max=9000,p=0.2,weight=0.01": sched.RED{Min: 3000, Max: 9000, P: 0.2, Weight: 0.01},
		"codel:target=1ms,interval=20ms":          sched.CoDel{Target: time.Millisecond, Interval: 20 * time.Millisecond},
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := sched.ParseManager(text); err != nil || got != want {
				t.Errorf("%q is read as %#v (%v)", text, got, err)
			}
		})
	}
	for _, text := range []string{"", "blue", "red:min=9,max=3", "red:p=2", "red:p=NaN", "red:min", "codel:target=1", "codel:target=2s,interval=1s", "tail-drop:x=1", "red:min=1,min=2"} {
		t.Run(text, func(t *testing.T) {
			if _, err := sched.ParseManager(text); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error %v", text, err)
			}
		})
	}
}
