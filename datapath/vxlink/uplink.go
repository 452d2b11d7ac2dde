package vxlink

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Classes of an uplink. Tunnels of leases are below minorLeases, those of best
// effort below minorBest beside the class of everything else on the host.
//
//	1:1 capacity +- 1:2 leases, prio 0  +- 1:10.. tunnels
//	             |                      +- 1:5    address resolution
//	             +- 1:3 best effort     +- 1:10.. tunnels, prio 7
//	                                    +- 1:4    the host itself, prio 7
const (
	minorRoot    uint16 = 1
	minorLeases  uint16 = 2
	minorBest    uint16 = 3
	minorHost    uint16 = 4
	minorARP     uint16 = 5
	minorTunnels uint16 = 0x10
)

// minHTBRate is the rate that best effort keeps when leases may take everything:
// HTB knows no zero.
const minHTBRate = 8 * vnet.Kbit

// uplinkMTU sizes bursts of whatever the host itself sends.
const uplinkMTU = vnet.DefaultMTU

// uplinkClass is one of the fixed classes.
type uplinkClass struct {
	minor, parent uint16
	htb           kernel.HTBClass
}

func uplinkClasses(u plan.Uplink) []uplinkClass {
	rest := max(u.Capacity-u.Leases, minHTBRate)
	return []uplinkClass{
		{minorRoot, 0, htb(u.Capacity, u.Capacity, uplinkMTU, leased)},
		{minorLeases, minorRoot, htb(u.Leases, u.Leases, uplinkMTU, leased)},
		{minorBest, minorRoot, htb(rest, u.Capacity, uplinkMTU, bestEffort)},
		{minorHost, minorBest, htb(rest, u.Capacity, uplinkMTU, bestEffort)},
		// Behind the host's own traffic, tunnels would lose their next hop.
		{minorARP, minorLeases, htb(minHTBRate, u.Leases, uplinkMTU, leased)},
	}
}

// setUplink makes the queue of a physical interface or changes it in place.
func (p *Part) setUplink(u plan.Uplink) error {
	c, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer c.Close()
	device, err := c.LinkByName(u.Interface)
	if err != nil {
		return fmt.Errorf("uplink %s: find the interface: %w", u.Interface, err)
	}
	root, err := c.RootQdisc(device.Index)
	if err != nil {
		return fmt.Errorf("uplink %s: read its queue: %w", u.Interface, err)
	}
	if !ours(root) {
		if root.Handle != 0 {
			return fmt.Errorf("uplink %s: has a %s queue that Sublet did not make; remove it first: tc qdisc del dev %s root", u.Interface, root.Kind, u.Interface)
		}
		if err := c.Do(kernel.SetHTB(device.Index, minorHost)); err != nil {
			return fmt.Errorf("uplink %s: make an htb queue: %w", u.Interface, err)
		}
	}
	for _, class := range uplinkClasses(u) {
		err := setClass(c, device.Index, class.minor, class.parent, class.htb)
		if errors.Is(err, unix.EBUSY) { // it has children: all of it is made anew
			err = errors.Join(err, c.DeleteQdisc(device.Index, kernel.TCRoot))
		}
		if err != nil {
			return fmt.Errorf("divide the rate of %s (class 1:%x): %w", u.Interface, class.minor, err)
		}
	}
	if err := c.Do(kernel.SetARPFilter(device.Index, handleOf(minorARP))); err != nil && !kernel.Exists(err) {
		return fmt.Errorf("uplink %s: set the filter of address resolution: %w", u.Interface, err)
	}
	fifo := kernel.SetFIFO(device.Index, kernel.Handle(minorHost, 0), handleOf(minorHost), queue(u.Capacity, uplinkMTU))
	return c.Do(fifo)
}

// deleteUplink gives the interface its default queue back.
func (p *Part) deleteUplink(u plan.Uplink) error {
	c, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer c.Close()
	device, err := c.LinkByName(u.Interface)
	if kernel.NotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("uplink %s: find the interface: %w", u.Interface, err)
	}
	root, err := c.RootQdisc(device.Index)
	if err != nil || !ours(root) {
		return err
	}
	return c.DeleteQdisc(device.Index, kernel.TCRoot)
}

// ours recognises an uplink's root by its shape.
func ours(q kernel.Qdisc) bool {
	return q.Kind == "htb" && q.Handle == handleOf(0) && q.HTBFallback() == minorHost
}

// observeUplink reads an uplink back; a damaged one has no capacity. queues are
// the limits of the classes' queues; resolves says whether address resolution
// has its class.
func observeUplink(name string, classes map[uint32]kernel.Qdisc, queues map[uint32]uint32, resolves bool) plan.Uplink {
	rate := func(minor uint16) vnet.Rate {
		return vnet.Rate(classes[handleOf(minor)].HTB().Rate) * 8
	}
	u := plan.Uplink{Interface: name, Capacity: rate(minorRoot), Leases: rate(minorLeases)}
	if queues[handleOf(minorHost)] != queue(u.Capacity, uplinkMTU) || !resolves {
		return plan.Uplink{Interface: name}
	}
	for _, want := range uplinkClasses(u) {
		have := classes[handleOf(want.minor)]
		parent := handleOf(want.parent)
		if want.parent == 0 {
			parent = kernel.TCRoot
		}
		if have.Parent != parent || !isClass(have.HTB(), want.htb) {
			return plan.Uplink{Interface: name}
		}
	}
	return u
}
