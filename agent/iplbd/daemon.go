// Package iplbd runs a host's explicit multipath: it keeps the table of
// datapath/iplb as static lists and the fabric's link state say, watches that
// paths work, and moves flows between them (Nakamura, thesis, sections
// 5.4.1 and 5.5.2).
package iplbd

import (
	"context"
	"log/slog"
	"net/netip"
	"reflect"
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

	spreads map[netip.Prefix]plan.Spread // as they are in the table
	calls   chan func()                  // what others want done by the loop, which owns the table

	round     uint64 // rearrangements so far
	counted   map[flowID]flowRate
	lastMoved map[flowID]uint64 // round of a flow's last move
	moves     []Move
	moved     uint64

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

// Apply brings the table to some spreads; what goes, goes last, so that a prefix
// that moves to another spread is never without paths. A spread that
// cannot be made is said and left as it was; the others are made.
func (d *Daemon) Apply(spreads []plan.Spread) {
	wanted := make(map[netip.Prefix]plan.Spread, len(spreads))
	for _, s := range spreads {
		wanted[s.Prefix] = s
	}
	for prefix, s := range wanted {
		if reflect.DeepEqual(d.spreads[prefix], s) {
			continue
		}
		if err := d.Table.Set(s); err != nil {
			d.Log.Error("paths not set", "prefix", prefix, "err", err)
			continue
		}
		d.spreads[prefix] = s
		d.probeSpread(s)
	}
	d.removeOthers(wanted)
}

// removeOthers takes out rules that are not wanted, those of an earlier
// process too.
func (d *Daemon) removeOthers(wanted map[netip.Prefix]plan.Spread) {
	for _, p := range d.Table.Rules() {
		if _, stays := wanted[p]; stays {
			continue
		}
		if err := d.Table.Remove(p); err != nil {
			d.Log.Error("paths not removed", "prefix", p, "err", err)
		}
		delete(d.spreads, p)
		delete(d.watches, p)
	}
}

func prefixesOf(s plan.Spread) []netip.Prefix { return append([]netip.Prefix{s.Prefix}, s.Also...) }
