package probe

import (
	"testing"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// BenchmarkCost reports the processor time that both probes of one link, at
// 1 Gbit/s in each direction, need for a second of load, in cores. It counts
// what runs in their context, and so most of the network path too.
func BenchmarkCost(b *testing.B) {
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"TCP", Options{SkipUDP: true, SkipLoss: true}},
		{"UDP", Options{SkipTCP: true, SkipLoss: true}},
		{"loss", Options{SkipTCP: true, SkipUDP: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newLab(b, "n1", "n2")
			l.connect(left, right, wire{rate: vnet.Gbit}, wire{rate: vnet.Gbit})
			opt := c.opt
			opt.Targets, opt.Duration = static("a", left, right, vnet.Gbit), 3*time.Second
			var used time.Duration
			var worst []float64
			for b.Loop() {
				v, err := Check(b.Context(), lease, l.start, opt)
				must(b, err)
				for _, cmd := range l.probes {
					used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				}
				for _, link := range v.Links {
					worst = append(worst, link.UDPLoss)
				}
			}
			load := (opt.Duration + DefaultWarmUp).Seconds() * float64(b.N)
			b.ReportMetric(used.Seconds()/load, "cores")
			b.ReportMetric(measure.Percentile(worst, 100), "worst-loss")
		})
	}
}
