package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sublet/vnet"
)

// Compile turns leases into what each host must have. Leases that are neither
// deploying nor up ask for nothing. Every host of the substrate gets a
// plan, an empty one if nothing is to be there.
func Compile(sub vnet.Substrate, leases []vnet.Lease) (map[vnet.HostID]Host, error) {
	plans, err := NewCompiler(sub.Index()).Compile(leases)
	if err != nil {
		return nil, err
	}
	for _, name := range Hosts(sub) {
		if _, ok := plans[name]; !ok {
			plans[name] = Host{Host: name}
		}
	}
	return plans, nil
}

// Hosts lists who gets plans: the hosts of a substrate, and its OpenFlow switches.
func Hosts(sub vnet.Substrate) []vnet.HostID {
	names := make([]vnet.HostID, 0, len(sub.Hosts)+len(sub.OpenFlow))
	for _, h := range sub.Hosts {
		names = append(names, h.Name)
	}
	for _, o := range sub.OpenFlow {
		names = append(names, vnet.HostID(o.Name))
	}
	return names
}

// Compiler compiles leases on one substrate, of which it keeps what does not
// change from lease to lease. It is not safe for concurrent use.
type Compiler struct {
	// Nodes are ceilings of nodes and routers that state none.
	Nodes vnet.NodeDefaults

	sub   vnet.Indexed
	pins  *pins // nil: senders choose no paths
	hosts map[vnet.HostID]*Host
	there map[hostItem]bool // items that others share, and that are in a plan already
	// sources are the tunnels whose packets OpenFlow switches know by their ports.
	sources map[vnet.VNI]bool
}

// hostItem is an item of a host.
type hostItem struct {
	host vnet.HostID
	item itemID
}

// NewCompiler prepares a substrate.
func NewCompiler(sub vnet.Indexed) *Compiler {
	return &Compiler{sub: sub, pins: newPins(sub.Substrate)}
}

// Compile is the package's Compile for those hosts that are to have something.
func (c *Compiler) Compile(leases []vnet.Lease) (map[vnet.HostID]Host, error) {
	c.hosts, c.there = make(map[vnet.HostID]*Host), make(map[hostItem]bool)
	c.sources = make(map[vnet.VNI]bool)
	for _, l := range leases {
		if l.State != vnet.Deploying && !l.State.Holds() {
			continue
		}
		if err := c.lease(l); err != nil {
			return nil, fmt.Errorf("compile lease %s: %w", l.ID(), err)
		}
	}
	plans := make(map[vnet.HostID]Host, len(c.hosts))
	for name, h := range c.hosts {
		plans[name] = *h
	}
	return plans, nil
}

// host is a host's plan so far; nil: there is no such host.
func (c *Compiler) host(name vnet.HostID) *Host {
	if c.hosts[name] == nil {
		_, ok := c.sub.HostOf(string(name))
		if _, speaks := c.sub.OpenFlowOf(string(name)); !ok && !speaks {
			return nil
		}
		c.hosts[name] = &Host{Host: name}
	}
	return c.hosts[name]
}

// first says that an item that others share is not in a host's plan yet, once.
func (c *Compiler) first(host *Host, item itemID) bool {
	at := hostItem{host.Host, item}
	if c.there[at] {
		return false
	}
	c.there[at] = true
	return true
}

