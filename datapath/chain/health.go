package chain

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// health is what is known of the nodes of balancers: whether they answer what they are
// asked by the way on which they get their flows.
type health struct {
	sync.Mutex
	of map[backendKey]*asked
}

// backendKey is an item's key, and the path of a node.
type backendKey struct {
	item string
	path uint32
}

// asked is a node of a balancer.
type asked struct {
	lives bool
	leads bool // the plane that was set last leads flows to it
	lived bool // once: else it is no news that it does not
	asker *asker
	sent  time.Time // the last question; zero: it was answered
	next  time.Time
	fails int // questions without an answer, one after another
}

// tries is after how many questions without an answer a node is dead. A host that has
// no time to ask loses no more than one of them.
const tries = 4

// up says whether a node gets new flows.
func (h *health) up(item string, path uint32) bool {
	h.Lock()
	defer h.Unlock()
	a := h.of[backendKey{item, path}]
	return a != nil && a.lives
}

// down says whether a node gets no flows since it answers nothing.
func (h *health) down(item string, path uint32) bool {
	h.Lock()
	defer h.Unlock()
	a := h.of[backendKey{item, path}]
	return a != nil && !a.leads
}

// adopt takes over what a former process of this host knew.
func (h *health) adopt(plane nsh.Plane) {
	h.Lock()
	defer h.Unlock()
	for _, f := range plane.Functions {
		for _, b := range f.Backends {
			if key := (backendKey{plane.Fabric, b.Path}); h.of[key] == nil {
				a := h.note(key)
				a.lives, a.leads = !b.Down, !b.Down
			}
		}
	}
}

// set notes to whom a plane leads flows.
func (h *health) set(plane nsh.Plane) {
	h.Lock()
	defer h.Unlock()
	for _, f := range plane.Functions {
		for _, b := range f.Backends {
			h.note(backendKey{plane.Fabric, b.Path}).leads = !b.Down
		}
	}
}

func (h *health) note(key backendKey) *asked {
	if h.of == nil {
		h.of = make(map[backendKey]*asked)
	}
	if h.of[key] == nil {
		h.of[key] = new(asked)
	}
	return h.of[key]
}

// balances says whether an item has nodes to ask.
func balances(c plan.Chains) bool {
	return slices.ContainsFunc(c.Functions, func(f plan.ChainFunction) bool { return len(f.Backends) > 0 })
}

// ask asks all nodes of balancers whose turn it is, and has their planes lead flows to
// those that live.
func (p *Part) ask(now time.Time) error {
	if err := p.readHeld(); err != nil {
		return err
	}
	items := p.held.list(balances)
	var changed []plan.Chains
	p.health.Lock()
	there := make(map[backendKey]bool)
	for _, c := range items {
		differs := false
		for _, f := range c.Functions {
			for _, b := range f.Backends {
				key := backendKey{c.Key(), b.Path}
				there[key] = true
				a := p.health.note(key)
				was := a.lives
				p.askOne(a, c, f, b, now)
				differs = differs || a.lives != was
			}
		}
		if differs {
			changed = append(changed, c)
		}
	}
	for key, a := range p.health.of {
		if !there[key] {
			a.asker.close()
			delete(p.health.of, key)
		}
	}
	p.health.Unlock()
	for _, c := range changed {
		if err := p.led(c); err != nil {
			return err
		}
	}
	return nil
}

// askOne reads what a node answered, and asks it again when it is time.
func (p *Part) askOne(a *asked, c plan.Chains, f plan.ChainFunction, b plan.ChainBackend, now time.Time) {
	if a.asker == nil {
		a.asker = openAsker(p.host, c, f, b) // nil: what leads there is being made
	}
	switch a.asker.answer() {
	case accepts:
		a.lives, a.lived, a.sent, a.fails = true, true, time.Time{}, 0
	case refuses:
		a.lives, a.sent, a.fails = false, time.Time{}, 0
	}
	if now.Before(a.next) {
		return
	}
	if !a.sent.IsZero() {
		if a.fails++; a.fails >= tries {
			a.lives = false
		}
	}
	patience := cmp.Or(time.Duration(f.Patience), vnet.DefaultHealthPatience)
	a.sent, a.next = now, now.Add(patience/tries)
	if !a.asker.ask() {
		a.asker.close()
		a.asker = nil
	}
}

// led sets an item's plane again, unless it has become another one.
func (p *Part) led(c plan.Chains) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	if !p.held.has(c) {
		return nil
	}
	if err := p.set(c); err != nil {
		return fmt.Errorf("lead flows of %s to nodes that live: %w", c.Key(), err)
	}
	return nil
}

// dead are the nodes of balancers that lived and answer nothing any more.
func (p *Part) dead() (list report.Errors) {
	items := p.held.list(balances)
	p.health.Lock()
	defer p.health.Unlock()
	for _, c := range items {
		for _, f := range c.Functions {
			for _, b := range f.Backends {
				if a := p.health.of[backendKey{c.Key(), b.Path}]; a != nil && a.lived && !a.lives {
					text := fmt.Sprintf("node %s does not answer balancer %s: its flows go to other nodes", b.Node, f.Name)
					list = append(list, report.ItemError{Kind: plan.KindChains, Key: c.Key() + "/" + f.Name + "/" + b.Node, Lease: c.Lease, Op: plan.Carry, Text: text})
				}
			}
		}
	}
	return list
}
