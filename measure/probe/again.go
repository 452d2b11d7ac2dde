package probe

import (
	"context"
	"fmt"
	"math"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// trialLimit bounds how often a phase is done for want of a processor.
const trialLimit = 3

// again does a phase, and once more while a link's figure falls short and
// there is evidence that a probe, and not the link, was too slow for it. What
// remains is noted, and judged as measured.
func (c *check) again(ctx context.Context, phase func(context.Context), doubt func(*trial, time.Duration) string) {
	for left := trialLimit; left > 0 && ctx.Err() == nil; left-- {
		for _, t := range c.alive() {
			t.late = 0
		}
		phase(ctx)
		if !c.doubts(doubt, func(*trial, string) {}) {
			return
		}
	}
	c.doubts(doubt, (*trial).note)
}

// doubts says whether a link's figure is in doubt, and tells of each.
func (c *check) doubts(doubt func(*trial, time.Duration) string, tell func(*trial, string)) (any bool) {
	for _, t := range c.alive() {
		if why := doubt(t, c.opt.Duration); why != "" {
			any = true
			tell(t, why)
		}
	}
	return any
}

// waitCosts bounds what waiting for a processor explains: a probe that only
// sleeps is kept waiting for less than one that sends does, and TCP backs off.
// It was up to eight times as much (docs/measurements.md, 1 Gbit/s beside other
// programs: 25 % for 0.1 s of 3 s).
const waitCosts = 10

// starved doubts a rate that is low, or high by what had queued up before the
// window, while a probe waited for a processor for long enough to explain it.
func starved(t *trial, rate vnet.Rate, window time.Duration) string {
	part, waited := float64(rate)/float64(t.load()), t.late.Seconds()/window.Seconds()
	right := part >= measure.Below && part <= measure.Above
	if right || waited < (1-measure.Below)/2 || waitCosts*waited < math.Abs(part-1) {
		return ""
	}
	return fmt.Sprintf("a probe waited %s for a processor: node %s or %s is short of it", t.late.Round(time.Millisecond), t.From, t.To)
}

func tcpStarved(t *trial, window time.Duration) string { return starved(t, t.link.TCP, window) }

func udpStarved(t *trial, window time.Duration) string { return starved(t, t.link.UDP, window) }

// delayed doubts a latency over its bound: of a probe that waits for a processor
// when a ping comes, nobody notes it.
func delayed(t *trial, _ time.Duration) string {
	if t.link.LatencyBound == 0 || t.link.Latency <= t.link.LatencyBound {
		return ""
	}
	return fmt.Sprintf("the best of %d times; a busy processor of node %s or %s adds to it", trialLimit, t.From, t.To)
}

// overflowed doubts a loss when the receiver's own socket had no room.
func overflowed(t *trial, _ time.Duration) string {
	if t.arrived.Overflow == 0 {
		return ""
	}
	return fmt.Sprintf("the receiver itself dropped at least %d datagrams: node %s is short of processor time", t.arrived.Overflow, t.To)
}
