// Package vxlink builds virtual links: a wire of two ends in the lease's
// fabric namespace, each a veth port of a node or a VXLAN tunnel, shaped by
// the end a frame leaves by, and the shaped uplinks below the tunnels.
//
//	node eth0 ==veth== l0a --[bpf: to l0b]--> TBF, l0b (vxlan) --> class 1:10 of the uplink
//	                   l0a, TBF <--[bpf: to l0a]-- l0b <---------- uplink
//
// The program on an end takes every frame, whatever its type, straight to the
// other end, so a tenant's frame never meets an IP stack of the host.
package vxlink

import (
	"context"
	"fmt"
	"sync"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does the sections uplink and vxlink. Do may be called concurrently for
// different items; Observe waits until no Do is running. Deletions that run
// at the same time share the kernel's grace periods: a thousand links go in
// seconds by 64 goroutines, in half a minute by one.
type Part struct {
	host *kernel.Host

	busy    sync.RWMutex // Do: read, Observe: write
	fabrics sync.RWMutex // work in a fabric: read, making and removing one: write

	mu     sync.Mutex
	minors map[int]map[uint16]bool    // class minors taken, by interface index; nil: not read yet
	links  map[string]map[string]bool // links known, by fabric; only ever a hint
	graves map[string]*grave          // devices to delete next, by fabric

	digging sync.Mutex
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	return &Part{host: host, links: make(map[string]map[string]bool), graves: make(map[string]*grave)}
}

// Kinds are uplink and vxlink.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindUplink, plan.KindVxLink} }

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	switch item := step.Item.(type) {
	case plan.Uplink:
		if step.Op == plan.Delete {
			return p.deleteUplink(item)
		}
		return p.setUplink(item)
	case plan.VxLink:
		if step.Op == plan.Delete {
			return p.deleteLink(item)
		}
		return p.setLink(item)
	}
	return fmt.Errorf("vxlink does not do %s", step.Item.Kind())
}
