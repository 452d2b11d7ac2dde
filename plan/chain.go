package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sublet/vnet"
)

// Chains is what one host does for a lease's chains: it takes packets out of
// links (entries), passes them through functions, sends them to other hosts and
// gives them to nodes (hops). Devices are those of the lease's fabric. Built by
// datapath/chain.
type Chains struct {
	Lease     vnet.LeaseID    `json:"lease"`
	Interface string          `json:"interface,omitempty"` // of the host, by which others are reached; "": there are none
	Local     netip.Addr      `json:"local,omitzero"`
	Entries   []ChainEntry    `json:"entries,omitempty"`
	Functions []ChainFunction `json:"functions,omitempty"`
	Remotes   []ChainRemote   `json:"remotes,omitempty"`
	Hops      []ChainHop      `json:"hops,omitempty"`
	Metadata  []ChainMetadata `json:"metadata,omitempty"`
}

// ChainMetadata is what packets get where their path begins, and behind functions that know
// no NSH.
type ChainMetadata struct {
	Path  uint32 `json:"path"`
	Type  uint8  `json:"md_type"`
	Bytes []byte `json:"bytes"`
}

// ChainEntry takes packets that a node sends by a device; the first rule that fits
// says where they begin.
type ChainEntry struct {
	Device string      `json:"device"`
	Rules  []ChainRule `json:"rules"`
}

// ChainRule puts packets on a path, which is a number of 24 bits that no other
// chain of the substrate has.
type ChainRule struct {
	Match ChainMatch `json:"match"`
	Path  uint32     `json:"path"`
	Index uint8      `json:"index"` // of the first hop
}

// ChainMatch is a set of packets; what is zero fits all.
type ChainMatch struct {
	Protocol vnet.IPProtocol `json:"proto,omitempty"`
	Src      netip.Prefix    `json:"src,omitzero"`
	Dst      netip.Prefix    `json:"dst,omitzero"`
	SrcPorts [2]uint16       `json:"src_ports,omitzero"` // first and last
	DstPorts [2]uint16       `json:"dst_ports,omitzero"`
	DSCP     *uint8          `json:"dscp,omitempty"`
	VLAN     *uint16         `json:"vlan,omitempty"` // 0: without a tag
}

// ChainDeny is a rule of a firewall, or of a classifier.
type ChainDeny struct {
	Allow bool       `json:"allow,omitempty"` // else what fits is dropped
	Match ChainMatch `json:"match"`
	// To is where a classifier leads what fits.
	To *ChainPlace `json:"to,omitempty"`
}

func chainMatch(m vnet.Packets) ChainMatch {
	return ChainMatch{
		Protocol: m.Protocol, Src: m.Src, Dst: m.Dst, DSCP: m.DSCP, VLAN: m.VLAN,
		SrcPorts: [2]uint16{m.SrcPort.First, m.SrcPort.Last}, DstPorts: [2]uint16{m.DstPort.First, m.DstPort.Last},
	}
}

// ChainFunction is something that packets pass on this host.
type ChainFunction struct {
	Name  string            `json:"name"`
	Type  vnet.FunctionKind `json:"kind"`
	Rules []ChainDeny       `json:"rules,omitempty"`
	Rate  vnet.Rate         `json:"rate_bps,omitempty"`
	// Prefix has the addresses that a NAT gives to senders.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	// To is the device by which copies of a mirror enter the link to the node that gets
	// them.
	To string `json:"to,omitempty"`
	// Service is the address of a balancer, whose flows go to Backends. It asks from
	// Asker, at Port (0: any), whether they live.
	Service  netip.Addr     `json:"service,omitzero"`
	Backends []ChainBackend `json:"backends,omitempty"`
	Asker    netip.Addr     `json:"asker,omitzero"`
	Port     uint16         `json:"port,omitempty"`
	// Publish is the port of the service in whose place backends have Target; 0: they have
	// that of each packet.
	Publish uint16 `json:"publish,omitempty"`
	Target  uint16 `json:"target,omitempty"`
	// Ports are those that a NAT gives to senders, first and last; zero: from 1024 on.
	Ports [2]uint16 `json:"ports,omitzero"`
	In    string    `json:"in,omitempty"` // devices that lead to eth0 and eth1 of a program's node
	Out   string    `json:"out,omitempty"`
	// Patience is for how long a program that is watched may return nothing, or a node of
	// a balancer answer nothing, in ns.
	Patience int64            `json:"patience_ns,omitempty"`
	Aware    bool             `json:"aware,omitempty"` // a program that gets packets with the header of RFC 8300
	Probe    *ChainMatch      `json:"probe,omitempty"` // one packet that a program has to pass
	Auto     *ChainProcessing `json:"auto,omitempty"`  // of a program whose processor time follows the load
}

