package probe

import (
	"context"
	"sync"
	"time"
)

// alive are the trials that can still be measured.
func (c *check) alive() []*trial {
	var alive []*trial
	for _, t := range c.trials {
		if t.fault == "" {
			alive = append(alive, t)
		}
	}
	return alive
}

// both makes the flows of a round for receiving and sending nodes, where not
// nil, and takes their figures, where anything but how late they were counts.
type both struct {
	in, out   func(*trial) flow
	got, sent func(*trial, figure)
}

// round sends one command to every node at once, with the flows that end or
// begin there, and waits for all: at most length and some grace.
func (c *check) round(ctx context.Context, cmd command, length time.Duration, b both) {
	replies := make(map[string]reply)
	failed := make(map[string]error)
	var mu sync.Mutex
	var calling sync.WaitGroup
	for node, s := range c.sessions {
		mine := c.fill(cmd, node, b)
		if len(mine.In)+len(mine.Out) == 0 {
			continue
		}
		calling.Go(func() {
			r, err := s.call(ctx, mine, length+grace)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[node] = err
				return
			}
			replies[node] = r
		})
	}
	calling.Wait()
	for node, err := range failed {
		c.lose(node, err)
	}
	for node, r := range replies {
		c.apply(r.In, b.got, func(t *trial) bool { return t.To == node })
		c.apply(r.Out, b.sent, func(t *trial) bool { return t.From == node })
	}
}

// fill adds a node's flows to a command.
func (c *check) fill(cmd command, node string, b both) command {
	for _, t := range c.alive() {
		if t.To == node && b.in != nil {
			cmd.In = append(cmd.In, b.in(t))
		}
		if t.From == node && b.out != nil {
			cmd.Out = append(cmd.Out, b.out(t))
		}
	}
	return cmd
}

// apply takes figures of trials that are the node's; a probe runs among a
// tenant's processes, so its numbers are not believed blindly.
func (c *check) apply(figures []figure, take func(*trial, figure), own func(*trial) bool) {
	for _, f := range figures {
		if f.ID < 0 || f.ID >= len(c.trials) || !own(c.trials[f.ID]) {
			continue
		}
		t := c.trials[f.ID]
		t.late, t.queued = max(t.late, f.Late), t.queued+f.Queued
		if take != nil {
			take(t, f)
		}
	}
}
