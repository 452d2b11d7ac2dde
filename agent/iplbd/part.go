package iplbd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part is the part of datapath/iplb, which keeps the tunnels of leases on their
// paths, and tells of them as a daemon does of what it spreads. With a daemon it
// keeps the paths to prefixes too, as the daemon wants them.
type Part struct {
	*iplb.Part
	host   string
	daemon *Daemon // that has the table; nil: the part
	stop   func()  // ends what Open began; nil: nothing
}

// NewPart makes the part of a host; lock is as for iplb.NewPart.
func NewPart(host *kernel.Host, lock func() (io.Closer, error)) *Part {
	return &Part{Part: iplb.NewPart(host, lock), host: host.Host}
}

// PartOf makes the part of a host whose daemon runs beside it.
func PartOf(d *Daemon, host *kernel.Host) *Part {
	return &Part{Part: iplb.PartOf(host, d, d.Table), host: host.Host, daemon: d}
}

// Close ends what Open began and lets go of the table; what is in it stays.
func (p *Part) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.Part.Close()
}

// Kinds are paths of tunnels and paths to prefixes.
func (p *Part) Kinds() []plan.Kind { return append(p.Part.Kinds(), plan.KindPrefixSpread) }

// Local is what the daemon wants of the host.
func (p *Part) Local(ctx context.Context) []plan.Local {
	if p.daemon == nil {
		return nil
	}
	return []plan.Local{p.daemon.Local(ctx)}
}

// Observe lists tunnels, and the prefixes of the daemon.
func (p *Part) Observe(ctx context.Context, have *plan.Host) error {
	if err := p.Part.Observe(ctx, have); err != nil || p.daemon == nil {
		return err
	}
	return p.daemon.Call(ctx, func() { p.daemon.observe(have) })
}

// Do makes one change. A prefix gets what the daemon wants of it now, which may
// be newer than the step: paths that are lost wait for no audit.
func (p *Part) Do(ctx context.Context, step plan.Step) (err error) {
	if step.Item.Kind() != plan.KindPrefixSpread {
		return p.Part.Do(ctx, step)
	}
	s, ok := step.Item.(plan.Spread)
	if !ok || p.daemon == nil {
		return fmt.Errorf("%s: an agent without --lists and --ospf spreads tunnels only", step.Item.Key())
	}
	if missed := p.daemon.Call(ctx, func() { err = p.daemon.ensure(s.Prefix) }); missed != nil {
		return missed
	}
	return err
}

// Ask lists the tunnels of leases and their paths.
func (p *Part) Ask(ctx context.Context) (Status, error) {
	s := Status{Host: p.host, Moves: []Move{}, Prefixes: []PrefixStatus{}}
	err := p.Read(ctx, func(t *iplb.Table, leased []plan.Spread) (err error) {
		if t == nil {
			return nil
		}
		if s.Outcomes, err = t.Counts(); err != nil {
			return err
		}
		tunnels, err := tunnelStatuses(t, leased)
		s.Prefixes = append(s.Prefixes, tunnels...)
		return err
	})
	return s, err
}

// Obey refuses: paths of leases are those that were booked.
func (p *Part) Obey(context.Context, Order) error {
	return errors.New("paths of leases follow from what is booked: no order changes them")
}
