package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

func (a *app) top() *cobra.Command {
	var tables int
	c := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show what virtual links carry now, busiest first",
		Long: `Show, once a second, what enters each direction of virtual links and what of it
is dropped, busiest first, until interrupted: -> is from the link's first end to
its second, <- back. Rates are of whole frames.`,
		Example:           "  sublet top hello\n  sublet top -n 1",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if tables < 0 {
				return badInput{fmt.Errorf("-n %d: state how many tables, or leave it out", tables)}
			}
			return a.runTop(c.Context(), args, tables)
		},
	}
	c.Flags().IntVarP(&tables, "number", "n", 0, "end after so many tables (default: go on)")
	return c
}

// errEnough ends a stream of which enough was seen.
var errEnough = fmt.Errorf("%w: enough", errNotPrinted)

func (a *app) runTop(ctx context.Context, args []string, tables int) error {
	scope, err := a.scope(ctx, args)
	if err != nil {
		return err
	}
	all, printed, next := make(loads), 0, time.Now().Add(2*time.Second) // two samples of each make a rate
	err = a.follow(ctx, scope, func(e api.Event) error {
		samples, err := e.Samples()
		if err != nil {
			return fmt.Errorf("read an event of the server: %w", err)
		}
		for _, s := range scope.Filter(samples) {
			all.take(s)
		}
		if e.Name != api.EventSamples || time.Now().Before(next) {
			return nil
		}
		next = time.Now().Add(time.Second)
		if err := a.printLoads(all); err != nil {
			return fmt.Errorf("%w: %w", errNotPrinted, err)
		}
		if printed++; printed == tables {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// linkDirection is one direction of a virtual link.
type linkDirection struct {
	lease     vnet.LeaseID
	link      string
	direction string // report.LabelDirection
}

// load is what a direction carries.
type load struct {
	last          time.Time // when a host said something of it
	entered       seen      // at the host where frames enter
	packets, bits float64   // a second
	drops         map[vnet.HostID]*seen
	dropped       map[vnet.HostID]float64 // packets a second
}

// seen is a counter as it was read last, and how fast it grew.
type seen struct {
	at             time.Time
	packets, bytes uint64
}

// since takes a new reading and returns what was counted in a second; 0: there
// is no former one, or its item was built anew.
func (s *seen) since(at time.Time, packets, bytes uint64) (packetRate, byteRate float64) {
	was := *s
	*s = seen{at, packets, bytes}
	span := at.Sub(was.at).Seconds()
	if was.at.IsZero() || span <= 0 || packets < was.packets || bytes < was.bytes {
		return 0, 0
	}
	return float64(packets-was.packets) / span, float64(bytes-was.bytes) / span
}

// loads are those of all directions that were seen.
type loads map[linkDirection]*load

// take reads a sample; those of other things than virtual links count nothing,
// and a network that has ended is forgotten.
func (l loads) take(s report.Sample) {
	if s.Kind == report.KindLease && s.State == report.State(vnet.Ended) {
		maps.DeleteFunc(l, func(d linkDirection, _ *load) bool { return d.lease == s.Lease })
	}
	if s.Kind != plan.KindVxLink || s.Labels[report.LabelLink] == "" {
		return
	}
	d := linkDirection{s.Lease, s.Labels[report.LabelLink], s.Labels[report.LabelDirection]}
	r := l[d]
	if r == nil {
		r = &load{drops: make(map[vnet.HostID]*seen), dropped: make(map[vnet.HostID]float64)}
		l[d] = r
	}
	r.last = s.At
	if s.Labels[report.LabelEnters] == strconv.FormatBool(true) {
		packets, bytes := r.entered.since(s.At, s.Value(report.Entered, report.Packets), s.Value(report.Entered, report.Bytes))
		r.packets, r.bits = packets, 8*bytes
	}
	if r.drops[s.Host] == nil {
		r.drops[s.Host] = new(seen)
	}
	r.dropped[s.Host], _ = r.drops[s.Host].since(s.At, s.Value(report.Dropped, report.Packets), 0)
}

// old is how long after its last sample a direction is no longer shown.
const old = 10 * time.Second

// forget leaves out what no host has said anything of lately.
func (l loads) forget() {
	newest := time.Time{}
	for _, r := range l {
		if r.last.After(newest) {
			newest = r.last
		}
	}
	maps.DeleteFunc(l, func(_ linkDirection, r *load) bool { return newest.Sub(r.last) > old })
}

// rows are those of the table, busiest first.
func (l loads) rows() (rows [][]string) {
	busiest := slices.SortedFunc(maps.Keys(l), func(x, y linkDirection) int {
		return cmp.Or(cmp.Compare(l[y].bits, l[x].bits), cmp.Compare(x.lease.String(), y.lease.String()),
			cmp.Compare(x.link, y.link), cmp.Compare(x.direction, y.direction))
	})
	for _, d := range busiest {
		lost, arrow := 0.0, "->"
		for _, n := range l[d].dropped {
			lost += n
		}
		if d.direction == "1" {
			arrow = "<-"
		}
		rows = append(rows, []string{
			string(d.lease.Network), orDash(string(d.lease.Tenant)), d.link, arrow,
			readable(vnet.Rate(l[d].bits)), fmt.Sprintf("%.0f", l[d].packets), fmt.Sprintf("%.0f", lost),
		})
	}
	return rows
}

// printLoads prints all directions, in the place of the former table on a terminal.
func (a *app) printLoads(all loads) error {
	all.forget()
	if a.onTerminal() {
		fmt.Fprint(a.out, "\x1b[H\x1b[J") // home, clear to the end (ECMA-48)
	}
	rows := all.rows()
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "no virtual links")
		return err
	}
	return a.table("NETWORK TENANT LINK DIRECTION RATE PACKETS/S DROPPED/S", rows)
}
