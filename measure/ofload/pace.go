package ofload

import (
	"fmt"
	"time"
)

// Tick moves the run on.
func (g *generator) Tick(now time.Time) time.Duration {
	switch g.state {
	case joining:
		g.tickJoining(now)
	case settling:
		if now.Sub(g.begin) > settled {
			g.enter(warming, now)
			g.due = now
			g.fill(now)
		}
	case warming:
		if now.Sub(g.begin) > g.config.Warmup {
			g.enter(counting, now)
		}
	case counting:
		g.tickCounting(now)
	case over:
	}
	if g.config.Rate > 0 && (g.state == warming || g.state == counting) {
		return g.pace(now)
	}
	return time.Millisecond
}

func (g *generator) enter(s state, now time.Time) { g.state, g.begin = s, now }

func (g *generator) tickJoining(now time.Time) {
	for _, p := range g.peers {
		if !p.greeted.IsZero() {
			continue
		}
		if now.Sub(g.begin) > joinTimeout {
			g.failed = fmt.Errorf("the controller asked switch %d of %d for nothing in %s: is it one of OpenFlow 1.%d", p.dpid, len(g.peers), joinTimeout, g.config.Version-1)
			g.state = over
		}
		return
	}
	g.enter(settling, now)
}

func (g *generator) tickCounting(now time.Time) {
	spent := now.Sub(g.begin)
	if g.config.Newcomer && g.late == nil && spent > g.config.Duration/2 {
		if err := g.join(); err != nil {
			g.failed, g.state = fmt.Errorf("connect the late switch: %w", err), over
			return
		}
		g.late = g.peers[len(g.peers)-1]
	}
	if p := g.late; p != nil && p.began.IsZero() && !p.greeted.IsZero() && now.Sub(p.greeted) > settled {
		p.began = now
		for _, other := range g.peers {
			other.since = 0
		}
		g.refill(p, now)
	}
	if g.config.Malformed {
		g.annoy()
	}
	if spent > g.config.Duration {
		g.end = now
		g.state = over
	}
}

// fill hands over what every switch may have waiting.
func (g *generator) fill(now time.Time) {
	for _, p := range g.peers {
		p.began = now
		g.refill(p, now)
	}
}

// refill hands over packets while more may wait, in a closed loop.
func (g *generator) refill(p *peer, now time.Time) {
	for g.config.Rate == 0 && len(p.free) > 0 {
		g.send(p, now)
	}
}

// pace hands over what is due in an open loop. A packet for which nothing is free
// stays due, so that its latency counts the wait.
func (g *generator) pace(now time.Time) time.Duration {
	gap := time.Duration(float64(time.Second) / g.config.Rate)
	for !g.due.After(now) {
		p := g.next()
		if p == nil {
			return time.Millisecond // answers wake it
		}
		g.send(p, g.due)
		g.due = g.due.Add(gap)
	}
	if wait := g.due.Sub(now); wait > 2*time.Millisecond {
		return wait - time.Millisecond
	}
	return 0 // spin: a wait has milliseconds
}

// next is the switch whose turn it is among those that may send; nil: none may.
func (g *generator) next() *peer {
	for range g.peers {
		p := g.peers[g.turn%len(g.peers)]
		g.turn++
		if len(p.free) > 0 && !p.began.IsZero() {
			return p
		}
	}
	return nil
}
