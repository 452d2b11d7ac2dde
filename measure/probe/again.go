package probe

import (
	"context"
	"fmt"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// trialLimit bounds how often a phase is done for want of a processor.
const trialLimit = 3

// again does a phase, and once more while a link's figure falls short and
// there is evidence that a probe, and not the link, was too slow for it. What
// remains in doubt is noted: it is not measured.
func (c *check) again(ctx context.Context, phase measure.Phase, do func(context.Context), doubt func(*trial, time.Duration) string) {
	for left := trialLimit; left > 0 && ctx.Err() == nil; left-- {
		for _, t := range c.alive() {
			t.late, t.queued, t.last = 0, 0, 0
		}
		do(ctx)
		if !c.doubts(phase, doubt) {
			return
		}
	}
	for _, t := range c.alive() {
		if why := t.doubts[phase]; why != "" {
			t.note(why)
		}
	}
}

// doubts says whether a link's figure is in doubt, and keeps why.
func (c *check) doubts(phase measure.Phase, doubt func(*trial, time.Duration) string) (any bool) {
	for _, t := range c.alive() {
		t.doubts[phase] = doubt(t, c.opt.Duration)
		any = any || t.doubts[phase] != ""
	}
	return any
}

// waitCosts bounds what waiting for a processor explains: a probe that only
// sleeps is kept waiting for less than one that sends does, and TCP backs off.
// It was up to eight times as much (docs/research/measurements.md, 1 Gbit/s beside other
// programs: 25 % for 0.1 s of 3 s).
const waitCosts = 10

// least is the part of a window below which waiting explains nothing.
const least = (1 - measure.Below) / 2

// starved doubts a rate that is low, while a probe waited for a processor for
// long enough to explain it; or one that is high by no more than what had queued
// up before the window in that time.
func starved(t *trial, rate vnet.Rate, window time.Duration) string {
	if !explains(t.late, window, float64(rate)/float64(t.load())) {
		return ""
	}
	return fmt.Sprintf("a probe waited %s for a processor: node %s or %s is short of it", t.late.Round(time.Millisecond), t.From, t.To)
}

// explains says whether so much waiting is why a part of a rate was measured.
func explains(late, window time.Duration, part float64) bool {
	right, waited := part >= measure.Below && part <= measure.Above, late.Seconds()/window.Seconds()
	return !right && waited >= least && waitCosts*waited >= 1-part && waited >= part-1
}

// tooSlow doubts the last rate that was measured.
func tooSlow(t *trial, window time.Duration) string { return starved(t, vnet.Rate(t.last), window) }

// delayed doubts a latency over its bound if threads that handle pings waited
// for a processor for as long as the median is above it: half of the pings were
// later still. Where the kernel does not count that, a thread that only sleeps
// has to have waited for half of the time.
func delayed(t *trial, _ time.Duration) string {
	if t.link.LatencyBound == 0 || t.link.Latency <= t.link.LatencyBound {
		return ""
	}
	over := time.Duration((t.last - 2*t.link.LatencyBound) * float64(time.Microsecond))
	if t.queued < over/2 && t.late < idleWindow/2 {
		return ""
	}
	return fmt.Sprintf("the best of %d times; threads of the probes waited %s for a processor with each ping: node %s or %s is short of it", trialLimit, t.queued, t.From, t.To)
}

// lossy doubts a loss when the receiver's own socket had no room, and one of no
// more than passes in the time that a probe waited for a processor.
func lossy(t *trial, window time.Duration) string {
	if t.arrived.Overflow > 0 {
		return fmt.Sprintf("the receiver itself dropped at least %d datagrams: node %s is short of processor time", t.arrived.Overflow, t.To)
	}
	if waited := t.late.Seconds() / window.Seconds(); t.last <= measure.LossLimit || waited < max(least, t.last) {
		return ""
	}
	return fmt.Sprintf("a probe waited %s for a processor: node %s or %s is short of it", t.late.Round(time.Millisecond), t.From, t.To)
}
