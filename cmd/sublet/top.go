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
	var selector string
	c := a.noun(&cobra.Command{
		Use:   "top [NAME]",
		Short: "Show what virtual links carry now, busiest first",
		Long: `Show, once a second, what enters each direction of virtual links and what of it
is dropped, busiest first, until interrupted: -> is from the link's first end to
its second, <- back. Rates are of whole frames. LOST is the part of the frames that
entered in that second which hosts dropped; what is lost on the substrate between
hosts is in sublet leases NAME. LATENCY is half a round trip between the hosts at
the ends of the link, and VARIATION by how much the way out differs from one time to
the next, as light probes in the class of the link find them; -: both ends are on one
host, or no answer has come yet. What a link's own queue adds is in it.`,
		Example:           "  sublet top hello\n  sublet top -l course=net1\n  sublet top -n 1 -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if tables < 0 {
				return badInput{fmt.Errorf("-n %d: state how many tables, or leave it out", tables)}
			}
			if err := a.checkFormat(); err != nil {
				return err
			}
			return a.runTop(c.Context(), args, selector, tables)
		},
	})
	selectorFlag(c, &selector)
	c.Flags().IntVarP(&tables, "number", "n", 0, "end after so many tables (default: go on)")
	return c
}

// errEnough ends a stream of which enough was seen.
var errEnough = fmt.Errorf("%w: enough", errNotPrinted)

func (a *app) runTop(ctx context.Context, args []string, selector string, tables int) error {
	of, err := a.following(ctx, args, selector)
	if err != nil {
		return err
	}
	all, printed, next := make(loads), 0, time.Now().Add(2*time.Second) // two samples of each make a rate
	err = a.follow(ctx, of.Scope, func(e api.Event) error {
		samples, err := e.Samples()
		if err != nil {
			return fmt.Errorf("read an event of the server: %w", err)
		}
		if samples, err = of.samples(ctx, samples); err != nil {
			return err
		}
		for _, s := range samples {
			all.take(s)
		}
		if e.Name != api.EventSamples || time.Now().Before(next) {
			return nil
		}
		next = time.Now().Add(time.Second)
		if err := a.printLoads(all, printed == 0); err != nil {
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
	tunnels       map[vnet.HostID]*probed // by the host that asks
}

// probed is what probes found of a tunnel.
type probed struct {
	rtt, variation time.Duration
	began          bool
	first, last    [2]uint64 // probes, and those that were not answered
}

func (p *probed) take(s report.Sample) {
	p.rtt = time.Duration(s.Value(report.RTT, report.Nanoseconds))
	p.variation = time.Duration(s.Value(report.Variation, report.Nanoseconds))
	p.last = [2]uint64{s.Value(report.Probes, report.Packets), s.Value(report.Unanswered, report.Packets)}
	if !p.began || p.last[0] < p.first[0] || p.last[1] < p.first[1] { // the host began anew
		p.first, p.began = p.last, true
	}
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
		r = &load{drops: make(map[vnet.HostID]*seen), dropped: make(map[vnet.HostID]float64), tunnels: make(map[vnet.HostID]*probed)}
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
	if s.Value(report.Probes, report.Packets) > 0 {
		if r.tunnels[s.Host] == nil {
			r.tunnels[s.Host] = new(probed)
		}
		r.tunnels[s.Host].take(s)
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

// loadView is what one direction of a virtual link carries, in the last second.
type loadView struct {
	Tenant    vnet.TenantID  `json:"tenant"`
	Network   vnet.VNetID    `json:"network"`
	Link      string         `json:"link"`
	Direction vnet.Direction `json:"direction"` // 0: from the link's first end to its second
	Rate      vnet.Rate      `json:"rate_bps"`
	Packets   float64        `json:"packets_per_s"` // that entered
	Dropped   float64        `json:"dropped_per_s"` // by hosts
	// Lost is the part of what entered that was dropped; absent: nothing entered.
	Lost *float64 `json:"lost_share,omitempty"`
	// Latency is half the round trip between the hosts at the link's ends, and Variation
	// that of the way of this direction; absent: not known.
	Latency   *float64 `json:"latency_us,omitempty"`
	Variation *float64 `json:"variation_us,omitempty"`
	// Unanswered is the part of the probes that were not answered since this began;
	// absent: none was sent.
	Unanswered *float64 `json:"unanswered_share,omitempty"`
}

// view is a direction's load for those who read it.
func (d linkDirection) view(r *load) loadView {
	v := loadView{Tenant: d.lease.Tenant, Network: d.lease.Network, Link: d.link, Rate: vnet.Rate(r.bits), Packets: r.packets}
	if d.direction == "1" {
		v.Direction = 1
	}
	for _, n := range r.dropped {
		v.Dropped += n
	}
	if v.Packets > 0 {
		v.Lost = new(min(v.Dropped/v.Packets, 1)) // hosts count at instants of their own
	}
	v.probed(r)
	return v
}

// probed adds tunnels up: a link that passes several hosts has one for each pair.
func (v *loadView) probed(r *load) {
	var rtt, variation time.Duration
	answered, all := 1.0, true
	for _, t := range r.tunnels {
		rtt, variation, all = rtt+t.rtt, variation+t.variation, all && t.rtt > 0
		if asked := t.last[0] - t.first[0]; asked > 0 {
			answered *= 1 - float64(t.last[1]-t.first[1])/float64(asked)
			v.Unanswered = new(1 - answered)
		}
	}
	if len(r.tunnels) > 0 && all {
		v.Latency, v.Variation = new(micros(rtt)/2), new(micros(variation))
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// views are those of all directions, busiest first.
func (l loads) views() []loadView {
	busiest := slices.SortedFunc(maps.Keys(l), func(x, y linkDirection) int {
		return cmp.Or(cmp.Compare(l[y].bits, l[x].bits), cmp.Compare(x.lease.String(), y.lease.String()),
			cmp.Compare(x.link, y.link), cmp.Compare(x.direction, y.direction))
	})
	views := []loadView{}
	for _, d := range busiest {
		views = append(views, d.view(l[d]))
	}
	return views
}

func loadRows(views []loadView) (rows [][]string) {
	for _, v := range views {
		lost, arrow := "-", "->"
		if v.Lost != nil {
			lost = lostText(*v.Lost)
		}
		if v.Direction == 1 {
			arrow = "<-"
		}
		rows = append(rows, []string{
			string(v.Network), orDash(string(v.Tenant)), v.Link, arrow,
			readable(v.Rate), fmt.Sprintf("%.0f", v.Packets), fmt.Sprintf("%.0f", v.Dropped), lost, microsText(v.Latency), microsText(v.Variation),
		})
	}
	return rows
}

// microsText is a time of so many us, in ms.
func microsText(us *float64) string {
	if us == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g ms", *us/1000)
}

// lostText never says that nothing was lost where something was.
func lostText(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	return fmt.Sprintf("%.4g%%", 100*share)
}

// printLoads prints all directions, in the place of the former table on a terminal.
func (a *app) printLoads(all loads, first bool) error {
	all.forget()
	switch {
	case a.format == "yaml" && !first:
		fmt.Fprintln(a.out, "---")
	case a.format == "table" && a.onTerminal():
		fmt.Fprint(a.out, "\x1b[H\x1b[J") // home, clear to the end (ECMA-48)
	}
	views := all.views()
	return a.printAll(views, "NETWORK TENANT LINK DIRECTION RATE PACKETS/S DROPPED/S LOST LATENCY VARIATION", loadRows(views), "no virtual links")
}
