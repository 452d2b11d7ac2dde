package vxlink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// survey is one reading of the host.
type survey struct {
	part    *Part
	names   map[int]string                  // interfaces of the host, by index
	classes map[int]map[uint32]kernel.Qdisc // of uplinks, by interface and handle
	queues  map[int]map[uint32]uint32       // limits of queues, by interface and parent
	nodes   []string                        // node namespaces
	minors  map[int]map[uint16]bool
	links   map[string]map[string]bool
}

// Observe reads uplinks and links back. An end that is missing, down, unshaped,
// unwired or without its class, peer or address is left out of its link. It
// also sweeps up what no plan can name: classes without a tunnel, fabrics
// without a link.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	s := &survey{part: p, minors: make(map[int]map[uint16]bool), links: make(map[string]map[string]bool)}
	if err := s.uplinks(home, host); err != nil {
		return fmt.Errorf("observe uplinks: %w", err)
	}
	if s.nodes, err = p.host.Names("netns"); err != nil {
		return err
	}
	for _, name := range s.nodes {
		id, ok := lease(name)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.fabric(name, id, host); err != nil {
			return fmt.Errorf("observe fabric %s: %w", name, err)
		}
	}
	p.mu.Lock()
	p.minors, p.links = s.minors, s.links
	p.mu.Unlock()
	return s.sweep(home)
}

// uplinks reads the shaped interfaces and all their classes.
func (s *survey) uplinks(home *kernel.Conn, host *plan.Host) error {
	devices, err := home.Links()
	if err != nil {
		return err
	}
	s.names = make(map[int]string)
	for _, d := range devices {
		s.names[d.Index] = d.Name
	}
	qdiscs, err := home.Qdiscs()
	if err != nil {
		return err
	}
	var hooked []int
	s.classes, s.queues = make(map[int]map[uint32]kernel.Qdisc), make(map[int]map[uint32]uint32)
	for _, q := range qdiscs {
		if s.queues[q.Index] == nil {
			s.queues[q.Index] = make(map[uint32]uint32)
		}
		s.queues[q.Index][q.Parent] = q.FIFO()
		if q.Parent == kernel.TCClsact {
			hooked = append(hooked, q.Index)
		}
		if !ours(q) {
			continue
		}
		classes, err := home.Classes(q.Index)
		if err != nil {
			return err
		}
		s.classes[q.Index] = make(map[uint32]kernel.Qdisc, len(classes))
		for _, c := range classes {
			s.classes[q.Index][c.Handle] = c
		}
	}
	if err := s.unshaped(home, hooked, host); err != nil {
		return err
	}
	for index, classes := range s.classes {
		arp, err := home.HasARPFilter(index)
		if err != nil {
			return err
		}
		guard, err := guarded(home, index)
		if err != nil {
			return err
		}
		host.Add(observeUplink(s.names[index], classes, s.queues[index], arp && guard))
	}
	return nil
}

// unshaped finds guards on interfaces without our queue.
func (s *survey) unshaped(home *kernel.Conn, hooked []int, host *plan.Host) error {
	for _, index := range hooked {
		if s.classes[index] != nil {
			continue
		}
		guard, err := guarded(home, index)
		if err != nil {
			return err
		}
		if guard {
			host.Add(plan.Uplink{Interface: s.names[index]})
		}
	}
	return nil
}

// fabric reads one lease's links.
func (s *survey) fabric(name string, id vnet.LeaseID, host *plan.Host) error {
	c, err := s.part.host.Dial(name)
	if errors.Is(err, os.ErrNotExist) {
		return kernel.Unbind(s.part.host.Path(name))
	}
	if err != nil {
		return err
	}
	defer c.Close()
	f := &fabric{survey: s, conn: c, devices: make(map[string]kernel.Link), rates: make(map[int]vnet.Rate), foreign: make(map[int]bool)}
	if err := f.read(name); err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, index := range f.indexes() {
		link := f.link(id, index)
		known[link.Key()] = true
		host.Add(link)
	}
	s.links[name] = known
	if len(known) == 0 {
		return kernel.Unbind(s.part.host.Path(name))
	}
	return nil
}

// sweep deletes the classes that are on no tunnel.
func (s *survey) sweep(home *kernel.Conn) error {
	for index, classes := range s.classes {
		for handle := range classes {
			minor := uint16(handle)
			if minor < minorTunnels || s.minors[index][minor] {
				continue
			}
			if err := home.DeleteClass(index, handle); err != nil {
				return fmt.Errorf("sweep class 1:%x of %s: %w", minor, s.names[index], err)
			}
		}
	}
	return nil
}

// fabric is one reading of a lease's fabric.
type fabric struct {
	*survey
	conn    *kernel.Conn
	devices map[string]kernel.Link
	rates   map[int]vnet.Rate // of token buckets, by device index
	foreign map[int]bool      // devices with a queue that is not ours
	nodes   map[int]node      // by namespace id
}

// node is one reading of a node's interfaces.
type node struct {
	name      string
	devices   map[int]kernel.Link
	addresses map[int][]kernel.Address
	routes    map[peerRoute]bool // that come with addresses
}

// peerRoute is a route to the other end of an interface, or to a subnet there.
type peerRoute struct {
	index int
	reach netip.Prefix
}

func (f *fabric) read(name string) error {
	devices, err := f.conn.Links()
	if err != nil {
		return err
	}
	mtus := make(map[int]int, len(devices))
	for _, d := range devices {
		f.devices[d.Name], mtus[d.Index] = d, d.MTU
	}
	takeMinors(f.minors, devices)
	qdiscs, err := f.conn.Qdiscs()
	if err != nil {
		return err
	}
	for _, q := range qdiscs {
		if q.Parent != kernel.TCRoot {
			continue
		}
		rate := vnet.Rate(q.TBF()) * 8
		if q.Kind == "tbf" && isShaper(q.Shaper(), shaper(rate, mtus[q.Index])) {
			f.rates[q.Index] = rate
		} else if q.Handle != 0 {
			f.foreign[q.Index] = true
		}
	}
	return f.readNodes(name)
}

// readNodes reads the nodes of the lease that this fabric has a port to.
func (f *fabric) readNodes(name string) error {
	f.nodes = make(map[int]node)
	for _, n := range f.survey.nodes {
		if !strings.HasPrefix(n, name+".") {
			continue
		}
		if err := f.readNode(n); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read node %s: %w", n, err)
		}
	}
	return nil
}

func (f *fabric) readNode(name string) error {
	ns, err := f.part.host.Open(name)
	if err != nil {
		return err
	}
	defer ns.Close()
	id, err := f.conn.NamespaceID(ns.Fd())
	if err != nil || id < 0 {
		return err
	}
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Foreign = true
	n := node{name: name, devices: make(map[int]kernel.Link), addresses: make(map[int][]kernel.Address), routes: make(map[peerRoute]bool)}
	devices, err := c.Links()
	if err != nil {
		return err
	}
	for _, d := range devices {
		n.devices[d.Index] = d
	}
	addresses, err := c.Addresses(0)
	for _, a := range addresses {
		n.addresses[a.Index] = append(n.addresses[a.Index], a)
	}
	if err != nil {
		return err
	}
	routes, err := c.Routes(0, unix.RTPROT_KERNEL)
	for _, r := range routes {
		n.routes[peerRoute{r.Index, r.Prefix}] = true
	}
	f.nodes[id] = n
	return err
}

// indexes lists the links of which at least one device is there.
func (f *fabric) indexes() []int {
	found := make(map[int]bool)
	for name := range f.devices {
		if index, _, ok := parseDevice(name); ok {
			found[index] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
