// Package vxlink builds virtual links: a wire of two ends in the lease's
// fabric namespace, each a veth port of a node or a tunnel, and the shaped
// uplinks below the tunnels.
//
//	node eth0 ==veth== l0a --[vxlink_port]--> peer of trunk ==veth== slX in the host --[encapsulated]--> class 1:10 of the uplink
//	node eth0 <--[vxlink_trunk]-- trunk <--peer-- slX <--[decapsulated]-- uplink
//	node eth0 ==veth== l1a --[vxlink_port]--> TBF, l1b ==veth== node eth0
//
// The program on a device takes every frame, whatever its type, straight to
// the other end, so a tenant's frame never meets an IP stack of the host. What
// goes into a trunk bears the tunnel's VNI as mark and its class as priority.
package vxlink

import (
	"context"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Part does the sections uplink and vxlink. Do may be called concurrently for
// different items; Observe waits until no Do is running. Deletions that run
// at the same time share the kernel's grace periods: a thousand links go in
// seconds by 64 goroutines, in half a minute by one.
type Part struct {
	host  *kernel.Host
	wires *impair.Process // of impaired links

	busy    sync.RWMutex // Do: read, Observe: write
	fabrics sync.RWMutex // work in a fabric: read, making and removing one: write

	loading   sync.Mutex // of loaded
	loaded    *programs
	trunks    sync.Mutex       // making and removing one
	spreading sync.Mutex       // while a spread is changed
	rates     sync.Mutex       // of trims, and changes of a tunnel's class
	trims     map[uint32]*trim // by slot

	// Guests are programs of other parts that may stand before ours on ports; nil: there
	// are none.
	Guests func() ([]ebpf.ProgramID, error)

	// Remade is told of an interface of a node that was made, and sets what the node
	// states of it; nil: nothing is stated.
	Remade func(namespace, device string) error

	// Latency is what is known of a tunnel; nil: nothing of any.
	Latency func(vnet.VNI) report.Latency

	// Measured is what the host was found to do with packets; nil: nobody asks.
	Measured func() vnet.Measurement

	undercounts func() bool // whether classes do, see bpf.Undercounts

	mu      sync.Mutex
	places  map[place]uint32            // slots; nil: not read yet
	taken   map[uint32]bool             // slots; true: since this process began, so that counters and classes began together
	minors  map[int]map[uint16]bool     // class minors taken, by interface index; nil: not read yet
	links   map[string]map[string]bool  // links known, by fabric; only ever a hint
	batches map[string]*deleteBatch     // devices to delete next, by fabric
	down    map[string]report.ItemError // of ports that their tenants set down, as last observed
	own     map[string]own              // of ports, by link and device

	deleting sync.Mutex
	tally    tally
	seen     tunnelsSeen // by whoever asks for Tunnels
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	return &Part{host: host, wires: impair.Of(host), links: make(map[string]map[string]bool), batches: make(map[string]*deleteBatch), trims: make(map[uint32]*trim), undercounts: undercounts}
}

// counting is how this kernel counts. It stays the same, so it is tried until
// that tells, a few times at most: one that cannot be tried is taken to count right.
var counting struct {
	sync.Mutex
	tries int
	short bool
}

func undercounts() bool {
	const most = 3
	counting.Lock()
	defer counting.Unlock()
	if counting.tries < most {
		counting.tries++
		if short, err := bpf.Undercounts(); err == nil {
			counting.short, counting.tries = short, most
		}
	}
	return counting.short
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
			p.gone(item)
			p.forgetOwn(item)
			return p.deleteLink(item)
		}
		return p.setLink(item)
	}
	return fmt.Errorf("vxlink does not do %s", step.Item.Kind())
}
