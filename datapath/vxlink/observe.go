package vxlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// survey is one reading of the host.
type survey struct {
	part    *Part
	home    *kernel.Conn
	names   map[int]string                  // interfaces of the host, by index
	classes map[int]map[uint32]kernel.Qdisc // of uplinks, by interface and handle
	queues  map[int]map[uint32]uint32       // limits of queues, by interface and parent
	nodes   []string                        // node namespaces
	links   map[string]map[string]bool
	unseen  map[vnet.LeaseID]bool // whose fabric could not be looked at

	programs *programs
	pins     map[string]bool
	trunks   map[string]kernel.Link      // ends in the host, by name
	closed   map[int]bool                // those that end what nobody takes, by number
	records  map[uint32]vxlinkRecord     // by slot
	wires    map[int]impair.Status       // of impaired ports, by number of the detour's device
	down     map[string]report.ItemError // of ports that their tenants set down, by link and device
	own      map[string]own
	slots    map[place]uint32
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
	s := &survey{part: p, home: home, links: make(map[string]map[string]bool), unseen: make(map[vnet.LeaseID]bool), down: make(map[string]report.ItemError), own: make(map[string]own)}
	if err := s.uplinks(home, host); err != nil {
		return fmt.Errorf("observe uplinks: %w", err)
	}
	if s.nodes, err = p.host.Names("netns"); err != nil {
		return err
	}
	if err := s.ends(); err != nil {
		return fmt.Errorf("observe programs: %w", err)
	}
	if err := s.readWires(ctx); err != nil {
		return fmt.Errorf("observe impairments: %w", err)
	}
	if err := s.readTrunks(home); err != nil {
		return fmt.Errorf("observe trunks: %w", err)
	}
	for _, name := range s.nodes {
		id, ok := plan.ParseFabric(name)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.fabric(name, id, host); err != nil {
			host.Unseen(fmt.Errorf("observe fabric %s: %w", name, err), id, plan.KindVxLink)
			s.unseen[id] = true
		}
	}
	p.mu.Lock()
	p.links, p.down = s.links, s.down
	p.mu.Unlock()
	p.keepOwn(s.own, s.nodes)
	return s.sweep(home)
}

// ends reads what is written down of the host's link ends.
func (s *survey) ends() (err error) {
	isFabric := func(name string) bool { _, ok := plan.ParseFabric(name); return ok }
	left, err := bpf.Left(s.part.host, hop.LinksPart)
	if err != nil || !left && !slices.ContainsFunc(s.nodes, isFabric) {
		return err
	}
	if s.programs, err = s.part.programs(); err != nil {
		return err
	}
	if err := s.programs.pins.Repin(); err != nil {
		return err
	}
	names, err := s.programs.pins.Names()
	if err != nil {
		return err
	}
	s.pins = make(map[string]bool, len(names))
	for _, name := range names {
		s.pins[name] = true
	}
	if s.records, err = s.programs.all(); err != nil {
		return err
	}
	s.part.mu.Lock()
	defer s.part.mu.Unlock()
	s.part.setSlots(s.records)
	s.part.minors = minorsOf(s.records)
	s.slots = maps.Clone(s.part.places)
	return nil
}

// readTrunks reads which trunks' ends in the host are closed.
func (s *survey) readTrunks(home *kernel.Conn) error {
	s.closed = make(map[int]bool)
	for at := range s.slots {
		if at.index != trunkIndex {
			continue
		}
		outside, ok := s.trunks[plan.Trunk(at.lease)]
		if !ok {
			continue
		}
		have, count, err := home.FilterProgram(outside.Index)
		if err != nil {
			return err
		}
		s.closed[outside.Index] = count == 1 && have == uint32(s.programs.closedID)
	}
	return nil
}

