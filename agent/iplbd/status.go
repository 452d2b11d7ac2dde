package iplbd

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sublet/datapath/iplb"
	"sublet/plan"
	"sublet/vnet"
)

// Status is what a host's paths are and carry.
type Status struct {
	Host     string            `json:"host"`
	Prefixes []PrefixStatus    `json:"prefixes"`
	Moves    []Move            `json:"moves"` // the last ones, newest last
	Moved    uint64            `json:"moved"` // since the start
	Outcomes map[string]uint64 `json:"outcomes"`
	Pins     []Pin             `json:"pins,omitempty"`
}

// PrefixStatus is one prefix with its paths.
type PrefixStatus struct {
	Prefix netip.Prefix    `json:"prefix"`
	VNI    vnet.VNI        `json:"vni,omitempty"` // of a leased tunnel to it, which has this path
	Also   []netip.Prefix  `json:"also,omitempty"`
	Mode   plan.SpreadMode `json:"mode"`
	By     plan.Relaying   `json:"by"`
	Paths  []PathStatus    `json:"paths"`
}

// PathStatus is one relay list.
type PathStatus struct {
	Relays  []netip.Addr  `json:"relays"`
	Weight  uint32        `json:"weight"`
	Health  Health        `json:"health"`
	RTT     time.Duration `json:"rtt_ns,omitempty"` // of the last probe
	Flows   int           `json:"flows"`
	Packets uint64        `json:"packets"`
	Bytes   uint64        `json:"bytes"` // of frames before headers
	Lease   string        `json:"lease,omitempty"`
	Owner   vnet.LeaseID  `json:"-"` // of Lease
}

// Health of a path. Unprobed says that it is not probed.
type Health string

// Healths.
const (
	Up       Health = "up"
	Down     Health = "down"
	Unprobed Health = "unprobed"
)

// Move is a flow that went to another path, or all that left a dead one.
type Move struct {
	At     time.Time    `json:"at"`
	Prefix netip.Prefix `json:"prefix"`
	Flow   string       `json:"flow,omitempty"` // none: all flows of the path
	From   []netip.Addr `json:"from"`
	To     []netip.Addr `json:"to,omitzero"`
	Why    string       `json:"why"` // balance, dead, alive, pinned
}

// listed is a list that JSON writes as one, of no relays too.
func listed(relays []netip.Addr) []netip.Addr { return append([]netip.Addr{}, relays...) }

// Ask reads the status of a running daemon.
func (d *Daemon) Ask(ctx context.Context) (s Status, err error) {
	err = d.Call(ctx, func() { s = d.status() })
	return s, err
}

func (d *Daemon) status() Status {
	s := Status{Host: d.Host, Pins: d.pinList(), Prefixes: []PrefixStatus{}, Moves: append([]Move{}, d.moves...), Moved: d.moved}
	flows, err := d.Table.AllFlows(0)
	if err != nil {
		d.Log.Error("flows not read", "err", err)
	}
	if s.Outcomes, err = d.Table.Counts(); err != nil {
		d.Log.Error("counters not read", "err", err)
	}
	for _, spread := range d.spreads {
		s.Prefixes = append(s.Prefixes, d.prefixStatus(spread, flows[spread.Prefix]))
	}
	slices.SortFunc(s.Prefixes, func(a, b PrefixStatus) int {
		return strings.Compare(a.Prefix.String(), b.Prefix.String())
	})
	leased := make([]plan.Spread, 0, len(d.leased))
	for _, t := range d.leased {
		leased = append(leased, t.spread)
	}
	tunnels, err := tunnelStatuses(d.Table, leased)
	if err != nil {
		d.Log.Error("load not read", "err", err)
	}
	s.Prefixes = append(s.Prefixes, tunnels...)
	return s
}

func (d *Daemon) prefixStatus(spread plan.Spread, flows []iplb.Flow) PrefixStatus {
	count := make([]int, len(spread.Paths))
	for _, f := range flows {
		count[f.Path]++
	}
	status := PrefixStatus{Prefix: spread.Prefix, Also: spread.Also, Mode: spread.Mode, By: spread.By}
	if status.Mode == "" {
		status.Mode = plan.PerFlow
	}
	if status.By == "" {
		status.By = plan.ByIPIP
	}
	for i, p := range spread.Paths {
		load, err := d.Table.Load(spread.Prefix, i)
		if err != nil {
			d.Log.Error("load not read", "err", err)
		}
		one := PathStatus{Relays: listed(p.Relays), Weight: max(p.Weight, 1), Health: Unprobed, Flows: count[i], Packets: load.Packets, Bytes: load.Bytes}
		if p.Lease.Network != "" {
			one.Lease, one.Owner = p.Lease.String(), p.Lease
		}
		one.Health, one.RTT = d.health(spread.Prefix, i)
		status.Paths = append(status.Paths, one)
	}
	return status
}