// ChainBackend is a node that gets flows of a balancer. Packets for it go on at Path,
// and by Interface of ChainHome it is asked whether it lives.
type ChainBackend struct {
	Node      string     `json:"node"`
	Address   netip.Addr `json:"address"`
	Path      uint32     `json:"path"`
	Interface string     `json:"interface"`
}

// ChainProcessing is what packets cost a function, in whole parts of a second of a
// core, and the most that it gets. The group of Node is what is limited.
type ChainProcessing struct {
	Node    string   `json:"node"` // namespace
	Most    vnet.CPU `json:"most_milli"`
	Fixed   int64    `json:"fixed_ps,omitempty"`    // picoseconds
	PerByte int64    `json:"per_byte_fs,omitempty"` // femtoseconds
}

// ChainRemote is another host to which packets go or from which they come. Class
// is of the tunnel of a link that leaves by a device; "": packets only come.
type ChainRemote struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	Link    int        `json:"link,omitempty"`   // index of the VxLink whose class packets have
	End     int        `json:"end,omitempty"`    // of it
	Shaped  bool       `json:"shaped,omitempty"` // Link and End say which
	// Transport carries packets there; "": UDP. VNI is that of VXLAN-GPE, and Source the
	// source port of all packets; 0: one by the flow.
	Transport vnet.Transport `json:"transport,omitempty"`
	VNI       vnet.VNI       `json:"vni,omitempty"`
	Source    uint16         `json:"source,omitempty"`
}

// ChainHop is what becomes of packets of a path at an index: one of Function,
// Remote, Egress and Jump. A function takes one off the index.
type ChainHop struct {
	Path     uint32 `json:"path"`
	Index    uint8  `json:"index"`
	Chain    string `json:"chain"` // for people
	Function string `json:"function,omitempty"`
	Back     bool   `json:"back,omitempty"` // on the way back, through Function from its far side
	// Rate is the chain's where Function's processor time follows the load.
	Rate     vnet.Rate `json:"rate_bps,omitempty"`
	Priority int       `json:"priority,omitempty"` // of the chain, there
	// OnFailure says what becomes of packets while Function, a program, returns none; "":
	// nobody looks. Instead is where they go on with reroute, and Jump where those go on
	// that come back from there.
	OnFailure vnet.OnFailure `json:"on_failure,omitempty"`
	Instead   *ChainPlace    `json:"instead,omitempty"`
	Jump      *ChainPlace    `json:"jump,omitempty"`
	Remote    string         `json:"remote,omitempty"`
	Egress    string         `json:"egress,omitempty"` // device that leads to the last node
	Hardware  string         `json:"hardware,omitempty"`
	// Below is how far below the index of its backend a packet goes on that Function, a
	// balancer, leads there. Backend is the node to which the hop leads, or from which it
	// comes back, at the balancer; Behind says of one further on that a balancer led there.
	Below   uint8  `json:"below,omitempty"`
	Backend string `json:"backend,omitempty"`
	Behind  bool   `json:"behind,omitempty"`
}

// ChainPlace is a path and index.
type ChainPlace struct {
	Path  uint32 `json:"path"`
	Index uint8  `json:"index"`
}

// At names where its packets are: at a function, or on the way to a host or node.
func (h ChainHop) At() string {
	switch {
	case h.Function != "":
		return h.Function
	case h.Backend != "" && h.Back:
		return "from " + h.Backend
	case h.Backend != "":
		return "backend " + h.Backend
	case h.Remote != "":
		return "to " + h.Remote
	case h.Jump != nil:
		return "from standby"
	}
	return "out"
}

// Function finds one by name.
func (c Chains) Function(name string) (ChainFunction, bool) {
	i := slices.IndexFunc(c.Functions, func(f ChainFunction) bool { return f.Name == name })
	if i < 0 {
		return ChainFunction{}, false
	}
	return c.Functions[i], true
}