// uplinks reads the shaped interfaces and all their classes.
func (s *survey) uplinks(home *kernel.Conn, host *plan.Host) error {
	devices, err := home.Links()
	if err != nil {
		return err
	}
	s.names, s.trunks = make(map[int]string), make(map[string]kernel.Link)
	for _, d := range devices {
		s.names[d.Index] = d.Name
		if d.Kind == "veth" {
			s.trunks[d.Name] = d
		}
	}
	qdiscs, err := home.Qdiscs()
	if err != nil {
		return err
	}
	s.classes, s.queues = make(map[int]map[uint32]kernel.Qdisc), make(map[int]map[uint32]uint32)
	for _, q := range qdiscs {
		if s.queues[q.Index] == nil {
			s.queues[q.Index] = make(map[uint32]uint32)
		}
		s.queues[q.Index][q.Parent] = q.FIFO()
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
	for index, classes := range s.classes {
		arp, err := home.HasARPFilter(index)
		if err != nil {
			return err
		}
		host.Add(observeUplink(s.names[index], classes, s.queues[index], arp))
	}
	return nil
}

// fabric reads one lease's links.
func (s *survey) fabric(name string, id vnet.LeaseID, host *plan.Host) error {
	c, err := s.part.host.Dial(name)
	if errors.Is(err, os.ErrNotExist) {
		if err := s.part.host.Unseen(name); err != nil {
			return err
		}
		return kernel.Unbind(s.part.host.Path(name))
	}
	if err != nil {
		return err
	}
	defer c.Close()
	f := &fabric{survey: s, conn: c, lease: id, devices: make(map[string]kernel.Link), rates: make(map[int]vnet.Rate), foreign: make(map[int]bool), limits: make(map[int]map[uint32]uint32)}
	if err := f.read(name); err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, of := range f.linksHere() {
		link := f.link(of)
		known[link.Key()] = true
		host.Add(link)
	}
	if f.failed != nil {
		return f.failed
	}
	s.links[name] = known
	if len(known) > 0 {
		return nil
	}
	if err := s.part.removeTrunk(s.programs, id); err != nil {
		return err
	}
	return kernel.Unbind(s.part.host.Path(name))
}

// sweep removes what is of no link: ends whose fabric is gone, trunks without
// tunnels, classes of no tunnel, and without any end the programs.
func (s *survey) sweep(home *kernel.Conn) error {
	tunnels := make(map[vnet.LeaseID]bool)
	for _, r := range s.records {
		if r.IsTunnel != 0 && s.links[plan.Fabric(r.place().lease)] != nil {
			tunnels[r.place().lease] = true
		}
	}
	for _, r := range s.records {
		at := r.place()
		var err error
		switch {
		case s.unseen[at.lease]:
		case at.index == trunkIndex && !tunnels[at.lease]:
			err = s.part.removeTrunk(s.programs, at.lease)
		case at.isDetour() && s.links[plan.Fabric(at.lease)] == nil:
			err = s.part.removeDetour(s.programs, at)
		case at.index != trunkIndex && s.links[plan.Fabric(at.lease)] == nil:
			err = s.part.removeEnd(s.programs, home, at)
		}
		if err != nil {
			return fmt.Errorf("sweep %v: %w", at, err)
		}
	}
	if err := s.sweepClasses(home); err != nil || s.programs == nil {
		return err
	}
	return s.part.unload()
}

// sweepClasses deletes the classes that are of no tunnel.
func (s *survey) sweepClasses(home *kernel.Conn) error {
	minors := minorsOf(s.records)
	for index, classes := range s.classes {
		for handle := range classes {
			minor := uint16(handle)
			if minor < minorTunnels || minors[index][minor] {
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
	lease   vnet.LeaseID
	conn    *kernel.Conn
	running map[int][]ebpf.ProgramID // on the ingress of devices, by number
	trunk   uint32                   // slot of a trunk that is whole; 0: it is not
	devices map[string]kernel.Link
	rates   map[int]vnet.Rate         // of token buckets, by device index
	foreign map[int]bool              // devices with a queue that is not ours
	limits  map[int]map[uint32]uint32 // of queues below token buckets, by device index and parent
	nodes   map[int]node              // by namespace id
	failed  error                     // what could not be read on the way
}

// node is one reading of a node's interfaces.
type node struct {
	name      string
	devices   map[int]kernel.Link
	addresses map[int][]kernel.Address
	routes    map[peerRoute]bool // that come with addresses
	queues    map[int]*plan.Queues
	saved     map[int][]kernel.Saved // addresses of its tenant
	routed    map[int][]kernel.Saved // routes of its tenant
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
	if err := f.readPrograms(name, devices); err != nil {
		return err
	}
	qdiscs, err := f.conn.Qdiscs()
	if err != nil {
		return err
	}
	for _, q := range qdiscs {
		if q.Parent != kernel.TCRoot {
			if f.limits[q.Index] == nil {
				f.limits[q.Index] = make(map[uint32]uint32)
			}
			f.limits[q.Index][q.Parent] = q.FIFO()
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

// readPrograms reads which programs run, and whether the trunk is whole.
func (f *fabric) readPrograms(name string, devices []kernel.Link) error {
	ns, err := f.part.host.Open(name)
	if err != nil {
		return err
	}
	defer ns.Close()
	if f.running, err = running(ns, devices); err != nil {
		return err
	}
	if err := f.dropGuests(); err != nil {
		return err
	}
	slot, ok := f.slots[trunkOf(f.lease)]
	if !ok {
		return nil
	}
	home, err := f.conn.NamespaceID(f.part.host.Home().Fd())
	if err != nil {
		return err
	}
	inside, outside := f.devices[plan.TrunkInside], f.survey.trunks[plan.Trunk(f.lease)]
	mark := trunkMark(f.lease)
	if !joined(inside, outside, slot, home) || !inside.Up || f.devices[headroomBridge].Up || inside.Alias != mark || outside.Alias != hostMark {
		return nil
	}
	if slices.Equal(f.running[inside.Index], []ebpf.ProgramID{f.programs.trunkID}) && f.pins[trunkPin(slot)] && f.closed[outside.Index] {
		f.trunk = slot
	}
	return nil
}

// dropGuests takes programs of other parts, which may be there, off the lists.
func (f *fabric) dropGuests() error {
	if f.part.Guests == nil {
		return nil
	}
	guests, err := f.part.Guests()
	for index, ids := range f.running {
		f.running[index] = slices.DeleteFunc(ids, func(id ebpf.ProgramID) bool { return slices.Contains(guests, id) })
	}
	return err
}

// admits says whether frames that enter by a port meet its program, and only that.
func (f *fabric) admits(index int) bool {
	have, count, err := f.conn.FilterProgram(index)
	if err != nil && !kernel.NotFound(err) {
		f.failed = err
	}
	return err == nil && count == 1 && have == uint32(f.programs.portID) && len(f.running[index]) == 0
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
	if _, _, ok := plan.ParseSwitchNamespace(name, vnet.SwitchOpenFlow); ok && err == nil {
		n.queues, err = readQueues(c, n.devices)
	}
	if plan.TenantsNode(name) && err == nil {
		err = n.readOwn(c)
	}
	f.nodes[id] = n
	return err
}

// linksHere lists the links of which at least one device is there.
func (f *fabric) linksHere() []pathway {
	found := make(map[pathway]bool)
	for name := range f.devices {
		if index, _, ok := parseDevice(name); ok {
			found[pathway{path: index}] = true
		}
	}
	for at, slot := range f.slots {
		if at.lease != f.lease || at.index == trunkIndex {
			continue
		}
		of := pathway{path: at.pathOf()}
		if f.records[slot].Standby == 0 {
			found[of] = true
		}
		of.standby = true
		for i := range 2 {
			if standby, _ := f.slotOf(of, i); standby != 0 {
				found[of] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b pathway) int {
		return cmp.Or(a.path-b.path, boolean(a.standby)-boolean(b.standby))
	})
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}
