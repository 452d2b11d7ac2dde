package vxswitch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// hosting is a switch of n ports with v virtual switches that share it evenly.
func hosting(tb testing.TB, n, v int, k vxswitch.SchedulerKind, sharing vxswitch.Sharing) *vxswitch.Switch {
	cfg := vxswitch.Config{Crosspoint: 96000 * vnet.Bytes(v), MaxFrame: 1500, MaxSwitches: v, Sharing: sharing}
	for range n {
		cfg.Ports = append(cfg.Ports, vxswitch.PhysicalPort{In: vnet.Gbit * 10, Out: vnet.Gbit * 10, Scheduler: k})
	}
	s, err := vxswitch.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	var all []vxswitch.Change
	for i := range v {
		w := vxswitch.Virtual{Name: fmt.Sprint(i), Buffer: vxswitch.Crosspoint{Size: 6000, Lend: 1}}
		for p := range n {
			w.Ports = append(w.Ports, vxswitch.Port{Physical: p, In: vnet.Gbit * 10 / vnet.Rate(v), Out: vnet.Gbit * 10 / vnet.Rate(v), Scheduler: k})
		}
		all = append(all, vxswitch.Add{Virtual: w})
	}
	if err := s.Apply(0, all...); err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkPacketEvents is the simulator's inner loop: one iteration is one
// arrival and one departure (or drop), that is two packet events.
func BenchmarkPacketEvents(b *testing.B) {
	for _, k := range sched.Schedulers() {
		for _, size := range [][2]int{{2, 2}, {32, 32}, {32, 1024}} {
			b.Run(fmt.Sprintf("%v/N=%d/V=%d", k, size[0], size[1]), func(b *testing.B) {
				benchmarkEvents(b, hosting(b, size[0], size[1], k, vxswitch.Strict), size[0], size[1], 1)
			})
		}
	}
	b.Run("drr-flexible/N=32/V=32", func(b *testing.B) {
		benchmarkEvents(b, hosting(b, 32, 32, sched.DRR{}, vxswitch.Flexible), 32, 32, 1)
	})
	b.Run("drr/N=32/V=32/all-outputs", func(b *testing.B) {
		benchmarkEvents(b, hosting(b, 32, 32, sched.DRR{}, vxswitch.Strict), 32, 32, 32)
	})
}

func benchmarkEvents(b *testing.B, s *vxswitch.Switch, ports, switches, outs int) {
	trace := burstyTrace(rand.New(rand.NewPCG(1, 1)), 1<<14, switches, ports, outs, vnet.Gbit*10*vnet.Rate(outs), 1)
	var base vxswitch.Time
	d := new(vxswitch.Departure)
	feed := func(n int) {
		for i := range n {
			a := &trace[i&(len(trace)-1)]
			at := base + a.at
			for s.DepartInto(d, at) {
			}
			s.Enqueue(at, vxswitch.ID(a.vs), a.out, vxswitch.Packet{Size: a.size, In: int16(a.in)})
			if i&(len(trace)-1) == len(trace)-1 {
				base = at
			}
		}
	}
	feed(len(trace))
	b.ReportAllocs()
	b.ResetTimer()
	began := processTime()
	feed(b.N)
	used := processTime() - began
	b.StopTimer()
	c := s.Total()
	b.ReportMetric(float64(c.Lost().Packets)/float64(c.Offered.Packets), "loss")
	b.ReportMetric(2*float64(b.N)/used.Seconds()/1e6, "Mevents/cpu-s")
}

// processTime does not count what other work on the machine takes.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
