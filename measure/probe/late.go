package probe

import (
	"context"
	"time"

	"sublet/internal/stall"
)

// watched carries out a command and says of all its flows how long the probe
// was kept from a processor meanwhile: a measure of how much its figures are
// worth.
func watched(ctx context.Context, c command, do func(context.Context, command) reply) reply {
	ctx, over := context.WithCancel(ctx)
	defer over()
	late := make(chan time.Duration, 1)
	stolen, queued := stall.Stolen(), stall.Queued()
	go func() { late <- lateness(ctx) }()
	answer := do(ctx, c)
	over()
	waited := max(<-late, stall.Stolen()-stolen)
	if len(answer.In) == 0 {
		for _, f := range c.In {
			answer.In = append(answer.In, figure{ID: f.ID})
		}
	}
	var perPing time.Duration
	if pings := pingsOf(answer); pings > 0 {
		perPing = (stall.Queued() - queued) / time.Duration(pings)
	}
	for _, figures := range [][]figure{answer.In, answer.Out} {
		for i := range figures {
			figures[i].Late, figures[i].Queued = max(figures[i].Late, waited), perPing
		}
	}
	return answer
}

// pingsOf is how many pings a probe sent, and about as many as it answered.
func pingsOf(r reply) (n int) {
	for _, f := range r.Out {
		if f.RTT != nil {
			n += f.RTT.Sent
		}
	}
	return n
}

// lateness is how long a thread that only sleeps was kept off the processor,
// in all, until the context ends.
func lateness(ctx context.Context) time.Duration {
	const step = 2 * time.Millisecond
	sum := make(chan time.Duration)
	go func() { // on a thread of its own, which ends with it
		precise()
		var late time.Duration
		for ctx.Err() == nil {
			due := monotonic() + int64(step)
			sleepUntil(due)
			late += max(0, time.Duration(monotonic()-due)-burstTime)
		}
		sum <- late
	}()
	return <-sum
}
