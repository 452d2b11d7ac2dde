package probe

import (
	"fmt"
	"net"
	"sync"
)

// each does something for every flow, all at once, and collects the figures.
func each(flows []flow, do func(flow, *figure) error) []figure {
	figures := make([]figure, len(flows))
	var working sync.WaitGroup
	for i, f := range flows {
		figures[i].ID = f.ID
		working.Go(func() {
			if err := do(f, &figures[i]); err != nil {
				figures[i].Err = err.Error()
			}
		})
	}
	working.Wait()
	return figures
}

// eachIn does something for every flow that ends here.
func (p *prober) eachIn(c command, do func(*receiver, flow, *figure) error) []figure {
	return each(c.In, func(f flow, g *figure) error {
		if r := p.in[f.ID]; r != nil {
			return do(r, f, g)
		}
		return fmt.Errorf("%s: no receiver %d", c.Op, f.ID)
	})
}

// eachOut does something for every flow that begins here.
func (p *prober) eachOut(c command, do func(*sender, flow, *figure) error) []figure {
	return each(c.Out, func(f flow, g *figure) error {
		if s := p.out[f.ID]; s != nil {
			return do(s, f, g)
		}
		return fmt.Errorf("%s: no sender %d", c.Op, f.ID)
	})
}

// acks are the connections of the opposite flow, which begins here: what they
// receive is acknowledgements.
func (p *prober) acks(f flow) []*net.TCPConn {
	if s := p.out[f.Pair]; s != nil {
		return s.conns
	}
	return nil
}