// firstIndex is that of the first hop of each path, of the first generation of its
// chain; the hops of others are below, mostHops of each.
const (
	firstIndex = 255
	mostHops   = vnet.MaxVia + 2 // what holds the rate, functions, the egress
)

// firstIndex is that of a chain's first hop.
func (n *network) firstIndex(chain string) uint8 {
	if n.lease.Numbers == nil {
		return firstIndex
	}
	return firstIndex - mostHops*uint8(n.lease.Numbers.Chains[chain]%vnet.ChainGenerations)
}

// Kind of the section.
func (Chains) Kind() Kind { return KindChains }

// Key is the fabric.
func (c Chains) Key() string { return Fabric(c.Lease) }

// LeaseID is the lease that it is of.
func (c Chains) LeaseID() vnet.LeaseID { return c.Lease }

// Meet is the item itself: what its packets may take is a matter of links.
func (c Chains) Meet(Item) Item { return c }

func (c Chains) String() string {
	text := c.Key()
	for _, e := range c.Entries {
		for _, r := range e.Rules {
			text += fmt.Sprintf(" %s:%d/%d", e.Device, r.Path, r.Index)
		}
	}
	for _, h := range c.Hops {
		text += fmt.Sprintf(" %s %d/%d->%s", h.Chain, h.Path, h.Index, cmp.Or(h.Function, h.Remote, h.Egress))
	}
	return text
}

// ChainHome names the namespace in which segments of chains end that lead to no
// program: one of the provider's, with nothing in it. Two dots: no node and no
// vnet.ControlNode has that name.
const ChainHome = "chain..home"

// takeChains takes the segments of chains out of the links by which nodes are
// addressed and reached.
func (n *network) takeChains() {
	n.functions = make(map[string]*vnet.Function)
	for _, node := range n.top.Nodes {
		if node.IsFunction() {
			n.functions[node.Name] = node.Function
		}
	}
	var links []vnet.VirtualLink
	for _, l := range n.top.Links {
		if l.Chain == "" {
			links = append(links, l)
		} else {
			n.chained = append(n.chained, l)
		}
	}
	n.top.Links = links
}

// leadsThrough says whether a chain passes a function.
func (n *network) leadsThrough(function string) bool {
	return slices.ContainsFunc(n.chained, func(l vnet.VirtualLink) bool { return slices.Contains(l.Ends[:], function) })
}

// chainHomes adds the namespace in which segments end to the hosts that need it, in some
// stage at least: it is there before a node goes whose segments are to end in it.
func (c *Compiler) chainHomes(net *network) {
	for _, link := range net.chained {
		for end, name := range link.Ends {
			host := c.host(net.lease.Mapping.Nodes[name])
			if host == nil || !net.chainPort(link, end).atHome() && !net.lease.Request.ComesAndGoes(name) {
				continue
			}
			home := c.vnode(net.lease, vnet.VirtualNode{Name: ChainHome}, host.Host)
			if c.first(host, id(home)) {
				host.Add(home)
			}
		}
	}
}

// chains adds a lease's chains to the hosts that they come along.
func (c *Compiler) chains(net *network) error {
	made := &chainPlans{net: net, hosts: make(map[vnet.HostID]*Chains)}
	for _, node := range net.top.Nodes {
		if err := c.asks(made, node); err != nil {
			return fmt.Errorf("function %s: %w", node.Name, err)
		}
	}
	for _, chain := range net.lease.Chains() {
		if err := c.chain(made, chain); err != nil {
			return fmt.Errorf("chain %s: %w", chain.Name, err)
		}
	}
	for _, name := range made.order {
		host := c.host(name)
		if host == nil {
			return fmt.Errorf("a chain comes along unknown host %q", name)
		}
		host.Add(*made.hosts[name])
	}
	return nil
}

// chainPlans are those of a lease while they are made.
type chainPlans struct {
	net   *network
	hosts map[vnet.HostID]*Chains
	order []vnet.HostID
}

func (p *chainPlans) at(host vnet.HostID) *Chains {
	if p.hosts[host] == nil {
		p.hosts[host] = &Chains{Lease: p.net.lease.ID()}
		p.order = append(p.order, host)
	}
	return p.hosts[host]
}

