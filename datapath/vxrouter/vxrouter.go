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

// Part does the section vxrouter. Do may be called concurrently for different
// items; Observe waits until no Do is running.
type Part struct {
	host *kernel.Host
	busy sync.RWMutex // Do: read, Observe: write
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host} }

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
		if err = writeForwarding(r.Forward); err == nil {
			c, err = kernel.Dial()
		}
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := setRoutes(c, r.Routes); err != nil {
		return err
	}
	return p.setOSPF(ctx, r)
}

// delete takes everything back; a node that is gone has taken it along.
func (p *Part) delete(r plan.VxRouter) error {
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
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.observe(key, host); err != nil {
			return fmt.Errorf("observe router %s: %w", key, err)
		}
	}
	return nil
}

// keys lists nodes and what daemons left behind.
func (p *Part) keys() ([]string, error) {
	nodes, err := p.host.Names("netns")
	if err != nil {
		return nil, err
	}
	daemons, err := p.host.Names("frr")
	if err != nil {
		return nil, err
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
	r := plan.VxRouter{
		Lease: vnet.LeaseID{Tenant: vnet.TenantID(parts[0]), Network: vnet.VNetID(parts[1])}, Node: parts[2],
		OSPF: p.observeOSPF(key),
	}
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
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
		r.Forward, ours = readForwarding()
		r.Routes, err = readRoutes()
		return err
	})
	if ours || len(r.Routes) > 0 || r.OSPF != nil {
		host.Add(r)
	}
	return err
}

// readRoutes reads our routes in the calling thread's namespace.
func readRoutes() ([]plan.Route, error) {
	c, err := kernel.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	routes, err := c.Routes(0, Protocol)
	if err != nil || len(routes) == 0 {
		return nil, err
	}
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	list := make([]plan.Route, len(routes))
	for i, r := range routes {
		list[i] = plan.Route{Prefix: r.Prefix, Via: r.Via, Interface: names[r.Index]}
	}
	slices.SortFunc(list, byPrefix)
	return list, nil
}

// byPrefix is the order of plan.VxRouter.Routes.
func byPrefix(a, b plan.Route) int {
	if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
		return c
	}
	return a.Prefix.Bits() - b.Prefix.Bits()
}

// setRoutes adds what is missing and removes what is ours and not wanted.
func setRoutes(c *kernel.Conn, want []plan.Route) error {
	have, err := c.Routes(0, Protocol)
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	if len(want) == 0 && len(have) == 0 {
		return nil
	}
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("read interfaces: %w", err)
	}
	indexes := make(map[string]int, len(links))
	for _, l := range links {
		indexes[l.Name] = l.Index
	}
	there := make(map[kernel.Route]bool, len(have))
	count := make(map[netip.Prefix]int, len(have)) // above one: a tenant's, with our number
	for _, r := range have {
		there[r] = true
		count[r.Prefix]++
	}
	wanted := make(map[netip.Prefix]bool, len(want))
	var adds, deletes []*kernel.Message
	for _, r := range want {
		route := kernel.Route{Prefix: r.Prefix, Via: r.Via, Index: indexes[r.Interface]}
		if route.Index == 0 {
			return fmt.Errorf("route to %s: no interface %s", r.Prefix, r.Interface)
		}
		wanted[r.Prefix] = true
		if !there[route] || count[r.Prefix] > 1 {
			adds = append(adds, kernel.AddRoute(route, Protocol))
		}
	}
	for _, r := range have {
		if !wanted[r.Prefix] || count[r.Prefix] > 1 {
			deletes = append(deletes, kernel.DeleteRoute(r, Protocol))
		}
	}
	if err := c.Batch(deletes); err != nil && !kernel.NotFound(err) {
		return fmt.Errorf("delete %d routes: %w", len(deletes), err)
	}
	if err := c.Batch(adds); err != nil {
		return fmt.Errorf("add %d routes: %w", len(adds), err)
	}
	return nil
}
