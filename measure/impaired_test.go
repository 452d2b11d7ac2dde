package measure

import (
	"testing"
	"time"

	"sublet/vnet"
)

// TestImpairmentsAreForgiven: what was asked for is no broken promise, and what
// was not still is.
func TestImpairmentsAreForgiven(t *testing.T) {
	const rate = 100 * vnet.Mbit
	all := Scope{TCP: true, UDP: true, Loss: true}
	whole := vnet.LinkVerdict{Min: rate, Max: rate, Alloc: rate, TCP: rate, UDP: rate}
	lossy := whole
	lossy.Impair[0].Loss, lossy.TCP, lossy.UDP, lossy.UDPLoss = 10_000, rate/50, rate*99/100, 0.012
	back := whole
	back.Impair[1].Loss, back.TCP = 10_000, rate/50
	twice := whole
	twice.Impair[0].Duplicate, twice.UDP = 500_000, rate*3/2
	silent := vnet.LinkVerdict{Min: rate, Max: rate, Alloc: rate, LatencyBound: 100, Latency: 1e6}
	silent.Impair[0].Loss = vnet.WholeShare
	change := func(v vnet.LinkVerdict, f func(*vnet.LinkVerdict)) vnet.LinkVerdict { f(&v); return v }
	for name, c := range map[string]struct {
		v  vnet.LinkVerdict
		ok bool
	}{
		"as asked for":              {lossy, true},
		"loses more":                {change(lossy, func(v *vnet.LinkVerdict) { v.UDPLoss = 0.1 }), false},
		"gives less":                {change(lossy, func(v *vnet.LinkVerdict) { v.UDP = rate / 2 }), false},
		"acknowledgements lost":     {back, true},
		"nothing lost on purpose":   {change(back, func(v *vnet.LinkVerdict) { v.UDPLoss = 0.01 }), false},
		"duplicates":                {twice, true},
		"more than duplicates":      {change(twice, func(v *vnet.LinkVerdict) { v.UDP = 2 * rate }), false},
		"nothing to be measured":    {silent, true},
		"late without an agreement": {change(whole, func(v *vnet.LinkVerdict) { v.LatencyBound, v.Latency = 100, 200 }), false},
	} {
		if ok, why := Judge(c.v, all); ok != c.ok {
			t.Errorf("%s: %t (%s)", name, ok, why)
		}
	}
}

// TestImpairedLatency: half of both directions' delays, with what they may be off.
func TestImpairedLatency(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		both [2]vnet.Impairment
		want time.Duration
	}{
		{[2]vnet.Impairment{}, 0},
		{[2]vnet.Impairment{{Delay: 20 * ms}}, 10500 * time.Microsecond},
		{[2]vnet.Impairment{{Delay: 20 * ms}, {Delay: ms, Jitter: ms}}, 11025 * time.Microsecond},
		{[2]vnet.Impairment{{}, {Delay: 100 * time.Microsecond}}, 75 * time.Microsecond},
	} {
		if got := ImpairedLatency(c.both); got != c.want {
			t.Errorf("%v: %s, want %s", c.both, got, c.want)
		}
	}
}
