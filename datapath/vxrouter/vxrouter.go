// Package vxrouter gives virtual nodes their routing: forwarding, routes with
// a protocol number of their own, and on request FRR's daemons in the router's
// namespace.
//
//	zebra, ...: network and user namespace and control group of the router;
//	              files in $RUN/frr/HOST/TENANT.NETWORK.NODE, theirs in $RUN/vty/HOST/...
package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Protocol marks our routes.
const Protocol = kernel.RouteProtocol

//go:generate ../bpf/generate fastpath fastpath.bpf.c -type nexthop -type copy -type state -type count -type fallback

// Part does the section vxrouter. Do may be called concurrently for different
// items; Observe waits until no Do is running.
type Part struct {
	host *kernel.Host
	busy sync.RWMutex // Do: read, Observe: write

	mu       sync.Mutex
	followed map[string]*follower // routers with the fast path
	failed   map[string]error     // those that cannot have one
	compared map[string]*comparison
	refused  map[string]refusal // routers whose daemons did not take their configuration
	daemons  map[string]bool    // nodes that have a directory of daemons, as last seen
	kept     map[string]keeping // routers that keep what they have learned
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	return &Part{
		host: host, followed: make(map[string]*follower), failed: make(map[string]error),
		compared: make(map[string]*comparison), refused: make(map[string]refusal), daemons: make(map[string]bool),
		kept: make(map[string]keeping),
	}
}

// Kinds is vxrouter.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindVxRouter} }

// Do makes one change.
func (p *Part) Do(ctx context.Context, step plan.Step) error {
	router, ok := step.Item.(plan.VxRouter)
	if !ok {
		return fmt.Errorf("vxrouter does not do %s", step.Item.Kind())
	}
	p.busy.RLock()
	defer p.busy.RUnlock()
	var err error
	if step.Op == plan.Delete {
		err = p.delete(router)
	} else {
		err = p.set(ctx, router)
	}
	if err != nil {
		return fmt.Errorf("%s router %s: %w", step.Op, router.Key(), err)
	}
	return nil
}

func (p *Part) set(ctx context.Context, r plan.VxRouter) error {
	ns, err := p.host.Open(r.Key())
	if err != nil {
		return err
	}
	defer ns.Close()
	var c *kernel.Conn
	err = kernel.In(ns, func() (err error) {
		if err = makeForwarding(r.Forward); err == nil {
			c, err = kernel.Dial()
		}
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	c.Foreign = true
	if err := setRoutes(c, tablesOf(r)); err != nil {
		return err
	}
	if r.Forward {
		if err := setRules(c, r.Classes); err != nil {
			return err
		}
	}
	if err := addNeighbours(c, r.Neighbours); err != nil {
		return err
	}
	if err := p.setKept(c, r); err != nil { // before daemons end
		return err
	}
	p.setFastpath(r.Key(), r.Forward)
	if err := p.setDaemons(ctx, r); err != nil || daemonsOf(r).none() {
		return err
	}
	return p.reinstall(r.Key())
}

// delete takes everything back; a node that is gone has taken it along.
func (p *Part) delete(r plan.VxRouter) error {
	p.setFastpath(r.Key(), false)
	p.accept(r.Key())
	if err := p.removeDaemons(r.Key()); err != nil {
		return err
	}
	ns, err := p.host.Open(r.Key())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.In(ns, func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		c.Foreign = true
		if err := setRoutes(c, nil); err != nil {
			return err
		}
		if err := setRules(c, nil); err != nil {
			return err
		}
		return clearForwarding()
	})
}

// Observe reads back our part of every node's routing.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	keys, err := p.keys()
	if err != nil {
		return fmt.Errorf("list routers: %w", err)
	}
	p.mu.Lock()
	maps.DeleteFunc(p.daemons, func(key string, _ bool) bool { return !slices.Contains(keys, key) })
	p.mu.Unlock()
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.observe(key, host); err != nil {
			id, _, _ := plan.ParseNamespace(key)
			host.Unseen(fmt.Errorf("observe router %s: %w", key, err), id, plan.KindVxRouter)
		}
	}
	return nil
}

// keys lists nodes, and what daemons and programs left behind.
func (p *Part) keys() ([]string, error) {
	nodes, err := p.host.Names("netns")
	if err != nil {
		return nil, err
	}
	daemons, err := p.host.Names("frr")
	if err != nil {
		return nil, err
	}
	pins, err := p.host.Names("bpf")
	if err != nil {
		return nil, err
	}
	for _, name := range pins {
		if key, ours := strings.CutPrefix(name, pinsPrefix); ours {
			daemons = append(daemons, strings.ReplaceAll(key, ":", "."))
		}
	}
	keys := make(map[string]bool)
	for _, key := range append(nodes, daemons...) {
		if _, _, ok := plan.ParseNamespace(key); ok {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

func (p *Part) observe(key string, host *plan.Host) error {
	var r plan.VxRouter
	r.Lease, r.Node, _ = plan.ParseNamespace(key)
	have, err := p.observeDaemons(key)
	if err != nil {
		return err
	}
	r.OSPF, r.FRR = have.OSPF, have.FRR
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
		if err := p.host.Unseen(key); err != nil {
			return err
		}
		p.setFastpath(key, false)
		p.forgetKept(key)
		if !have.none() {
			host.Add(r)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	ours := false
	err = kernel.In(ns, func() (err error) {
		if r.Forward, ours, err = readForwarding(); err == nil {
			r.Routes, r.Classes, r.Inside, err = readRoutes(r.Forward)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.Keep = p.observeKept(key, !have.none())
	if !have.none() && p.lacks(key) {
		r.OSPF, r.FRR = unlike.OSPF, nil
	}
	if ours || len(r.Routes) > 0 || !have.none() {
		host.Add(r)
	}
	p.setFastpath(key, r.Forward)
	return nil
}