// lease adds one lease's items to the hosts that carry it.
func (c *Compiler) lease(l vnet.Lease) error {
	net, err := networkOn(c.sub, c.sub.Relays, l)
	if err != nil {
		return err
	}
	l = net.lease
	names := NameTable{Lease: l.ID(), Names: net.names()}
	for _, node := range net.top.All() {
		host := c.host(l.Mapping.Nodes[node.Name])
		if host == nil {
			return fmt.Errorf("node %s is mapped to unknown host %q", node.Name, l.Mapping.Nodes[node.Name])
		}
		if node.IsFunction() && (node.Function.Kind != vnet.FunctionProgram || node.Function.Absent || !net.leadsThrough(node.Name)) {
			continue // built in, absent, or of no chain: there is nothing of a node
		}
		if c.first(host, id(names)) {
			host.Add(names)
		}
		host.Add(c.vnode(l, node, host.Host))
		host.Add(net.router(node.Name))
		if len(node.Stated()) > 0 {
			host.Add(setup(l, node))
		}
		if l.Paused != nil {
			host.Add(Pause{Lease: l.ID(), Node: node.Name})
		}
		if node.Join != "" {
			join, err := c.join(net, node)
			if err != nil {
				return err
			}
			host.Add(join)
		}
		if node.Device != "" {
			device, err := c.device(l, node)
			if err != nil {
				return err
			}
			host.Add(device)
		}
		if node.NAT == "" {
			continue
		}
		way, err := c.gateway(net, node)
		if err != nil {
			return err
		}
		host.Add(way)
	}
	if err := c.switches(net); err != nil {
		return err
	}
	c.chainHomes(net)
	for _, link := range slices.Concat(net.top.Links, net.chained) {
		if err := c.link(net, link); err != nil {
			return fmt.Errorf("link %s: %w", link.Name, err)
		}
	}
	if err := c.chains(net); err != nil {
		return err
	}
	if l.Paused != nil { // who stands still need not answer
		return nil
	}
	for name, r := range net.reaches() {
		c.host(name).Add(r)
	}
	return nil
}

// vnode is a node with its limits: as stated, else the ceilings.
func (c *Compiler) vnode(l vnet.Lease, node vnet.VirtualNode, on vnet.HostID) VNode {
	host, _ := c.sub.HostOf(string(on))
	n := VNode{
		Lease: l.ID(), Node: node.Name, Owner: l.Owner, CPU: cmp.Or(node.CPU, c.Nodes.CPU),
		Memory: wholePages(cmp.Or(node.Memory, c.Nodes.MemoryOn(host))),
	}
	n.Auto = node.Function != nil && node.Function.Auto != nil
	if c.Nodes.Processes != vnet.NodeProcesses {
		n.Processes = c.Nodes.Processes
	}
	if node.NAT != "" || node.Join != "" || isControlNode(node.Name) { // the provider's: no process of the tenant has a right there
		n.Owner = 0
	}
	return n
}

// switches adds the switches and their ports to their hosts.
func (c *Compiler) switches(net *network) error {
	for _, s := range net.top.Switches {
		host := c.host(net.lease.Mapping.Nodes[s.Name])
		if host == nil {
			return fmt.Errorf("switch %s is mapped to unknown host %q", s.Name, net.lease.Mapping.Nodes[s.Name])
		}
		item := net.switchItem(s)
		if item.OpenFlow != nil {
			item.OpenFlow.CPU = cmp.Or(item.OpenFlow.CPU, c.Nodes.CPU)
		}
		host.Add(item)
		for _, p := range net.switchPorts(s) {
			host.Add(p)
		}
		if s.Access == "" {
			continue
		}
		a, p, err := c.access(net, s)
		if err != nil {
			return err
		}
		host.Add(a, p)
	}
	return nil
}

func wholePages(b vnet.Bytes) vnet.Bytes {
	const page = 4096
	return (b + page - 1) / page * page
}

// names lists what the nodes of the network can resolve.
func (n *network) names() []Name {
	var names []Name
	for _, node := range n.top.All() {
		names = append(names, Name{Name: node.Name, Address: n.address(node.Name)})
		if i := slices.IndexFunc(n.all[node.Name], netip.Addr.Is6); i >= 0 {
			names = append(names, Name{Name: node.Name, Address: n.all[node.Name][i]})
		}
	}
	slices.SortFunc(names, func(a, b Name) int { return cmp.Or(strings.Compare(a.Name, b.Name), a.Address.Compare(b.Address)) })
	return names
}

func (n *network) address(node string) netip.Addr { return n.lease.Addresses[node] }
