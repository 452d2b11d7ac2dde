package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// deaths are the programs that return nothing. Packets are led past them by the data
// path itself (datapath/nsh): here it is only told.
type deaths struct {
	sync.Mutex
	list report.Errors
}

const (
	lookEvery  = 100 * time.Millisecond
	lookLonger = 5 * time.Second // after what could not be read
)

// watches says whether somebody looks if programs of an item live.
func watches(c plan.Chains) bool {
	return slices.ContainsFunc(c.Hops, func(h plan.ChainHop) bool { return h.OnFailure != "" })
}

// Loop looks for programs and nodes of balancers that died or live again, until ctx ends.
func (p *Part) Loop(ctx context.Context, _ chan<- struct{}) {
	wait := lookEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = lookEvery
		if err := errors.Join(p.ask(time.Now()), p.look()); err != nil {
			p.log().Warn("whether functions of chains live cannot be read", "err", err)
			wait = lookLonger
		}
	}
}

func (p *Part) log() *slog.Logger {
	if p.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Log
}

// look finds who is dead now, and tells what is other than before.
func (p *Part) look() error {
	items, reports, err := p.watched()
	if err != nil {
		return err
	}
	if err := p.probe(items, reports, time.Now()); err != nil {
		return err
	}
	var now report.Errors
	for i, c := range items {
		for _, name := range reports[i].Dead {
			now = append(now, p.death(c, name))
		}
	}
	now = append(now, p.dead()...)
	now.Sort()
	p.deaths.Lock()
	was := p.deaths.list
	p.deaths.list = now
	p.deaths.Unlock()
	if slices.Equal(was, now) {
		return nil
	}
	p.tell(was, now)
	return nil
}

// watched are the items with programs of which somebody looks whether they live, and
// what their planes counted.
func (p *Part) watched() ([]plan.Chains, []nsh.Report, error) {
	if err := p.readHeld(); err != nil {
		return nil, nil, err
	}
	items := p.held.list(watches)
	if len(items) == 0 {
		return nil, nil, nil
	}
	var keys []string
	for _, c := range items {
		keys = append(keys, c.Key())
	}
	reports, err := p.plane.Reports(keys...)
	return items, reports, err
}

// death says what becomes of packets for a dead program.
func (p *Part) death(c plan.Chains, name string) report.ItemError {
	does := make(map[string]bool)
	for _, h := range c.Hops {
		if h.Function == name && h.OnFailure != "" {
			does[becomes[h.OnFailure]+" (chain "+h.Chain+")"] = true
		}
	}
	text := fmt.Sprintf("function %s returns nothing of what comes to it: its packets %s", name, strings.Join(slices.Sorted(maps.Keys(does)), ", "))
	return report.ItemError{Kind: plan.KindChains, Key: c.Key() + "/" + name, Lease: c.Lease, Op: plan.Carry, Text: text}
}

var becomes = map[vnet.OnFailure]string{
	vnet.FailureDrop: "are dropped", vnet.FailureBypass: "go past it", vnet.FailureReroute: "go to its standby",
}

// tell logs who died and who lives again.
func (p *Part) tell(was, now report.Errors) {
	for _, e := range now {
		if !slices.Contains(was, e) {
			p.log().Warn("a function died", "lease", e.Lease.String(), "cause", e.Text)
		}
	}
	for _, e := range was {
		if !slices.ContainsFunc(now, func(o report.ItemError) bool { return o.Key == e.Key }) {
			p.log().Info("a function lives again, or is gone", "lease", e.Lease.String(), "function", e.Key)
		}
	}
	if p.Changed != nil {
		p.Changed()
	}
}

// Problems are the programs that return nothing.
func (p *Part) Problems() report.Errors {
	p.deaths.Lock()
	defer p.deaths.Unlock()
	return slices.Clone(p.deaths.list)
}
