package probe

import (
	"context"
	"fmt"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

const (
	// grace is what a phase may take beyond its own length.
	grace = 10 * time.Second

	// idleWindow is how long pings of a few links are sent.
	idleWindow = time.Second

	// skew covers commands that do not reach all nodes at once.
	skew = 300 * time.Millisecond

	// overload is the UDP load of a saturated link, as a part of its rate. It
	// fills the link's queue with 0.2 s during a warm-up of one, so that a
	// sender that is kept off the processor for less leaves no hole.
	overload = 1.2

	// overloadLag and lossLag are the time a sender that was kept off the
	// processor may make up for by sending faster. An overload may: nothing
	// depends on its losses. A load that must not lose anything may send two
	// bursts at once and no more.
	overloadLag = 50 * time.Millisecond
	lossLag     = 2 * burstTime
)

// phases measures, from light to heavy.
func (c *check) phases(ctx context.Context) {
	c.connect(ctx)
	c.again(ctx, measure.Idle, c.idle, delayed)
	if !c.opt.SkipTCP {
		c.opt.Progress("TCP, all links")
		c.again(ctx, measure.TCP, c.tcp, tooSlow)
	}
	if !c.opt.SkipUDP {
		c.opt.Progress("UDP, all links")
		c.again(ctx, measure.UDP, c.overload, tooSlow)
	}
	if !c.opt.SkipLoss {
		c.opt.Progress("UDP loss, all links")
		c.again(ctx, measure.UDPLoss, c.loss, lossy)
	}
}

// overload measures the UDP rate.
func (c *check) overload(ctx context.Context) {
	c.udp(ctx, overload, overloadLag)
	for _, t := range c.alive() {
		frames, payload := measure.UDPRates(t.arrived.Datagrams, t.arrived.Payload, t.arrived.Span)
		t.last = float64(frames)
		if t.better(frames, t.link.UDP) {
			t.link.UDP, t.link.UDPPayload = frames, payload
		}
	}
}

// loss measures loss.
func (c *check) loss(ctx context.Context) {
	c.udp(ctx, measure.LossLoad, lossLag)
	for _, t := range c.alive() {
		t.link.UDPLoss = measure.Loss(t.sent, t.arrived.Distinct)
		t.last = t.link.UDPLoss
		if t.sent == 0 && measure.Measurable(t.Impair) {
			t.fail(fmt.Sprintf("nothing could be sent by UDP from %s on %s", t.From, t.FromIf))
		}
	}
}

// connect opens receivers, then senders.
func (c *check) connect(ctx context.Context) {
	c.opt.Progress("connect")
	streams := c.opt.Streams
	c.round(ctx, command{Op: opOpen, Run: c.run}, 0, both{
		in: func(t *trial) flow { return t.inlet(t.streams(streams)) },
		got: func(t *trial, f figure) {
			t.ports, t.taken = f.Ports, f.Taken
			t.failOn(f.Err)
			if t.Port != 0 && f.Err == "" && (f.Ports.TCP != t.Port || f.Ports.UDP != t.Port) {
				t.fail(fmt.Sprintf("the program at node %s is of a former version: it cannot receive at a stated port", t.To))
			}
		},
	})
	c.round(ctx, command{Op: opDial, Run: c.run}, 0, both{
		out:  func(t *trial) flow { return t.outlet(t.streams(streams)) },
		sent: func(t *trial, f figure) { t.noteError(f.Err) },
	})
}

// only names a trial's flow.
func only(t *trial) flow { return flow{ID: t.id} }

// idle measures round trips on idle links, a few thousand pings a second in
// all, and fails the links that do not answer.
func (c *check) idle(ctx context.Context) {
	c.opt.Progress("round trips, idle")
	interval := max(5*time.Millisecond, time.Duration(len(c.trials))*250*time.Microsecond)
	window := min(max(idleWindow, 100*interval), 5*time.Second)
	c.epoch++
	c.round(ctx, command{Op: opPing, Epoch: c.epoch, Window: window}, window, both{
		in:  only,
		out: func(t *trial) flow { return flow{ID: t.id, Interval: interval} },
		sent: func(t *trial, f figure) {
			if f.RTT == nil || f.RTT.Received == 0 {
				if !measure.Measurable(t.Impair) {
					return
				}
				t.fail(fmt.Sprintf("%s does not answer %s over this link", t.To, t.From))
				return
			}
			t.last = f.RTT.P50
			if t.link.RTT50 == 0 || f.RTT.P50 < t.link.RTT50 {
				t.link.RTT50, t.link.RTT99, t.link.Latency = f.RTT.P50, f.RTT.P99, f.RTT.P50/2
			}
		},
	})
}

// tcp saturates all links with TCP, by new streams.
func (c *check) tcp(ctx context.Context) {
	c.epoch++
	for _, t := range c.alive() {
		t.frames, t.payload, t.acks, t.pings = 0, 0, 0, 0
	}
	c.round(ctx, command{Op: opStream}, connectTime, both{
		out:  only,
		sent: func(t *trial, f figure) { t.noteError(f.Err) },
	})
	cmd := command{Op: opTCP, Epoch: c.epoch, WarmUp: c.opt.WarmUp, Window: c.opt.Duration, Tail: c.tail()}
	take := func(t *trial, f figure) { t.takeTCP(f, c.opt.Duration) }
	c.round(ctx, cmd, cmd.length()+cmd.Tail+drainTime+streamTime, both{
		in: func(t *trial) flow { return flow{ID: t.id, Pair: t.pair} },
		out: func(t *trial) flow {
			return flow{ID: t.id, Pair: t.pair, Rate: t.load(), Pace: t.pacing(), Interval: t.loadInterval()}
		},
		got: take, sent: take,
	})
	for _, t := range c.alive() {
		t.judgeTCP(c.beside(t))
	}
}

// beside is what else went the way of a trial's data on the links that it
// begins and ends by: pings, their answers, and the acknowledgements of other
// trials' data (those of its opposite's are counted where they arrive).
func (c *check) beside(t *trial) (near, far vnet.Rate) {
	for _, o := range c.alive() {
		back := o.pings // answers
		if o.id != t.pair {
			back += o.acks
		}
		if o.From == t.From && o.FromIf == t.FromIf {
			near += o.pings
		}
		if o.To == t.From && o.ToIf == t.FromIf {
			near += back
		}
		if o.To == t.To && o.ToIf == t.ToIf {
			far += o.pings
		}
		if o.From == t.To && o.FromIf == t.ToIf {
			far += back
		}
	}
	return near, far
}

// tail leaves three times the time of the largest segment at the lowest rate.
func (c *check) tail() time.Duration {
	slowest := vnet.Rate(vnet.Gbit)
	for _, t := range c.alive() {
		slowest = min(slowest, t.load())
	}
	piece := pieceTime(slowest)
	return 3 * max(skew, min(piece, time.Second)+c.delay())
}

// delay is the longest that impairments ask for, of those that can be measured.
func (c *check) delay() (longest time.Duration) {
	for _, t := range c.alive() {
		if measure.Measurable(t.Impair) {
			longest = max(longest, measure.LongestDelay(t.Impair[0]))
		}
	}
	return longest
}

// pieceTime is the time of two largest segments (64 KiB) at a rate.
func pieceTime(r vnet.Rate) time.Duration {
	return timeOf(2*65536*8, max(r, 1))
}

// timeOf is how long bits take at a rate.
func timeOf(bits float64, r vnet.Rate) time.Duration {
	return time.Duration(bits / float64(r) * float64(time.Second))
}

// udp loads all links with datagrams at a part of their rate and counts them.
// Senders may be late by lag.
func (c *check) udp(ctx context.Context, part float64, lag time.Duration) {
	c.epoch++
	cmd := command{Epoch: c.epoch, WarmUp: c.opt.WarmUp, Window: c.opt.Duration, Tail: c.tail() / 3}
	load := func(t *trial) flow { return flow{ID: t.id, Rate: vnet.Rate(part * float64(t.datagrams())), Lag: lag} }
	for _, t := range c.alive() {
		t.sent, t.arrived = 0, arrived{}
	}
	cmd.Op = opExpect
	c.round(ctx, cmd, 0, both{in: load, got: func(t *trial, f figure) { t.failOn(f.Err) }})
	cmd.Op = opLoad
	c.round(ctx, cmd, cmd.length(), both{in: only, out: load, sent: func(t *trial, f figure) {
		t.sent = f.Sent
		t.noteError(f.Err)
	}})
	cmd.Op = opTally
	c.round(ctx, cmd, 0, both{
		in: func(t *trial) flow { return flow{ID: t.id, Sent: t.sent} },
		got: func(t *trial, f figure) {
			if f.Arrived != nil {
				t.arrived = *f.Arrived
			}
		},
	})
}
