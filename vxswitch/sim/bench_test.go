package sim

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch/sched"
)

// BenchmarkPacketEvents is the cost of one packet event, an arrival or a
// departure, on a switch of 32 ports that hosts 32 virtual switches, every
// output loaded to 95 %.
//
// What other work on the machine takes is not counted. It leaves caches cold,
// though: besides the median of windows (some ten milliseconds each) the best
// tenth is told.
func BenchmarkPacketEvents(b *testing.B) {
	all := full(32, 32)
	one := full(32, 32) // as the thesis's first experiment: one loaded output
	one.Traffic[0].Outputs, one.Traffic[0].Rate = []int{1}, vnet.Gbit/32
	b.Run("every output", func(b *testing.B) { packetEvents(b, all, true) })
	b.Run("every output, in order", func(b *testing.B) { packetEvents(b, all, false) })
	b.Run("one output", func(b *testing.B) { packetEvents(b, one, true) })
	b.Run("one output, in order", func(b *testing.B) { packetEvents(b, one, false) })
}

// packetEvents passes windows, or all in the order of time as where packets are
// written.
func packetEvents(b *testing.B, s *Scenario, windows bool) {
	s.Duration = time.Hour
	r, err := newRun(s, 1, Watch{})
	if err != nil {
		b.Fatal(err)
	}
	if !windows {
		r.window = nil
	}
	for range 4 {
		r.some() // buffers have grown, queues are what they will be
	}
	b.ReportAllocs()
	var rates []float64
	for b.Loop() {
		start, before := processTime(), r.events
		r.some()
		rates = append(rates, float64(r.events-before)/(processTime()-start).Seconds()/1e6)
	}
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)/2], "median-Mevents/cpu-s")
	b.ReportMetric(rates[len(rates)*9/10], "best-tenth-Mevents/cpu-s")
}

// full is a switch on which everybody sends to everybody.
func full(ports, tenants int) *Scenario {
	s := small()
	s.Duration = 100 * time.Millisecond
	s.Switch.Ports, s.Switch.Crosspoint, s.Switch.Scheduler = ports, 96000, sched.DRR{}
	v := s.VirtualSwitches[0]
	v.Ports = nil
	for p := range ports {
		v.Ports = append(v.Ports, p+1)
	}
	v.Rate, v.Buffer, v.Scheduler = vnet.Gbit/vnet.Rate(tenants), 96000/vnet.Bytes(tenants), sched.DRR{}
	t := &s.Traffic[0]
	t.Inputs, t.Outputs, t.Weights, s.VirtualSwitches = v.Ports, v.Ports, nil, nil
	for i := range tenants {
		v.Name = string(rune('A' + i))
		s.VirtualSwitches = append(s.VirtualSwitches, v)
		t.Weights = append(t.Weights, 1)
	}
	return s
}

func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
