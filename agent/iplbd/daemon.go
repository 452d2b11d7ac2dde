// Package iplbd runs a host's explicit multipath: it keeps the table of
// datapath/iplb as static lists and the fabric's link state say, watches that
// paths work, and moves flows between them (Nakamura, thesis, sections
// 5.4.1 and 5.5.2).
package iplbd

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"sublet/datapath/iplb"
	"sublet/plan"
	"sublet/vnet"
)

// Daemon is the loop of one host. It owns the table while it runs.
type Daemon struct {
	Host  string
	Table *iplb.Table
	Log   *slog.Logger

	Rearrange time.Duration // between measurements of the flows' rates; 0: never
	Probing   Probing

	listed  map[netip.Prefix]plan.Spread // as lists and link state have them
	wanted  map[netip.Prefix]plan.Spread // with what was ordered
	spreads map[netip.Prefix]plan.Spread // as they are in the table
	calls   chan func()                  // what others want done by the loop, which owns the table

	round     uint64 // rearrangements so far
	counted   map[flowID]flowRate
	lastMoved map[flowID]uint64 // round of a flow's last move
	moves     []Move
	moved     uint64

	weights map[weightedPath]uint32 // that were ordered
	pins    map[flowID][]netip.Addr // relays of the paths that flows are kept on

	leased map[vnet.VNI]*tunnel

	watches map[netip.Prefix]pathProbes
	tick    uint64
	ticked  time.Duration
}

// New makes a daemon over a table; set its fields before Run.
func New(host string, table *iplb.Table, log *slog.Logger) *Daemon {
	return &Daemon{
		Host: host, Table: table, Log: log, Rearrange: time.Second,
		spreads: make(map[netip.Prefix]plan.Spread), calls: make(chan func()), leased: make(map[vnet.VNI]*tunnel),
		counted: make(map[flowID]flowRate), lastMoved: make(map[flowID]uint64), watches: make(map[netip.Prefix]pathProbes),
		weights: make(map[weightedPath]uint32), pins: make(map[flowID][]netip.Addr),
	}
}

// Want makes these spreads, and no others, the table's; it returns when they are.
func (d *Daemon) Want(ctx context.Context, spreads []plan.Spread) {
	_ = d.Call(ctx, func() { d.Apply(spreads) }) // an error: the daemon ends
}

// Call runs f in the daemon's loop, which owns the table.
func (d *Daemon) Call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case d.calls <- func() { f(); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run works until the context ends.
func (d *Daemon) Run(ctx context.Context) {
	rearrange := ticker(d.Rearrange)
	defer rearrange.Stop()
	probe := ticker(d.Probing.Every)
	defer probe.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-d.calls:
			f()
		case <-rearrange.C:
			d.rearrange()
		case <-probe.C:
			d.probe()
		}
	}
}

// ticker is one that never ticks for 0.
func ticker(every time.Duration) *time.Ticker {
	if every <= 0 {
		t := time.NewTicker(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTicker(every)
}

// Apply brings the table to some spreads, and takes out those of an earlier
// process; what goes, goes last, so that a prefix that moves to another spread
// is never without paths. A spread that cannot be made is said and left as it
// was; the others are made.
func (d *Daemon) Apply(spreads []plan.Spread) {
	d.listed, d.wanted = make(map[netip.Prefix]plan.Spread, len(spreads)), make(map[netip.Prefix]plan.Spread, len(spreads))
	for _, s := range spreads {
		d.listed[s.Prefix], d.wanted[s.Prefix] = s, d.weighted(s)
	}
	for _, p := range slices.Concat(slices.Collect(maps.Keys(d.wanted)), d.Table.Rules()) {
		if err := d.ensure(p); err != nil {
			d.Log.Error("paths not as wanted", "prefix", p, "err", err)
		}
	}
}

// ensure makes a prefix's rule what is wanted of it now.
func (d *Daemon) ensure(p netip.Prefix) error {
	s, wanted := d.wanted[p]
	if !wanted {
		delete(d.spreads, p)
		delete(d.watches, p)
		return d.Table.Remove(p)
	}
	if reflect.DeepEqual(d.spreads[p], s) {
		return nil
	}
	if err := d.Table.Set(s); err != nil {
		return err
	}
	d.spreads[p] = s
	d.probeSpread(s)
	return nil
}

// observe lists the rules of the table; of one that an earlier process left,
// the prefix only.
func (d *Daemon) observe(have *plan.Host) {
	for _, p := range d.Table.Rules() {
		s := d.spreads[p]
		s.Prefix = p
		have.Add(s)
	}
}

// Local is what the daemon wants of its host.
func (d *Daemon) Local(ctx context.Context) plan.Local {
	local := plan.Local{Owner: plan.ByPaths}
	_ = d.Call(ctx, func() { // an error: the daemon ends, and does no steps any more
		for _, s := range d.wanted {
			local.Items = append(local.Items, s)
		}
	})
	return local
}

func prefixesOf(s plan.Spread) []netip.Prefix { return append([]netip.Prefix{s.Prefix}, s.Also...) }
