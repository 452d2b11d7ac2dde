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
// deleted nobody else would, if that was cut off.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	if err := p.observeNames(host); err != nil {
		return err
	}
	keys, err := p.keys()
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	used := make(map[uint32]bool)
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		node, err := p.observe(key)
		if err != nil {
			return fmt.Errorf("observe node %s: %w", key, err)
		}
		used[node.Owner] = true
		host.Add(node)
	}
	if len(keys) == 0 {
		p.host.Group("x").RemoveParents()
	}
	return p.owners.sweep(used)
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

func (p *Part) observe(key string) (plan.VNode, error) {
	id, node, _ := plan.ParseNamespace(key)
	owner, err := p.host.Owner(key)
	g := p.host.Group(key)
	if errors.Is(err, os.ErrNotExist) || err == nil && !g.Exists() {
		return broken(id, node), nil
	}
	processes := g.MostProcesses()
	if processes == vnet.NodeProcesses {
		processes = 0
	}
	return plan.VNode{
		Lease: id, Node: node, Owner: owner,
		CPU: vnet.CPU(g.CPU()), Memory: vnet.Bytes(g.Memory()), Processes: processes,
	}, err
}