// chain adds one chain, and the way back through it.
func (c *Compiler) chain(p *chainPlans, chain vnet.Chain) error {
	links := p.net.chainLinks(chain.Name)
	if len(links) != len(chain.Via)+1 {
		return fmt.Errorf("has %d links for %d functions", len(links), len(chain.Via))
	}
	if err := c.chainWay(p, chainWay{Chain: chain, links: links}); err != nil || !chain.Returns() {
		return err
	}
	slices.Reverse(links)
	return c.chainWay(p, chainWay{Chain: p.net.lease.Request.Back(chain), links: links, direction: vnet.Reverse})
}

// chainWay is a chain in one direction: its links are in the order in which packets
// come along, with the ends of the other one.
type chainWay struct {
	vnet.Chain
	links     []vnet.VirtualLink
	direction vnet.Direction
}

// from and to are ends of links as packets of a way come along.
func (w chainWay) from() int { return int(w.direction) }
func (w chainWay) to() int   { return 1 - int(w.direction) }

// back says whether it is the way back.
func (w chainWay) back() bool { return w.direction == vnet.Reverse }

// limiter is the name of what holds a way at its rate.
func (w chainWay) limiter() string { return rateHolder(w.Name, w.back()) }

// rateHolder names what holds a chain's way at its rate: no function has such a name.
func rateHolder(chain string, back bool) string {
	if back {
		return chain + ".back"
	}
	return chain + ".rate"
}

// HoldsRate says whether its function is what holds its chain at the rate.
func (h ChainHop) HoldsRate() bool {
	return h.Function != "" && h.Function == rateHolder(h.Chain, h.Back)
}

// chainWay adds a way: entries where it begins, then hop by hop what becomes of its
// packets. The first link of each way has the number of its path: a chain has two
// links at least.
func (c *Compiler) chainWay(p *chainPlans, way chainWay) error {
	net, first := p.net, way.links[0]
	numbers := net.lease.VNIs[first.Name]
	if len(numbers) == 0 {
		return fmt.Errorf("link %s has no identifier", first.Name)
	}
	if _, _, ok := net.chainExit(way.Chain); !ok {
		return nil // which no request is that was checked: no lease keeps others from their plans
	}
	path, index := uint32(numbers[0]), net.firstIndex(way.Name)
	at := net.lease.Mapping.Nodes[way.From]
	p.enter(at, way, path, index)
	rate := net.chainRate(first, way.direction)
	holds := func() {
		if way.Paused {
			rate = way.Rate // so that hops stay what they are when it goes on
		}
		if way.Rate > 0 && rate > 0 { // else its rate was given back
			p.pass(at, way, path, index, ChainFunction{Name: way.limiter(), Type: vnet.FunctionLimiter, Rate: rate})
			index--
		}
	}
	begins := net.functions[way.Via[0]].Kind == vnet.FunctionBalancer && way.back()
	if !begins { // else packets of all its nodes come together at the balancer
		holds()
	}
	for i, link := range way.links {
		if err := c.carry(p, link, way, path, index); err != nil {
			return fmt.Errorf("link %s: %w", link.Name, err)
		}
		node := link.Ends[way.to()]
		at = net.lease.Mapping.Nodes[node]
		if i == len(way.Via) {
			break
		}
		if begins && i == 0 {
			if err := c.gather(p, way, node, ChainPlace{Path: path, Index: index}); err != nil {
				return err
			}
			holds()
		}
		p.pass(at, way, path, index, net.chainFunction(node))
		if net.functions[node].Kind == vnet.FunctionBalancer && !way.back() {
			if err := c.spread(p, way, node, link); err != nil {
				return err
			}
		}
		if hops := p.at(at).Hops; net.functions[node].Auto != nil && !way.Paused {
			hops[len(hops)-1].Rate, hops[len(hops)-1].Priority = cmp.Or(rate, way.Rate), way.Priority
		}
		if err := c.watch(p, way, node); err != nil {
			return err
		}
		index--
	}
	return p.leave(at, way, path, index)
}

// enter puts rules at all devices by which the first node's packets come. A chain that
// is paused has all but these, so that it goes on at once and without loss.
func (p *chainPlans) enter(at vnet.HostID, way chainWay, path uint32, index uint8) {
	p.at(at).describe(way, path)
	if way.Paused {
		return
	}
	for _, device := range p.net.nodeDevices(way.From) {
		for _, match := range p.net.takes(way) {
			p.take(at, device, ChainRule{Match: chainMatch(match), Path: path, Index: index})
		}
	}
}

