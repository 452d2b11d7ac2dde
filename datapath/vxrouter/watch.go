package vxrouter

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/proc"
)

// watchEvery is how often daemons are looked at. One that is found stopped twice
// is ended, and started again like one that died.
const watchEvery = 500 * time.Millisecond

// Loop ends daemons that somebody stopped (SIGSTOP), and puts a token into
// events, which has room for one, until ctx ends; and it drops kept routes. Such a daemon's routes stay
// while its neighbours give it up.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	stopped := make(map[proc.Process]bool)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.dropKept(time.Now())
		now := p.stopped()
		for d := range now {
			if stopped[d] && unix.Kill(d.PID, unix.SIGKILL) == nil {
				select {
				case events <- struct{}{}:
				default:
				}
			}
		}
		stopped = now
	}
}

// stopped are the daemons of all routers that stand still. What cannot be looked
// at is left alone.
func (p *Part) stopped() map[proc.Process]bool {
	found := make(map[proc.Process]bool)
	keys, _ := p.host.Names("frr")
	for _, key := range keys {
		for _, d := range p.configured(key) {
			pids, _ := p.running(key, d)
			for _, pid := range pids {
				if daemon, ok := proc.Living(pid); ok && daemon.Stopped {
					found[daemon] = true
				}
			}
		}
	}
	return found
}
