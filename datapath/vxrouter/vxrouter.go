// Package vxrouter gives virtual nodes their routing: forwarding, routes with
// a protocol number of their own, and on request FRR's OSPF daemon in the
// router's namespace.
//
//	zebra, ospfd: network and user namespace and control group of the router;
//	              files in $RUN/frr/HOST/TENANT.NETWORK.NODE, theirs in own/ there
package vxrouter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Protocol marks our routes (rtnetlink(7), rtm_protocol); ip(8) shows it as a
// number. FRR uses 11 and 186 to 199.
const Protocol = 155

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
	ospf     map[string]bool // nodes that have a directory of daemons, as last seen
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	return &Part{
		host: host, followed: make(map[string]*follower), failed: make(map[string]error),
		compared: make(map[string]*comparison), ospf: make(map[string]bool),
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
	if err := setRoutes(c, r.Routes); err != nil {
		return err
	}
	p.setFastpath(r.Key(), r.Forward)
	if err := p.setOSPF(ctx, r); err != nil || r.OSPF == nil {
		return err
	}
	return p.reinstall(r.Key())
}

// delete takes everything back; a node that is gone has taken it along.
func (p *Part) delete(r plan.VxRouter) error {
	p.setFastpath(r.Key(), false)
	if err := p.removeOSPF(r.Key()); err != nil {
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
	maps.DeleteFunc(p.ospf, func(key string, _ bool) bool { return !slices.Contains(keys, key) })
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
		if strings.Count(key, ".") == 2 {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

func (p *Part) observe(key string, host *plan.Host) error {
	parts := strings.Split(key, ".")
	r := plan.VxRouter{Lease: vnet.LeaseID{Tenant: vnet.TenantID(parts[0]), Network: vnet.VNetID(parts[1])}, Node: parts[2]}
	var err error
	if r.OSPF, err = p.observeOSPF(key); err != nil {
		return err
	}
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
		if err := p.host.Unseen(key); err != nil {
			return err
		}
		p.setFastpath(key, false)
		if r.OSPF != nil {
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
			r.Routes, err = readRoutes()
		}
		return err
	})
	if err != nil {
		return err
	}
	if r.OSPF != nil && p.lacks(key) {
		r.OSPF.RouterID = netip.Addr{} // as no plan has it
	}
	if ours || len(r.Routes) > 0 || r.OSPF != nil {
		host.Add(r)
	}
	p.setFastpath(key, r.Forward)
	return nil
}