// describe states the metadata of a path.
func (c *Chains) describe(way chainWay, path uint32) {
	mdType, bytes := way.Metadata.Encode()
	if mdType != 0 && !slices.ContainsFunc(c.Metadata, func(m ChainMetadata) bool { return m.Path == path }) {
		c.Metadata = append(c.Metadata, ChainMetadata{Path: path, Type: mdType, Bytes: bytes})
	}
}

// takes is what a way takes: without a destination, packets to the address of its end,
// and to the service of its balancer.
func (n *network) takes(way chainWay) []vnet.Packets {
	if way.Match.Dst.IsValid() {
		return []vnet.Packets{way.Match}
	}
	end := way.Match
	end.Dst = single(n.address(way.To))
	balancer, ok := n.top.Balancer(way.Chain)
	if !ok || way.back() {
		return []vnet.Packets{end}
	}
	service := way.Match
	service.Dst = single(balancer.Function.Service)
	return []vnet.Packets{end, service}
}

// take adds a rule at a device of a host.
func (p *chainPlans) take(at vnet.HostID, device string, rule ChainRule) {
	host := p.at(at)
	i := slices.IndexFunc(host.Entries, func(e ChainEntry) bool { return e.Device == device })
	if i < 0 {
		i = len(host.Entries)
		host.Entries = append(host.Entries, ChainEntry{Device: device})
	}
	host.Entries[i].Rules = append(host.Entries[i].Rules, rule)
}

// pass leads packets through a function of a host.
func (p *chainPlans) pass(at vnet.HostID, way chainWay, path uint32, index uint8, f ChainFunction) {
	host := p.at(at)
	host.describe(way, path)
	if !slices.ContainsFunc(host.Functions, func(o ChainFunction) bool { return o.Name == f.Name }) {
		host.Functions = append(host.Functions, f)
	}
	host.Hops = append(host.Hops, ChainHop{Path: path, Index: index, Chain: way.Name, Function: f.Name, Back: way.back()})
}

// leave gives packets to the last node.
func (p *chainPlans) leave(at vnet.HostID, way chainWay, path uint32, index uint8) error {
	device, hardware, ok := p.net.chainExit(way.Chain)
	if !ok {
		return fmt.Errorf("node %s has no link by which it is reached", way.To)
	}
	host := p.at(at)
	_, behind := p.net.top.Balancer(way.Chain)
	behind = behind && !way.back()
	host.Hops = append(host.Hops, ChainHop{Path: path, Index: index, Chain: way.Name, Back: way.back(), Egress: device, Hardware: hardware.String(), Behind: behind})
	return nil
}

// carry leads packets from host to host along a segment.
func (c *Compiler) carry(p *chainPlans, link vnet.VirtualLink, way chainWay, path uint32, index uint8) error {
	net := p.net
	for _, share := range net.lease.Mapping.Paths(link.Name) {
		cuts, err := TunnelHops(c.sub, net.lease.Mapping.Nodes[link.Ends[0]], share.Path)
		if err != nil {
			return err
		}
		numbers := net.lease.VNIs[link.Name][1:]
		if len(numbers) < len(cuts) {
			return fmt.Errorf("has %d tunnels and %d identifiers", len(cuts), len(numbers))
		}
		for _, h := range tunnelHopsOf(cuts, numbers) {
			hosts := [2]vnet.HostID{h.from, h.to}
			ports := [2]vnet.Port{portOf(h.out, h.from), portOf(h.in, h.to)}
			near, far := ports[way.from()], ports[way.to()]
			sender, receiver := hosts[way.from()], hosts[way.to()]
			to, from := p.at(sender), p.at(receiver)
			to.reached(near)
			from.reached(far)
			name := link.Name + ">" + string(receiver)
			source := way.Compat
			if source == 0 && TellsApart(c.sub.Substrate, h.hops) {
				source = SourceOf(h.vni)
			}
			to.remote(way.over(ChainRemote{Name: name, Address: far.Address, Link: net.index[link.Name], End: way.to(), Shaped: true, Source: source}, path))
			from.remote(way.over(ChainRemote{Name: link.Name + "<" + string(sender), Address: near.Address, Source: source}, path))
			to.Hops = append(to.Hops, ChainHop{Path: path, Index: index, Chain: way.Name, Back: way.back(), Remote: name})
		}
	}
	return nil
}

