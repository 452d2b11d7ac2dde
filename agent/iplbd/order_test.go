package iplbd

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/plan"
)

// TestFlowsArePinned: a pinned flow goes to its path and stays there whatever would
// even the loads, and moves again once it is unpinned.
func TestFlowsArePinned(t *testing.T) {
	d := newDiamond(t)
	d.relays()
	daemon, ctx := d.start([]plan.Spread{spreadOfTwo()}, func(d *Daemon) { d.Rearrange = 100 * time.Millisecond })
	defer d.flows([]int{1000, 1000, 1000, 1000})()
	until(t, ctx, daemon, "flows are there", func(p PrefixStatus, _ Status) bool { return p.Paths[0].Flows+p.Paths[1].Flows == 4 })
	flows, err := daemon.Table.AllFlows(0)
	if err != nil {
		t.Fatal(err)
	}
	prefix, to := spreadOfTwo().Prefix, spreadOfTwo().Paths[1].Relays
	for _, f := range flows[prefix] {
		if err := daemon.Obey(ctx, Order{Prefix: prefix, Flow: flowText(f.FlowKey), Relays: to}); err != nil {
			t.Fatal(err)
		}
	}
	_, s := until(t, ctx, daemon, "all are on one path", func(p PrefixStatus, _ Status) bool { return p.Paths[1].Flows == 4 })
	if len(s.Pins) != 4 {
		t.Errorf("pins: %+v", s.Pins)
	}
	time.Sleep(time.Second) // in which ten rounds would even them
	if p, _ := until(t, ctx, daemon, "they are counted", func(PrefixStatus, Status) bool { return true }); p.Paths[1].Flows != 4 {
		t.Errorf("pinned flows went elsewhere: %+v", p.Paths)
	}
	for _, f := range flows[prefix] {
		if err := daemon.Obey(ctx, Order{Prefix: prefix, Flow: flowText(f.FlowKey), Unpin: true}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, ctx, daemon, "loads are evened", func(p PrefixStatus, s Status) bool { return p.Paths[0].Flows == 2 && len(s.Pins) == 0 })
}

// TestOrdersOfWeights: an ordered weight counts at once and outlives lists that are
// read again, until it is taken back; what cannot be is refused in words and changes
// nothing, by the socket too.
func TestOrdersOfWeights(t *testing.T) {
	d := newDiamond(t)
	daemon, ctx := d.start([]plan.Spread{spreadOfTwo()}, func(d *Daemon) { d.Rearrange = 0 })
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := Serve(ctx, socket, daemon, daemon.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	prefix, relays := spreadOfTwo().Prefix, spreadOfTwo().Paths[1].Relays
	weight := func(s Status) uint32 { return s.Prefixes[0].Paths[1].Weight }
	s, err := Send(ctx, socket, Order{Prefix: prefix, Relays: relays, Weight: 7})
	if err != nil || weight(s) != 7 {
		t.Fatalf("weight %d, %v", weight(s), err)
	}
	daemon.Want(ctx, []plan.Spread{spreadOfTwo()})
	if s, err = Fetch(ctx, socket); err != nil || weight(s) != 7 {
		t.Errorf("after the lists were read again: weight %d, %v", weight(s), err)
	}
	flow := "10.1.1.1:1000>10.1.6.2:2000/17"
	for what, o := range map[string]Order{
		"has no paths here":          {Prefix: netip.MustParsePrefix("10.77.0.0/16"), Relays: relays, Weight: 1},
		"has no path by":             {Prefix: prefix, Relays: []netip.Addr{netip.MustParseAddr("10.255.0.9")}, Weight: 1},
		"is no flow":                 {Prefix: prefix, Relays: relays, Flow: "x"},
		"nobody looks at flows here": {Prefix: prefix, Relays: relays, Flow: flow},
		"is not pinned":              {Prefix: prefix, Flow: flow, Unpin: true},
	} {
		var refused Refused
		if _, err := Send(context.Background(), socket, o); !errors.As(err, &refused) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s, err = Send(ctx, socket, Order{Prefix: prefix, Relays: relays}); err != nil || weight(s) != 1 {
		t.Errorf("taken back: weight %d, %v", weight(s), err)
	}
}
