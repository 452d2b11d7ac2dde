package sim

import (
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vxswitch/sched"
)

// BenchmarkPacketEvents is the cost of one packet event, an arrival or a
// departure, on a switch of 32 ports that hosts 32 virtual switches, every
// output loaded to 95 %.
func BenchmarkPacketEvents(b *testing.B) {
	s := full(32, 32)
	b.ReportAllocs()
	var events uint64
	for b.Loop() {
		o, err := Run(s, 1, Watch{})
		if err != nil {
			b.Fatal(err)
		}
		events += o.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
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
