package emulate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sublet/fabric/spread"
	"sublet/plan"
)

// Timing of a run.
type Timing struct {
	Settle    time.Duration // before packets count: tables, queues and flows settle
	Measure   time.Duration
	Rearrange time.Duration // interval
}

// Result of a run.
type Result struct {
	Sent, Received uint64
	Moves          int           // of flows, while it was measured
	Late           time.Duration // by how much the latest packet was late
	Idle           float64       // part of the processors' time that nobody used
}

// Rate is what arrived of what was sent.
func (r Result) Rate() float64 { return float64(r.Received) / float64(max(r.Sent, 1)) }

// Datagrams runs a pattern: every host sends n flows to its target at its
// wire's rate, one relay's header included.
func (f *Fabric) Datagrams(ctx context.Context, targets []int, n int, d spread.Distribution, m spread.Method, t Timing, rng *rand.Rand) (Result, error) {
	if err := f.spread(targets, m); err != nil {
		return Result{}, err
	}
	f.run++
	var senders []*sender
	defer func() {
		for _, s := range senders {
			s.close()
		}
	}()
	for from, to := range targets {
		s, err := f.sender(from, to, d.Shares(n, rng), m, rng)
		if err != nil {
			return Result{}, fmt.Errorf("open the flows of %s: %w", f.hosts[from].name, err)
		}
		senders = append(senders, s)
	}
	for _, h := range f.hosts {
		h.sink.reset(f.run)
	}
	return f.measure(ctx, senders, m, t)
}

func (f *Fabric) sender(from, to int, shares []float64, m spread.Method, rng *rand.Rand) (*sender, error) {
	a, b := f.hosts[from], f.hosts[to]
	source, target := a.loop, b.loop
	if m.Kind() == "tree" { // links' own addresses have one path
		source, target = a.port, b.port
	}
	s := &sender{from: from, to: to, rotation: newRotation(shares, rng.Float64), gap: f.gap(from)}
	for range shares {
		c, err := a.dial(source, target)
		if err != nil {
			s.close()
			return nil, err
		}
		s.flows = append(s.flows, c)
	}
	return s, nil
}

// gap between packets that fill a host's wire.
func (f *Fabric) gap(from int) time.Duration {
	wire := plan.WireRate(f.sub, f.sub.Links[f.model.Access(from)].Capacity).BytesPerSecond()
	return time.Duration(float64(time.Second) * (payload + headers + relayed) / float64(wire))
}

// measure lets the flows settle, counts for a while, and waits for what is
// under way.
func (f *Fabric) measure(ctx context.Context, senders []*sender, m spread.Method, t Timing) (r Result, err error) {
	sending, stop := context.WithCancel(ctx)
	var counts atomic.Bool
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for i, s := range senders {
		work.Go(func() {
			time.Sleep(s.gap * time.Duration(i) / time.Duration(len(senders))) // not all at once
			s.send(sending, f.run, &counts)
		})
	}
	var complaints strings.Builder // one handler writes one at a time
	balancers := f.balancers(sending, &work, m, t.Rearrange, slog.New(slog.NewTextHandler(&complaints, &slog.HandlerOptions{Level: slog.LevelError})))
	if err := sleep(ctx, t.Settle); err != nil {
		return r, err
	}
	settled, err := movesOf(ctx, balancers)
	if err != nil {
		return r, err
	}
	before, _ := readJiffies()
	counts.Store(true)
	if err := sleep(ctx, t.Measure); err != nil {
		return r, err
	}
	counts.Store(false) // to ask delays senders
	r.Idle, _ = idleSince(before)
	moves, err := movesOf(ctx, balancers)
	if err != nil {
		return r, err
	}
	r.Moves = moves - settled
	stop()
	work.Wait()
	if complaints.Len() > 0 {
		return r, fmt.Errorf("rearrange flows: %s", strings.TrimSpace(complaints.String()))
	}
	if err := sleep(ctx, f.wait); err != nil {
		return r, err
	}
	for i, s := range senders {
		r.Sent, r.Late = r.Sent+s.sent, max(r.Late, s.late)
		r.Received += f.hosts[i].sink.got.Load()
	}
	return r, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
