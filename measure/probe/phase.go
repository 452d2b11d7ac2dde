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

	// skew covers commands that do not reach all nodes at once.
	skew = 300 * time.Millisecond

	// overload is the UDP load of a saturated link, as a part of its rate.
	overload = 1.1

	// overloadLag and lossLag are the time a sender that was kept off the
	// processor may make up for by sending faster. An overload may: nothing
	// depends on its losses. A load that must not lose anything may send two
	// bursts at once and no more.
	overloadLag = 50 * time.Millisecond
	lossLag     = 2 * burstTime

	// trialLimit bounds how often UDP is measured anew because a sender was
	// too slow for its load or a receiver for its own socket, which says
	// nothing of the link.
	trialLimit = 3
)

// phases measures, from light to heavy.
func (c *check) phases(ctx context.Context) {
	c.connect(ctx)
	c.idle(ctx)
	if !c.opt.SkipTCP {
		c.opt.Progress("TCP, all links")
		c.tcp(ctx)
	}
	if !c.opt.SkipUDP {
		c.opt.Progress("UDP, all links")
		c.saturate(ctx)
	}
	if !c.opt.SkipLoss {
		c.opt.Progress("UDP loss, all links")
		c.loss(ctx)
	}
}

// saturate measures the UDP rate, again if a sender could not keep its pace.
func (c *check) saturate(ctx context.Context) {
	for again, left := true, trialLimit; again && left > 0 && ctx.Err() == nil; left-- {
		again = false
		c.udp(ctx, overload, overloadLag)
		for _, t := range c.alive() {
			t.link.UDP, t.link.UDPPayload = measure.UDPRates(t.arrived.Datagrams, t.arrived.Payload, t.arrived.Span)
			again = again || t.starved(c.opt.Duration)
		}
	}
	for _, t := range c.alive() {
		if t.starved(c.opt.Duration) {
			t.note(fmt.Sprintf("the UDP sender waited %s for a processor: node %s is short of processor time", t.late.Round(time.Millisecond), t.From))
		}
	}
}

// loss measures loss, again if a receiver could not keep up.
func (c *check) loss(ctx context.Context) {
	for again, left := true, trialLimit; again && left > 0 && ctx.Err() == nil; left-- {
		again = false
		c.udp(ctx, measure.LossLoad, lossLag)
		for _, t := range c.alive() {
			t.link.UDPLoss = measure.Loss(t.sent, t.arrived.Distinct)
			again = again || t.arrived.Overflow > 0
		}
	}
	for _, t := range c.alive() {
		if t.arrived.Overflow > 0 {
			t.note(fmt.Sprintf("the receiver itself dropped at least %d datagrams: node %s is short of processor time", t.arrived.Overflow, t.To))
		}
		if t.sent == 0 {
			t.fail(fmt.Sprintf("nothing could be sent by UDP from %s on %s", t.From, t.FromIf))
		}
	}
}

// connect opens receivers, then senders.
func (c *check) connect(ctx context.Context) {
	c.opt.Progress("connect")
	streams := c.opt.Streams
	c.round(ctx, command{Op: opOpen, Run: c.run}, 0, both{
		in:   func(t *trial) flow { return t.inlet(streams) },
		done: func(t *trial, f figure) { t.ports = f.Ports; t.failOn(f.Err) },
	})
	if c.opt.SkipTCP {
		streams = 0
	}
	c.round(ctx, command{Op: opDial, Run: c.run}, connectTime, both{
		out: func(t *trial) flow { return t.outlet(streams) },
		done: func(t *trial, f figure) {
			if f.Err != "" {
				t.note(f.Err)
			}
		},
	})
}

// idle measures round trips on idle links, a few thousand pings a second in
// all, and fails the links that do not answer.
func (c *check) idle(ctx context.Context) {
	c.opt.Progress("round trips, idle")
	interval := max(5*time.Millisecond, time.Duration(len(c.trials))*250*time.Microsecond)
	window := min(max(time.Second, 100*interval), 5*time.Second)
	c.epoch++
	c.round(ctx, command{Op: opPing, Epoch: c.epoch, Window: window}, window, both{
		out: func(t *trial) flow { return flow{ID: t.id, Interval: interval} },
		done: func(t *trial, f figure) {
			if f.RTT == nil || f.RTT.Received == 0 {
				t.fail(fmt.Sprintf("%s does not answer %s over this link", t.To, t.From))
				return
			}
			t.link.RTT50, t.link.RTT99 = f.RTT.P50, f.RTT.P99
		},
	})
}

// tcp saturates all links with TCP.
func (c *check) tcp(ctx context.Context) {
	c.epoch++
	cmd := command{Op: opTCP, Epoch: c.epoch, WarmUp: c.opt.WarmUp, Window: c.opt.Duration, Tail: c.tail()}
	c.round(ctx, cmd, cmd.length()+cmd.Tail+drainTime+streamTime, both{
		in: func(t *trial) flow { return flow{ID: t.id, Pair: t.pair} },
		out: func(t *trial) flow {
			return flow{ID: t.id, Pair: t.pair, Rate: t.load(), Interval: t.loadInterval()}
		},
		done: func(t *trial, f figure) {
			if f.Err != "" {
				t.note(f.Err)
			}
			if f.TCP != nil {
				t.link.TCP, t.link.TCPPayload = f.TCP.Rates()
			}
			if f.RTT != nil {
				t.link.RTTLoad50, t.link.RTTLoad99 = f.RTT.P50, f.RTT.P99
			}
		},
	})
}

// tail leaves three times the time of the largest segment at the lowest rate.
func (c *check) tail() time.Duration {
	slowest := vnet.Rate(vnet.Gbit)
	for _, t := range c.alive() {
		slowest = min(slowest, t.load())
	}
	piece := pieceTime(slowest)
	return 3 * max(skew, min(piece, time.Second))
}

// pieceTime is the time of two largest segments (64 KiB) at a rate.
func pieceTime(r vnet.Rate) time.Duration {
	return time.Duration(2 * 65536 * 8 / float64(max(r, 1)) * float64(time.Second))
}

// udp loads all links with datagrams at a part of their rate and counts them.
// Senders may be late by lag.
func (c *check) udp(ctx context.Context, part float64, lag time.Duration) {
	c.epoch++
	cmd := command{Epoch: c.epoch, WarmUp: c.opt.WarmUp, Window: c.opt.Duration, Tail: c.tail() / 3}
	load := func(t *trial) flow { return flow{ID: t.id, Rate: vnet.Rate(part * float64(t.load())), Lag: lag} }
	for _, t := range c.alive() {
		t.sent, t.arrived = 0, arrived{}
	}
	cmd.Op = opExpect
	c.round(ctx, cmd, 0, both{in: load, done: func(t *trial, f figure) { t.failOn(f.Err) }})
	cmd.Op = opBlast
	c.round(ctx, cmd, cmd.length(), both{out: load, done: func(t *trial, f figure) {
		t.sent, t.late = f.Sent, f.Late
		if f.Err != "" {
			t.note(f.Err)
		}
	}})
	cmd.Op = opTally
	c.round(ctx, cmd, 0, both{
		in: func(t *trial) flow { return flow{ID: t.id, Sent: t.sent} },
		done: func(t *trial, f figure) {
			if f.Arrived != nil {
				t.arrived = *f.Arrived
			}
		},
	})
}
