package emulate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sublet/agent/iplbd"
	"sublet/fabric/spread"
)

// balancers rearrange every host's flows, as on a real one, if the method moves
// flows.
func (f *Fabric) balancers(ctx context.Context, work *sync.WaitGroup, m spread.Method, every time.Duration, log *slog.Logger) []*iplbd.Daemon {
	if m.Kind() != "flow" {
		return nil
	}
	var all []*iplbd.Daemon
	for _, h := range f.hosts {
		d := iplbd.New(h.name, h.table, log)
		d.Rearrange = every
		d.Apply(h.spreads)
		work.Go(func() { d.Run(ctx) })
		all = append(all, d)
	}
	return all
}

// movesOf counts the flows that were moved so far.
func movesOf(ctx context.Context, balancers []*iplbd.Daemon) (n int, err error) {
	for _, b := range balancers {
		status, err := b.Ask(ctx)
		if err != nil {
			return 0, fmt.Errorf("ask the moves of %s: %w", b.Host, err)
		}
		n += int(status.Moved)
	}
	return n, nil
}
