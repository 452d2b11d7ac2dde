package probe

import (
	"context"
	"fmt"
)

// LinkDirection is a direction of a virtual link.
type LinkDirection struct{ Link, From string } // From is the node or switch it leaves

// carried reads what each direction delivered so far; nil: nobody can say.
func (c *check) carried(ctx context.Context) map[LinkDirection]uint64 {
	if c.opt.Carried == nil {
		return nil
	}
	directions, err := c.opt.Carried(ctx)
	if err != nil {
		for _, t := range c.alive() {
			t.fail("what the link delivered cannot be read: " + err.Error())
		}
		return nil
	}
	return directions
}

// witness fails the trials whose probes claim more than the links delivered
// during the whole check. Ways that were built anew meanwhile count from zero
// and say nothing.
func (c *check) witness(before, after map[LinkDirection]uint64) {
	for _, t := range c.alive() {
		direction := LinkDirection{t.Link, t.From}
		then, known := before[direction]
		now, still := after[direction]
		if !known || !still || now < then {
			continue
		}
		if claimed := t.claims(c.opt); claimed > float64(now-then) {
			t.fail(fmt.Sprintf("the probes in %s and %s claim %.0f bytes, of which the link delivered %d: something in a node forges packets of the check", t.From, t.To, claimed, now-then))
		}
	}
}

// claims is how many bytes of payload arrived, by the probes' account, in the
// windows of the check. With what went before and after those, and with all
// headers, more were on the link: some 40 % in windows of 3 s, 8 % in 60 s.
func (t *trial) claims(opt Options) float64 {
	rates := float64(t.link.TCPPayload + t.link.UDPPayload)
	bytes := rates / 8 * opt.Duration.Seconds()
	if !opt.SkipLoss { // else what arrived last is in the rates
		bytes += float64(t.arrived.Payload)
	}
	return bytes
}
