package iplbd

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sublet/fabric"
	"sublet/plan"
)

// Database is a fabric's link state as one of its hosts sees it.
type Database struct {
	Self    netip.Addr // the host's router id
	Routers map[netip.Addr]Router
}

// Choice says which paths are wanted.
type Choice struct {
	Paths   int     // for each destination switch
	Stretch float64 // times the shortest path's cost that a path may cost; 0: any
	Even    bool    // flows are dealt equally to all paths, not by relay.Fabric.Weights
	Mode    plan.SpreadMode
	By      plan.Relaying
}

// topology is the graph of the switches, with their addresses. A router with a
// single link carries nothing for others and is part of its neighbour: hosts
// are, and with them their prefixes.
type topology struct {
	graph   *fabric.Fabric
	ids     []netip.Addr // by number of the switch
	number  map[netip.Addr]int
	behind  [][]netip.Prefix      // prefixes of a switch and of what hangs on it
	ends    map[[2]int]netip.Addr // of the link (first) the address at the switch (second)
	hosts   []int                 // of each switch; nil: there are none
	prices  fabric.Prices         // of links; nil: flows are dealt evenly
	own     int                   // switch of the host; -1: none
	address []netip.Addr          // loopback; invalid: none
	relay   map[netip.Addr]fabric.Relay
	before  map[netip.Prefix][]chosenPath // paths
}

// newFabric makes the graph of all links that both ends know of (RFC 2328,
// 16.1, 2b).
func newFabric(db Database) (*topology, error) {
	host := leaves(db)
	f := &topology{number: make(map[netip.Addr]int), ends: make(map[[2]int]netip.Addr), own: -1}
	for _, id := range slices.SortedFunc(maps.Keys(db.Routers), netip.Addr.Compare) {
		if _, leaf := host[id]; !leaf {
			f.number[id] = len(f.ids)
			f.ids = append(f.ids, id)
		}
	}
	f.graph = fabric.NewFabric(len(f.ids))
	if len(host) > 0 {
		f.hosts = make([]int, len(f.ids))
	}
	f.behind, f.address = make([][]netip.Prefix, len(f.ids)), make([]netip.Addr, len(f.ids))
	for i, id := range f.ids {
		f.behind[i], f.address[i] = db.Routers[id].Stubs, loopback(db.Routers[id])
	}
	for _, leaf := range slices.SortedFunc(maps.Keys(host), netip.Addr.Compare) {
		if at, known := f.number[host[leaf]]; known {
			f.behind[at] = slices.Concat(f.behind[at], db.Routers[leaf].Stubs)
			f.hosts[at]++
		}
	}
	if access, leaf := host[db.Self]; leaf {
		if at, known := f.number[access]; known {
			f.own = at
		}
	} else if at, known := f.number[db.Self]; known {
		f.own = at
	}
	if err := f.join(db); err != nil {
		return nil, err
	}
	f.relay = make(map[netip.Addr]fabric.Relay)
	for at, address := range f.address {
		f.relay[address] = fabric.Relay{Node: at, Link: fabric.None}
	}
	for end, address := range f.ends {
		f.relay[address] = fabric.Relay{Node: end[1], Link: end[0]}
	}
	return f, nil
}

// leaves are the routers with a single link, by it their neighbours. Two that
// have only each other are both switches.
func leaves(db Database) map[netip.Addr]netip.Addr {
	host := make(map[netip.Addr]netip.Addr)
	for id, r := range db.Routers {
		if both := twoWay(db, r); len(both) == 1 && len(twoWay(db, db.Routers[both[0].Neighbour])) > 1 {
			host[id] = both[0].Neighbour
		}
	}
	return host
}

// twoWay lists a router's links whose other end knows of it too.
func twoWay(db Database, r Router) []RouterLink {
	var both []RouterLink
	for _, l := range r.Links {
		if slices.ContainsFunc(db.Routers[l.Neighbour].Links, func(back RouterLink) bool { return back.Neighbour == r.ID }) {
			both = append(both, l)
		}
	}
	return both
}

// loopback is the address of a router that is no link's: its router id, if it
// is one of its own.
func loopback(r Router) (best netip.Addr) {
	for _, p := range r.Stubs {
		if p.IsSingleIP() && (!best.IsValid() || p.Addr() == r.ID) {
			best = p.Addr()
		}
	}
	return best
}

// join adds the links. The n-th of parallel ones, by address, is the same link
// at both ends.
func (f *topology) join(db Database) error {
	links := 0
	for a, id := range f.ids {
		done := make(map[netip.Addr]bool)
		for _, l := range db.Routers[id].Links {
			b, known := f.number[l.Neighbour]
			if !known || b <= a || done[l.Neighbour] {
				continue
			}
			done[l.Neighbour] = true
			there, back := between(db, id, l.Neighbour), between(db, l.Neighbour, id)
			for i := range min(len(there), len(back)) {
				if err := f.link(a, b, links, there[i], back[i]); err != nil {
					return fmt.Errorf("link %s to %s: %w", id, l.Neighbour, err)
				}
				links++
			}
		}
	}
	return nil
}

func (f *topology) link(a, b, number int, there, back RouterLink) error {
	if err := f.graph.Add(a, fabric.Arc{To: b, Cost: there.Cost, Link: number}); err != nil {
		return err
	}
	f.ends[[2]int{number, a}], f.ends[[2]int{number, b}] = there.Address, back.Address
	return f.graph.Add(b, fabric.Arc{To: a, Cost: back.Cost, Link: number})
}

// between lists a router's links to another, by address.
func between(db Database, from, to netip.Addr) []RouterLink {
	var all []RouterLink
	for _, l := range db.Routers[from].Links {
		if l.Neighbour == to {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b RouterLink) int { return a.Address.Compare(b.Address) })
	return all
}
