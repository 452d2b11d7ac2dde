package vnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"sublet/plan"
	"sublet/vnet"
)

// Observe reads hosts files and nodes back, broken ones as nodes without an
// owner, and removes what nodes share and no node uses: after the last one is
// deleted nobody else would, if that was cut off. Without control groups nothing
// is told of nodes, and nothing is removed.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	if err := p.observeNames(host); err != nil {
		host.Unseen(err, vnet.LeaseID{}, plan.KindNames)
	}
	if err := p.observeNodes(ctx, host); err != nil {
		host.Unseen(err, vnet.LeaseID{}, plan.KindVNode)
	}
	if err := p.observeSetups(host); err != nil {
		host.Unseen(err, vnet.LeaseID{}, plan.KindSetup)
	}
	if err := p.observeStill(host); err != nil {
		host.Unseen(err, vnet.LeaseID{}, plan.KindPause)
	}
	return nil
}

func (p *Part) observeNodes(ctx context.Context, host *plan.Host) error {
	if err := errors.Join(p.host.LookGroups(), p.host.Look("userns")); err != nil {
		return err
	}
	keys, err := p.keys()
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	used, all := make(map[uint32]bool), true
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, name, _ := plan.ParseNamespace(key)
		node, err := p.observe(id, name, used)
		if err != nil {
			host.Unseen(fmt.Errorf("observe node %s: %w", key, err), id, plan.KindVNode)
			all = false
			continue
		}
		host.Add(node)
	}
	for _, kind := range []string{"netns", "userns", "tmp", keptKind} {
		if err := p.host.SweepConcealed(kind); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		p.host.Group("x").RemoveParents()
	}
	if !all {
		return nil // whose user namespace is of use is not known
	}
	if err := p.owners.sweep(used); err != nil || len(keys) > 0 {
		return err
	}
	p.host.Tidy()
	return nil
}

// keys lists every node of which there is anything.
func (p *Part) keys() ([]string, error) {
	files, err := p.host.Names("netns")
	if err != nil {
		return nil, err
	}
	scratch, err := p.host.Names("tmp")
	if err != nil {
		return nil, err
	}
	groups, err := p.host.Group("x").Siblings()
	if err != nil {
		return nil, err
	}
	keys := slices.Concat(files, scratch, groups)
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		_, _, ok := plan.ParseNamespace(key)
		return !ok
	}), nil
}

// observe reads a node, and notes its owner as used, be the node broken or not.
func (p *Part) observe(id vnet.LeaseID, name string, used map[uint32]bool) (plan.VNode, error) {
	key := plan.Namespace(id, name)
	owner, err := p.owner(key)
	if errors.Is(err, os.ErrNotExist) {
		return broken(id, name), p.host.Unseen(key)
	}
	if err != nil {
		return broken(id, name), err
	}
	used[owner] = true
	g := p.host.Group(key)
	if !g.Exists() {
		return broken(id, name), nil
	}
	if err := errors.Join(p.sweepSessions(key), p.trimLog(key)); err != nil {
		return broken(id, name), err
	}
	processes := g.MostProcesses()
	if processes == vnet.NodeProcesses {
		processes = 0
	}
	n := plan.VNode{
		Lease: id, Node: name, Owner: owner,
		CPU: vnet.CPU(g.CPU()), Memory: vnet.Bytes(g.Memory()), Processes: processes,
	}
	if most, ok := p.most(key); ok && follows(n.CPU, most) {
		n.CPU, n.Auto = most, true
	}
	return n, nil
}