// remote adds another host, unless chains know it by this link already.
func (c *Chains) remote(r ChainRemote) {
	if !slices.ContainsFunc(c.Remotes, func(o ChainRemote) bool { return o.Name == r.Name }) {
		c.Remotes = append(c.Remotes, r)
	}
}

// over is another host to which a way's packets have its transport.
func (w chainWay) over(r ChainRemote, path uint32) ChainRemote {
	if w.Transport == vnet.TransportGPE {
		r.Transport, r.VNI = w.Transport, vnet.VNI(path)
	}
	return r
}

// carried is the chain as whose packets those of a link go between hosts: of a link that
// chains share, the first of them. Copies of a mirror are packets of the link.
func (n *network) carried(link vnet.VirtualLink) (vnet.Chain, bool) {
	function := link.Sender()
	if function == "" {
		return n.lease.Request.ChainOf(link.Chain)
	}
	f := n.functions[function]
	if f == nil || f.Kind == vnet.FunctionMirror {
		return vnet.Chain{}, false
	}
	for _, chain := range n.lease.Request.Chains {
		if slices.Contains(chain.Via, function) && (f.Kind == vnet.FunctionBalancer || chain.OnFailure == vnet.FailureReroute) {
			return chain, true
		}
	}
	return vnet.Chain{}, false
}

// reached notes how a host reaches others, and they it. More than one interface
// is refused by admission (CheckChains); where a lease was moved to such hosts,
// they refuse the name that comes of it, and the lease says so.
func (c *Chains) reached(by vnet.Port) {
	if c.Interface == "" {
		c.Interface, c.Local = by.Interface, by.Address
	} else if c.Interface != by.Interface {
		c.Interface += " and " + by.Interface
	}
}

// CheckChains says which host a lease's chains would reach others from by several
// interfaces, which its data path cannot.
func CheckChains(sub Walker, m vnet.Mapping, links []vnet.VirtualLink) error {
	by := make(map[vnet.HostID]string)
	for _, l := range links {
		if l.Chain == "" {
			continue
		}
		cuts, err := AllTunnelHops(sub, m, l)
		if err != nil {
			return err
		}
		for _, hops := range cuts {
			first, last := hops[0], hops[len(hops)-1]
			for host, link := range map[vnet.HostID]vnet.SubstrateLink{vnet.HostID(first.From()): first.Link, vnet.HostID(last.To()): last.Link} {
				device := portOf(link, host).Interface
				if other, ok := by[host]; ok && other != device {
					return &vnet.FieldError{Path: "chains", Problem: fmt.Sprintf("host %s would pass them on by several interfaces (%s, %s), which is not offered yet: state hosts of functions and nodes that share a link", host, min(device, other), max(device, other))}
				}
				by[host] = device
			}
		}
	}
	return nil
}

// chainLinks are the segments of a chain in the running stage, in order.
func (n *network) chainLinks(chain string) (links []vnet.VirtualLink) {
	for _, l := range n.chained {
		if l.Chain == chain {
			links = append(links, l)
		}
	}
	return links
}

// chainRate is what is allocated to a segment in a direction.
func (n *network) chainRate(link vnet.VirtualLink, d vnet.Direction) vnet.Rate {
	return max(n.rates(link)[d], link.Bandwidth[d].Min)
}

// chainFunction is the function of a node.
func (n *network) chainFunction(name string) ChainFunction {
	f := n.functions[name]
	made := ChainFunction{Name: name, Type: f.Kind}
	for _, r := range f.Rules {
		rule := ChainDeny{Allow: r.Allow, Match: chainMatch(r.Flow)}
		if r.Chain != "" && n.pausedChain(r.Chain) { // what a classifier would move to it stays
			continue
		}
		if place, ok := n.behindFunction(name, r.Chain); ok {
			rule.To = &place
		}
		made.Rules = append(made.Rules, rule)
	}
	switch f.Kind {
	case vnet.FunctionLimiter:
		made.Rate = f.Rate
	case vnet.FunctionMirror:
		made.To = n.ownDevice(name, f.To)
	case vnet.FunctionBalancer:
		n.fillBalancer(&made, *f)
	}
	made.Prefix, made.Ports = f.Prefix, [2]uint16{f.Ports.First, f.Ports.Last}
	if f.Kind != vnet.FunctionProgram {
		return made
	}
	made.Patience, made.Aware = int64(f.Patience), f.NSH == vnet.NSHAware
	if f.Probed() {
		made.Patience = int64(cmp.Or(f.Patience, vnet.DefaultHealthPatience))
		if n.lease.Paused == nil && !f.Absent { // who stands still need not pass anything
			probe := chainMatch(f.ProbePacket())
			made.Probe = &probe
		}
	}
	if a := f.Auto; a != nil && !f.Absent {
		node, _ := n.lease.Request.Node(name)
		made.Auto = &ChainProcessing{Node: Namespace(n.lease.ID(), name), Most: node.CPU, Fixed: int64(a.Fixed * 1e12), PerByte: int64(a.PerByte * 1e15)}
	}
	for _, l := range n.chained { // the first chain through it has eth0 and eth1
		for end, node := range l.Ends {
			if node != name || l.Sender() == name {
				continue
			}
			device := VxLink{Index: n.index[l.Name]}.Device(end)
			if end == 1 && made.In == "" {
				made.In = device
			} else if end == 0 && made.Out == "" {
				made.Out = device
			}
		}
	}
	return made
}

