package sim

import (
	"slices"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// BenchmarkPacketEvents is the cost of one packet event, an arrival or a
// departure, on a switch of 32 ports that hosts 32 virtual switches, every
// output loaded to 95 %.
//
// A machine that does other things too gives no honest mean: besides it the
// best tenth of slices of less than a millisecond is told, which others hardly
// interrupt.
func BenchmarkPacketEvents(b *testing.B) {
	all := full(32, 32)
	one := full(32, 32) // as the thesis's first experiment: one loaded output
	one.Traffic[0].Outputs, one.Traffic[0].Rate = []int{1}, vnet.Gbit/32
	b.Run("every output", func(b *testing.B) { packetEvents(b, all) })
	b.Run("one output", func(b *testing.B) { packetEvents(b, one) })
}

func packetEvents(b *testing.B, s *Scenario) {
	s.Duration = time.Hour
	r, err := newRun(s, 1, Watch{})
	if err != nil {
		b.Fatal(err)
	}
	r.pass(200_000) // buffers have grown, queues are what they will be
	b.ReportAllocs()
	var rates []float64
	for b.Loop() {
		start, before := time.Now(), r.events
		r.pass(1_000)
		rates = append(rates, float64(r.events-before)/time.Since(start).Seconds()/1e6)
	}
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)/2], "median-Mevents/s")
	b.ReportMetric(rates[len(rates)*9/10], "best-tenth-Mevents/s")
}

// pass lets so many packets arrive.
func (r *run) pass(packets int) {
	var a Arrival
	for range packets {
		r.advance(vxswitch.Time(r.arrivals.peek()))
		r.arrivals.next(&a)
		r.arrive(&a)
	}
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
