package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// Load is one load put on all targets at once, for experiments: nothing is
// judged, nothing is measured again.
type Load struct {
	TCP bool
	// Part of each target's Alloc that is offered, in frames. TCP is paced to
	// it (tcp(7), SO_MAX_PACING_RATE); 0 is as fast as it goes (TCP only).
	Part float64
}

// loadLag is what a UDP sender that was kept off the processor makes up for:
// a third of a link's queue, so that what is lost was offered too fast.
const loadLag = 10 * time.Millisecond

// Flow is what one target made of a load.
type Flow struct {
	Target
	Offered        vnet.Rate     // frames; 0: unlimited
	Rate, Payload  vnet.Rate     // received: Ethernet frames, application bytes
	Sent, Received uint64        // datagrams; 0 of TCP
	Loss           float64       // lost/sent datagrams
	Late           time.Duration // that a probe waited for a processor
	Fault          string        // why nothing was measured; "": it was
	Taken          bool          // that is because another program has the port: frames would tell
}

// InDoubt says whether the time that a probe waited for a processor explains why a
// flow's rate is not that of its target.
func (f Flow) InDoubt(window time.Duration) bool {
	return f.Alloc > 0 && explains(f.Late, window, float64(f.Rate)/float64(f.Alloc))
}

// Run loads all targets for opt's warm-up and duration and tells what arrived.
// From and To of a target may be several hops apart. An error says which
// target could not be loaded.
func Run(ctx context.Context, start Starter, opt Options, load Load) ([]Flow, error) {
	if load.Part <= 0 && !load.TCP {
		return nil, errors.New("load: UDP needs a rate")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &check{opt: opt.withDefaults(), trials: newTrials(opt.Targets), run: newRun()}
	c.start(ctx, start)
	defer c.close()
	c.connect(ctx)
	if load.TCP {
		for _, t := range c.trials {
			t.pace = load.Part
		}
		c.tcp(ctx)
	} else {
		c.udp(ctx, load.Part, loadLag)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return c.flows(load)
}

func (c *check) flows(load Load) ([]Flow, error) {
	var flows []Flow
	var failed error
	for _, t := range c.trials {
		f := Flow{Target: t.Target, Offered: vnet.Rate(load.Part * float64(t.load())), Late: t.late, Fault: t.fault, Taken: t.taken}
		if load.TCP {
			f.Rate, f.Payload = t.link.TCP, t.link.TCPPayload
		} else {
			f.Rate, f.Payload = measure.UDPRates(t.arrived.Datagrams, t.arrived.Payload, t.arrived.Span)
			f.Sent, f.Received = t.sent, t.arrived.Distinct
			f.Loss = measure.Loss(f.Sent, f.Received)
		}
		flows = append(flows, f)
		if t.fault != "" {
			failed = errors.Join(failed, fmt.Errorf("load from %s to %s: %s", t.From, t.To, t.fault))
		}
	}
	return flows, failed
}
