package chain

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/vnet"
)

// held are the items of this host. They are asked for many times a second, so files are
// read once.
type held struct {
	sync.Mutex
	read  bool
	items map[string]plan.Chains
}

func (h *held) set(c plan.Chains) {
	h.Lock()
	defer h.Unlock()
	if h.items == nil {
		h.items = make(map[string]plan.Chains)
	}
	h.items[c.Key()] = c
}

func (h *held) drop(key string) {
	h.Lock()
	defer h.Unlock()
	delete(h.items, key)
}

// has says whether an item is still what it was.
func (h *held) has(c plan.Chains) bool {
	h.Lock()
	defer h.Unlock()
	is, ok := h.items[c.Key()]
	return ok && reflect.DeepEqual(is, c)
}

// Held is an item with functions whose processor time follows the load, and what its
// hops counted, in their order.
type Held struct {
	plan.Chains
	Counts []nsh.Counts
}

// Held lists those of this host.
func (p *Part) Held() ([]Held, error) {
	if err := p.readHeld(); err != nil {
		return nil, err
	}
	return p.counted(p.held.list(func(c plan.Chains) bool {
		return slices.ContainsFunc(c.Functions, func(f plan.ChainFunction) bool { return f.Auto != nil })
	}))
}

// Nodes are the namespaces of the programs that chains of this host lead through, with
// their leases.
func (p *Part) Nodes() (map[string]vnet.LeaseID, error) {
	if err := p.readHeld(); err != nil {
		return nil, err
	}
	nodes := make(map[string]vnet.LeaseID)
	for _, c := range p.held.list(func(plan.Chains) bool { return true }) {
		for _, f := range c.Functions {
			if f.Type == vnet.FunctionProgram {
				nodes[plan.Namespace(c.Lease, f.Name)] = c.Lease
			}
		}
	}
	return nodes, nil
}

// list are the items that are wanted, by key.
func (h *held) list(wanted func(plan.Chains) bool) (list []plan.Chains) {
	h.Lock()
	defer h.Unlock()
	for _, key := range slices.Sorted(maps.Keys(h.items)) {
		if c := h.items[key]; wanted(c) {
			list = append(list, c)
		}
	}
	return list
}

// counted are items with what their hops counted.
func (p *Part) counted(items []plan.Chains) ([]Held, error) {
	if len(items) == 0 {
		return nil, nil
	}
	list, keys := make([]Held, len(items)), make([]string, len(items))
	for i, c := range items {
		list[i].Chains, keys[i] = c, c.Key()
	}
	reports, err := p.plane.Reports(keys...)
	if err != nil {
		return nil, err
	}
	for i, r := range reports {
		list[i].Counts = r.Hops
	}
	return list, nil
}

// readHeld finds what a former process of this host made.
func (p *Part) readHeld() error {
	p.held.Lock()
	read := p.held.read
	p.held.read = true
	p.held.Unlock()
	if read {
		return nil
	}
	p.busy.Lock() // no item is set or removed meanwhile
	defer p.busy.Unlock()
	names, err := p.host.Names(kind)
	if err != nil {
		return err
	}
	for _, name := range names {
		if c, ok := p.written(name); ok {
			p.held.set(c)
		}
	}
	return nil
}
