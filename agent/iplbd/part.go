package iplbd

import (
	"context"
	"io"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part is the part of datapath/iplb, which keeps the tunnels of leases on their
// paths, and tells of them as a daemon does of what it spreads.
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
