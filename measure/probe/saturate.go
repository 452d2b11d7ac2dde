package probe

import (
	"context"
	"sync"
	"time"
)

// streamTime is how long accepted streams may take to show up.
const streamTime = time.Second

// tcp saturates the streams there are and measures, in both directions at
// once, then closes them. Windows are opened before anything is sent here.
func (p *prober) tcp(ctx context.Context, c command) reply {
	defer p.hangUp(c)
	windows := make(map[int]*window, len(c.In))
	for _, f := range c.In {
		if r := p.in[f.ID]; r != nil {
			windows[f.ID] = openWindow(r.streams(ctx, streamTime), p.acks(f), c.WarmUp, c.Window)
		}
	}
	var answer reply
	var all sync.WaitGroup
	all.Go(func() {
		answer.In = p.eachIn(c, func(r *receiver, f flow, g *figure) error {
			r.soak(windows[f.ID], c)
			g.TCP = windows[f.ID].figures()
			return nil
		})
	})
	all.Go(func() {
		answer.Out = p.eachOut(c, func(s *sender, f flow, g *figure) error { return s.flood(ctx, c, f, g) })
	})
	all.Wait()
	return answer
}

// hangUp closes the streams of a command's flows.
func (p *prober) hangUp(c command) {
	for _, f := range c.In {
		if r := p.in[f.ID]; r != nil {
			r.hangUp()
		}
	}
	for _, f := range c.Out {
		if s := p.out[f.ID]; s != nil {
			s.hangUp()
		}
	}
}