// pausedChain says whether there is such a chain that is paused now.
func (n *network) pausedChain(name string) bool {
	return slices.ContainsFunc(n.lease.Chains(), func(c vnet.Chain) bool { return c.Name == name && c.Paused })
}

// behindFunction is where a chain's packets go on when they leave a function.
func (n *network) behindFunction(function, name string) (ChainPlace, bool) {
	chain, ok := n.lease.Request.ChainOf(name)
	links := n.chainLinks(name)
	i := slices.Index(chain.Via, function)
	if !ok || i < 0 || len(links) == 0 || len(n.lease.VNIs[links[0].Name]) == 0 {
		return ChainPlace{}, false
	}
	index := n.firstIndex(name) - uint8(i) - 1
	if chain.Rate > 0 && n.chainRate(links[0], vnet.Forward) > 0 { // behind what holds the rate
		index--
	}
	return ChainPlace{Path: uint32(n.lease.VNIs[links[0].Name][0]), Index: index}, true
}

// nodeDevices are those by which a node's packets come into its fabric.
func (n *network) nodeDevices(node string) (list []string) {
	for _, l := range n.top.Links {
		for end, name := range l.Ends {
			if name == node {
				list = append(list, VxLink{Index: n.index[l.Name]}.Device(end))
			}
		}
	}
	return list
}

// chainExit is the device that leads to the node at a chain's end: of a link with
// the one at its beginning, if there is one.
func (n *network) chainExit(chain vnet.Chain) (device string, hardware Hardware, ok bool) {
	for _, direct := range []bool{true, false} {
		for _, l := range n.top.Links {
			for end, name := range l.Ends {
				if name == chain.To && (!direct || l.Ends[1-end] == chain.From) {
					return VxLink{Index: n.index[l.Name]}.Device(end), n.port(l, end).Hardware(), true
				}
			}
		}
	}
	return "", hardware, false
}

// ownDevice is that of a function's own link to a node, at the function.
func (n *network) ownDevice(function, node string) string {
	for _, l := range n.chained {
		if l.Sender() == function && l.Ends[1] == node {
			return VxLink{Index: n.index[l.Name]}.Device(0)
		}
	}
	return ""
}

// atHome says whether a port is in ChainHome.
func (p Port) atHome() bool { return strings.HasSuffix(p.Namespace, "."+ChainHome) }

// chainPort is where a link of chains ends: in the node of a program that is there, or one
// that gets copies, else in ChainHome.
func (n *network) chainPort(link vnet.VirtualLink, end int) *Port {
	node := link.Ends[end]
	f := n.functions[node]
	if n.top.ReachesNode(link, end) && (f == nil || !f.Absent) {
		p := &Port{Namespace: Namespace(n.lease.ID(), node), Interface: n.device[linkEnd{link.Name, end}], MTU: n.mtu}
		if f != nil && f.NSH == vnet.NSHAware {
			p.MTU += vnet.NSHRoom + max(0, vnet.LargestMetadata(n.lease.Request.Chains)-vnet.NSHWords)
		}
		return p
	}
	return &Port{
		Namespace: Namespace(n.lease.ID(), ChainHome), MTU: n.mtu,
		Interface: fmt.Sprintf("c%d%c", n.index[link.Name], 'a'+end),
	}
}
