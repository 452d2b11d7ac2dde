package iplbd

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sublet/datapath/iplb"
	"sublet/plan"
)

// Order is what the operator wants of one prefix of a running daemon: another weight
// of a path, or a flow on a path (Flow is stated). It holds until the daemon ends,
// whatever lists and link state say meanwhile.
type Order struct {
	Prefix netip.Prefix `json:"prefix"`
	Relays []netip.Addr `json:"relays"`
	Weight uint32       `json:"weight,omitempty"` // 0: as the lists or the link state have it
	Flow   string       `json:"flow,omitempty"`   // as FlowText writes it
	Unpin  bool         `json:"unpin,omitempty"`  // the flow goes where it likes again
}

// Pin is a flow that the operator keeps on a path.
type Pin struct {
	Prefix netip.Prefix `json:"prefix"`
	Flow   string       `json:"flow"`
	Relays []netip.Addr `json:"relays"`
}

// maxPins bounds what is looked at in each round.
const maxPins = 1024

// weightedPath names a path, which may come and go.
type weightedPath struct {
	prefix netip.Prefix
	relays string
}

func relaysKey(relays []netip.Addr) string { return fmt.Sprint(relays) }

// Obey does what an order says.
func (d *Daemon) Obey(ctx context.Context, o Order) (problem error) {
	if err := d.Call(ctx, func() { problem = d.obey(o) }); err != nil {
		return err
	}
	return problem
}

func (d *Daemon) obey(o Order) error {
	split, ok := d.spreads[o.Prefix]
	if !ok {
		return fmt.Errorf("prefix %s has no paths here: sublet paths lists those that have", o.Prefix)
	}
	flow, err := ParseFlow(o.Flow)
	if o.Flow != "" && err != nil {
		return err
	}
	if o.Unpin {
		if _, pinned := d.pins[flowID{o.Prefix, flow}]; !pinned {
			return fmt.Errorf("flow %s to %s is not pinned", o.Flow, o.Prefix)
		}
		delete(d.pins, flowID{o.Prefix, flow})
		return nil
	}
	at := pathOf(split, o.Relays)
	switch {
	case at < 0:
		return fmt.Errorf("prefix %s has no path by %v: sublet paths lists them", o.Prefix, o.Relays)
	case split.Paths[at].Lease.Network != "":
		return fmt.Errorf("the path by %v belongs to lease %s: choose one without a lease", o.Relays, split.Paths[at].Lease)
	case o.Flow != "":
		return d.pin(split, flow, o)
	}
	return d.weigh(split, at, o.Weight)
}

func pathOf(split plan.Spread, relays []netip.Addr) int {
	return slices.IndexFunc(split.Paths, func(p plan.RelayPath) bool { return slices.Equal(p.Relays, relays) })
}

// weigh gives a path a weight.
func (d *Daemon) weigh(split plan.Spread, at int, weight uint32) error {
	path := weightedPath{split.Prefix, relaysKey(split.Paths[at].Relays)}
	was, had := d.weights[path]
	if delete(d.weights, path); weight != 0 {
		d.weights[path] = weight
	}
	next := d.weighted(d.listed[split.Prefix])
	err := next.Check()
	if err == nil {
		d.wanted[split.Prefix] = next
		err = d.ensure(split.Prefix)
	}
	if err != nil {
		if delete(d.weights, path); had {
			d.weights[path] = was
		}
		d.wanted[split.Prefix] = split
	}
	return err
}

// weighted is a spread with the weights that the operator ordered.
func (d *Daemon) weighted(s plan.Spread) plan.Spread {
	s.Paths = slices.Clone(s.Paths)
	for i, p := range s.Paths {
		if weight, ok := d.weights[weightedPath{s.Prefix, relaysKey(p.Relays)}]; ok {
			s.Paths[i].Weight = weight
		}
	}
	return s
}

// pin keeps a flow on a path, as long as that is alive.
func (d *Daemon) pin(split plan.Spread, flow iplb.FlowKey, o Order) error {
	switch {
	case split.Mode != "" && split.Mode != plan.PerFlow:
		return fmt.Errorf("prefix %s has mode %s: flows are pinned in mode flow", o.Prefix, split.Mode)
	case d.Rearrange <= 0:
		return fmt.Errorf("nobody looks at flows here: start the paths with --rearrange")
	case len(d.pins) >= maxPins:
		return fmt.Errorf("%d flows are pinned already: unpin one", maxPins)
	}
	d.pins[flowID{o.Prefix, flow}] = o.Relays
	flows, err := d.Table.AllFlows(idle)
	if err != nil {
		return fmt.Errorf("read flows: %w", err)
	}
	d.hold(split, flows[split.Prefix])
	return nil
}

// hold moves pinned flows to their paths, where these are alive. A flow without a
// packet yet goes there in the next round after its first one.
func (d *Daemon) hold(split plan.Spread, flows []iplb.Flow) {
	for i, f := range flows {
		relays, pinned := d.pins[flowID{split.Prefix, f.FlowKey}]
		if !pinned {
			continue
		}
		to := pathOf(split, relays)
		if to < 0 || to == f.Path {
			continue
		}
		if health, _ := d.health(split.Prefix, to); health == Down {
			continue
		}
		if err := d.Table.Move(split.Prefix, f.FlowKey, to); err != nil {
			d.Log.Debug("flow not moved", "flow", f.FlowKey, "err", err) // it ended
			continue
		}
		d.note(Move{Prefix: split.Prefix, Flow: flowText(f.FlowKey), From: split.Paths[f.Path].Relays, To: listed(relays), Why: "pinned"})
		flows[i].Path = to
	}
}

// pinList is what is pinned, in order.
func (d *Daemon) pinList() []Pin {
	list := []Pin{}
	for id, relays := range d.pins {
		list = append(list, Pin{id.prefix, flowText(id.key), listed(relays)})
	}
	slices.SortFunc(list, func(a, b Pin) int {
		return strings.Compare(a.Prefix.String()+a.Flow, b.Prefix.String()+b.Flow)
	})
	return list
}

// ParseFlow reads a flow as moves and pins show it: SOURCE:PORT>TARGET:PORT/PROTOCOL.
func ParseFlow(text string) (k iplb.FlowKey, err error) {
	ends, protocol, ok := strings.Cut(text, "/")
	source, target, too := strings.Cut(ends, ">")
	number, wrong := strconv.ParseUint(protocol, 10, 8)
	if ok && too && wrong == nil {
		k.Protocol = uint8(number)
		if k.Source, wrong = netip.ParseAddrPort(source); wrong == nil {
			k.Target, wrong = netip.ParseAddrPort(target)
		}
	}
	if !ok || !too || wrong != nil {
		return iplb.FlowKey{}, fmt.Errorf("%q is no flow: write it as 10.0.0.1:4000>10.0.1.1:80/6", text)
	}
	return k, nil
}
