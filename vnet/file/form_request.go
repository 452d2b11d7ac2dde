package file

import "go.yaml.in/yaml/v3"

// The form of a request. Field order is the order in which it is written;
// the descriptions are the published schema's.

type request struct {
	Network   name              `yaml:"network" jsonschema_description:"Name of the virtual network, unique among its tenant's leases."`
	Tenant    name              `yaml:"tenant,omitempty" jsonschema_description:"Who leases. Default: the caller."`
	Labels    map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with the network, and to choose it by (sublet leases -l)."`
	Window    *window           `yaml:"window,omitempty" jsonschema_description:"When. Default: now, until released."`
	Movable   bool              `yaml:"movable,omitempty" jsonschema_description:"Links may be taken over other paths while the network runs, to make room for others; each move interrupts a link for a moment. Until it begins it may be postponed up to before."`
	IPv6      bool              `yaml:"ipv6,omitempty" jsonschema_description:"Dual stack: each link, and each segment of switches, whose ends state no address of IPv6 gets a subnet of it, beside IPv4."`
	Verify    string            `yaml:"verify,omitempty" jsonschema_description:"handover: the network is said to run once its promises were measured and are kept. Default: as the operator has it (sublet serve --verify)." jsonschema:"enum=handover,enum=none"`
	Axes      []axis            `yaml:"negotiable,omitempty" jsonschema_description:"In what counter-offers may differ from the request. Default: in all of these."`
	topology  `yaml:",inline"`
	Functions []function     `yaml:"functions,omitempty" jsonschema_description:"Nodes through which chains lead (docs/chains.md)."`
	Chains    []chain        `yaml:"chains,omitempty" jsonschema_description:"Packets of one node to another that pass functions on their way." jsonschema:"maxItems=256"`
	Classes   []trafficClass `yaml:"classes,omitempty" jsonschema_description:"Classes of traffic that have ways of their own between routers: by the links that name them." jsonschema:"maxItems=8"`
	Internet  *internet      `yaml:"internet,omitempty" jsonschema_description:"Short for a router called internet with a way out, and its links."`
	Colocate  string         `yaml:"colocate,omitempty" jsonschema_description:"Whether two nodes of this network may share a host." jsonschema:"enum=allowed,enum=forbidden,default=allowed"`
	Objective string         `yaml:"objective,omitempty" jsonschema_description:"What its embedding is best at: revenue-cost takes the least bandwidth, load-balance keeps links and processors evenly used, energy wakes the fewest hosts." jsonschema:"enum=revenue-cost,enum=load-balance,enum=energy,default=revenue-cost"`
	Stages    []stage        `yaml:"stages,omitempty" jsonschema_description:"Changes after the start, in order of time. Each begins from what the one before it left." jsonschema:"maxItems=64"`
}

type window struct {
	Start  *instant `yaml:"start,omitempty" jsonschema_description:"Time with a zone. Default: now."`
	Before *instant `yaml:"before,omitempty" jsonschema_description:"Latest start: any time from start on up to this one will do. Default: start itself."`
	For    *span    `yaml:"for,omitempty" jsonschema_description:"Length. Default: until released."`
	End    *instant `yaml:"end,omitempty" jsonschema_description:"Instead of for; needs start."`
}

type topology struct {
	Nodes    []node    `yaml:"nodes,omitempty" jsonschema_description:"End hosts."`
	Routers  []router  `yaml:"routers,omitempty" jsonschema_description:"Nodes that forward."`
	Switches []vswitch `yaml:"switches,omitempty" jsonschema_description:"Learning layer-2 switches; the links that end at one are its ports."`
	Links    []link    `yaml:"links,omitempty" jsonschema_description:"Point-to-point links between nodes, routers and switches."`
}

type node struct {
	Name      name     `yaml:"name" jsonschema_description:"Unique among nodes, routers and links; resolves inside the network."`
	CPU       cpu      `yaml:"cpu,omitempty" jsonschema_description:"Cores, such as 0.5. Default: no limit, nothing booked."`
	Memory    size     `yaml:"memory,omitempty" jsonschema_description:"Such as 256MiB. Default: no limit, nothing booked."`
	Site      name     `yaml:"site,omitempty" jsonschema_description:"Place it on a host of this site."`
	Host      name     `yaml:"host,omitempty" jsonschema_description:"Place it on this host."`
	Address   *address `yaml:"address,omitempty" jsonschema_description:"IPv4 address inside the network. Default: chosen."`
	Exclusive bool     `yaml:"exclusive,omitempty" jsonschema_description:"No other network's node on its host."`
	Movable   string   `yaml:"movable,omitempty" jsonschema_description:"cold: while the network runs it may be stopped and started anew on another host, when its own is drained or what it needs fails. With state keep, what it wrote goes with it; else that is lost. live: a machine with state keep runs while it is copied. Not for routers, which go anyway. Default: it stays." jsonschema:"enum=cold,enum=live"`
	Join      name     `yaml:"join,omitempty" jsonschema_description:"A machine of the user's becomes this node over WireGuard (sublet join) at this place of the substrate (substrate: joins), or any: the first with room. Its links need a rate."`
	Device    string   `yaml:"device,omitempty" jsonschema_description:"An interface of a host that the node has for itself (substrate: devices). It has this name in the node." jsonschema:"maxLength=15"`
	setup     `yaml:",inline"`
	Labels    map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

type router struct {
	node      `yaml:",inline"`
	Protocol  string     `yaml:"protocol,omitempty" jsonschema_description:"static: routes are computed. ospf (IPv4), ospf6, bgp, isis (both families): daemons of FRR run inside. none: the table is the tenant's." jsonschema:"enum=static,enum=ospf,enum=ospf6,enum=bgp,enum=isis,enum=none,default=static"`
	AS        int        `yaml:"as,omitempty" jsonschema_description:"protocol bgp: number of the autonomous system. Neighbours at links are its peers." jsonschema:"minimum=1,maximum=4294967294"`
	Neighbors []neighbor `yaml:"neighbors,omitempty" jsonschema_description:"protocol bgp: neighbours beside those at its links, any number of links away." jsonschema:"maxItems=64"`
	FRR       *frr       `yaml:"frr,omitempty" jsonschema_description:"Configuration of FRR, beside what the protocol brings; with protocol none all of it: {text: ...}, or the name of a file beside this one. Statements that write files, load modules or run commands are refused."`
	NAT       name       `yaml:"nat,omitempty" jsonschema_description:"Way out of the substrate that the router is (substrate: nat), or any: the first with room. It stands on the host of the way out, and takes an address of its pool."`
	Publish   []publish  `yaml:"publish,omitempty" jsonschema_description:"Ports of the router's outer address that lead to ports of nodes, such as 8080:web:80 or 5353:dns:53/udp. The operator says which may be published." jsonschema:"maxItems=32"`
}

// neighbor is a speaker of BGP.
type neighbor struct {
	Address anyAddress `yaml:"address" jsonschema_description:"Of IPv4 or IPv6."`
	AS      int        `yaml:"as" jsonschema_description:"Number of its autonomous system." jsonschema:"minimum=1,maximum=4294967294"`
}

// frr is a configuration, written here or beside the request.
type frr struct {
	Text *content `yaml:"text,omitempty" jsonschema_description:"The statements, as in FRR's frr.conf." jsonschema:"maxLength=32768"`
	From string   `yaml:"from,omitempty" jsonschema_description:"Instead of text: a file beside this one that has it, read when the request is." jsonschema:"minLength=1"`
}

// short says that a word alone is the name of the file.
func (f *frr) short(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return &f.From
}

type vswitch struct {
	Name   name                  `yaml:"name" jsonschema_description:"Unique among nodes, routers, switches and links."`
	Kind   string                `yaml:"kind,omitempty" jsonschema_description:"kernel: forwarded by programs in the kernel. vxswitch: the crosspoint-queued engine, with queues, schedulers and capacities of its own (docs/vxswitch-live.md). openflow: a switch of OpenFlow 1.3 and 1.0, for a controller of the tenant's (docs/openflow.md)." jsonschema:"enum=kernel,enum=vxswitch,enum=openflow,default=kernel"`
	CPU    cpu                   `yaml:"cpu,omitempty" jsonschema_description:"Cores to book for it. Default: nothing booked."`
	Site   name                  `yaml:"site,omitempty" jsonschema_description:"Place it on a host of this site."`
	Host   name                  `yaml:"host,omitempty" jsonschema_description:"Place it on this host."`
	Ageing span                  `yaml:"ageing,omitempty" jsonschema_description:"How long an address is known after its last frame. Default: 5m."`
	Ports  map[string]switchPort `yaml:"ports,omitempty" jsonschema_description:"Options of ports, by the name of the link that ends there."`
	Access name                  `yaml:"access,omitempty" jsonschema_description:"Exit of the substrate to which it has one port more (substrate: exits). It stands on the host of the exit; its links need a rate."`
	VLAN   *int                  `yaml:"vlan,omitempty" jsonschema_description:"VLAN that it has at the exit. Default: one is chosen." jsonschema:"minimum=1,maximum=4094"`

	Scheduler   string       `yaml:"scheduler,omitempty" jsonschema_description:"kind vxswitch: which input is next at an output: deficit round robin, round robin, first come first served, longest queue first, strict priority." jsonschema:"enum=drr,enum=rr,enum=fcfs,enum=lqf,enum=sp,default=drr"`
	Buffer      *size        `yaml:"buffer,omitempty" jsonschema_description:"kind vxswitch: what each crosspoint holds, such as 64KB; booked as the host's memory. Default: 256KiB."`
	Manager     string       `yaml:"manager,omitempty" jsonschema_description:"kind vxswitch: which frames a crosspoint drops: tail-drop, red or codel, settings behind a colon as in codel:target=5ms,interval=100ms. Default: tail-drop."`
	Crosspoints []crosspoint `yaml:"crosspoints,omitempty" jsonschema_description:"kind vxswitch: crosspoints with a buffer or manager of their own."`
	Lend        percent      `yaml:"lend,omitempty" jsonschema_description:"kind vxswitch: part of each crosspoint's buffer that slices may use while it is idle, such as 50%. Default: nothing."`
	Lookup      string       `yaml:"lookup,omitempty" jsonschema_description:"kind vxswitch: where frames go. learning: where stations were seen. static: to planned stations and those of the table, nobody else. prefix: by the longest prefix of the table. classifier: by the first row of the table, then as learning." jsonschema:"enum=learning,enum=static,enum=prefix,enum=classifier,default=learning"`
	Table       []switchRow  `yaml:"table,omitempty" jsonschema_description:"kind vxswitch: what the lookup reads." jsonschema:"maxItems=64"`
	Slices      []slice      `yaml:"slices,omitempty" jsonschema_description:"kind vxswitch: parts of the switch on the same ports, each with frames, buffers and a lookup of its own." jsonschema:"maxItems=8"`

	Controller []string    `yaml:"controller,omitempty" jsonschema_description:"kind openflow: its controllers: tcp:NODE:PORT or tcp:ADDRESS:PORT, which it connects to over its link with control: true or, without one, in band by its other links; or ptcp:PORT, where it listens at that link; over TLS ssl and pssl, with tls." jsonschema:"maxItems=8"`
	TLS        *switchTLS  `yaml:"tls,omitempty" jsonschema_description:"kind openflow: what it shows to controllers of ssl and pssl, and whom it believes."`
	Fail       string      `yaml:"fail,omitempty" jsonschema_description:"kind openflow: without a controller entries stay and nothing else is forwarded (secure), or it forwards as a learning switch (standalone)." jsonschema:"enum=secure,enum=standalone,default=secure"`
	Datapath   string      `yaml:"datapath,omitempty" jsonschema_description:"kind openflow: what forwards: the switch's process, or programs in the kernel for flows that it has decided about." jsonschema:"enum=process,enum=kernel,default=process"`
	Tables     *int        `yaml:"tables,omitempty" jsonschema_description:"kind openflow: flow tables. Default: 8." jsonschema:"minimum=1,maximum=254"`
	Entries    *int        `yaml:"entries,omitempty" jsonschema_description:"kind openflow: most entries in all tables together; booked as the host's memory. Default: 10000." jsonschema:"minimum=1,maximum=1000000"`
	Groups     *int        `yaml:"groups,omitempty" jsonschema_description:"kind openflow: most groups. Default: 256." jsonschema:"minimum=1,maximum=65536"`
	Meters     *int        `yaml:"meters,omitempty" jsonschema_description:"kind openflow: most meters. Default: 256." jsonschema:"minimum=1,maximum=65536"`
	PacketIns  *int        `yaml:"packet_in_pps,omitempty" jsonschema_description:"kind openflow: most packets that leave for controllers in a second; further ones are dropped. Default: 1000." jsonschema:"minimum=1,maximum=100000"`
	MeterHold  span        `yaml:"meter_hold,omitempty" jsonschema_description:"kind openflow: most time that packets wait which a meter would drop, such as 50ms, up to 1s. Default: meters drop, as OpenFlow says."`
	Auxiliary  *int        `yaml:"auxiliary,omitempty" jsonschema_description:"kind openflow: auxiliary connections beside the main one to each controller that it connects to. Default: none." jsonschema:"minimum=1,maximum=8"`
	Miss       string      `yaml:"miss,omitempty" jsonschema_description:"kind openflow: what becomes of packets that meet no entry, until the controller says otherwise." jsonschema:"enum=drop,enum=controller,default=drop"`
	DatapathID *datapathID `yaml:"datapath_id,omitempty" jsonschema_description:"kind openflow: by which controllers know it, such as 1 or 0xa1. Default: a number made of its name."`
	Queues     []queue     `yaml:"queues,omitempty" jsonschema_description:"kind openflow: queues of its ports, for set_queue."`
	FlowSlices []flowSlice `yaml:"flow_slices,omitempty" jsonschema_description:"kind openflow: parts of the switch with controllers of their own, instead of controller: packets of some ports, or with some headers, or both." jsonschema:"maxItems=16"`

	Labels map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

type switchPort struct {
	MACs      *int   `yaml:"macs,omitempty" jsonschema_description:"Most addresses learned at this port. Default: 256." jsonschema:"minimum=1,maximum=4096"`
	Broadcast *int   `yaml:"broadcast_pps,omitempty" jsonschema_description:"Broadcast and multicast frames it takes in a second. Default: 1000." jsonschema:"minimum=1,maximum=1000000"`
	Unknown   *int   `yaml:"unknown_pps,omitempty" jsonschema_description:"Frames to unknown stations it takes in a second. Default: 1000." jsonschema:"minimum=1,maximum=1000000"`
	To        []name `yaml:"to,omitempty" jsonschema_description:"Ports it may send to, by the names of their links. Default: all."`

	In        *rate  `yaml:"in,omitempty" jsonschema_description:"kind vxswitch: capacity of the input. Default: what the link has."`
	Out       *rate  `yaml:"out,omitempty" jsonschema_description:"kind vxswitch: capacity of the output. Default: what the link has."`
	Scheduler string `yaml:"scheduler,omitempty" jsonschema_description:"kind vxswitch: of this output. Default: the switch's." jsonschema:"enum=drr,enum=rr,enum=fcfs,enum=lqf,enum=sp"`
	Quantum   *size  `yaml:"quantum,omitempty" jsonschema_description:"kind vxswitch: bytes that this input sends in a turn at outputs with drr. Default: one frame."`
	Priority  int    `yaml:"priority,omitempty" jsonschema_description:"kind vxswitch: of this input at outputs with sp, 0 first." jsonschema:"minimum=0,maximum=63,default=0"`
}

// queue is one of a port.
type queue struct {
	Link  name  `yaml:"link" jsonschema_description:"Link of the port."`
	Queue int   `yaml:"queue" jsonschema_description:"Number, for set_queue. Frames of no queue are queue 0's." jsonschema:"minimum=0,maximum=63"`
	Min   *rate `yaml:"min,omitempty" jsonschema_description:"What it is guaranteed of the link's guaranteed rate. Default: nothing; of queue 0, what the others leave."`
	Max   *rate `yaml:"max,omitempty" jsonschema_description:"The most that it takes. Default: what the link has."`
}

// flowSlice is a part of a switch of kind openflow.
type flowSlice struct {
	Name       name       `yaml:"name" jsonschema_description:"Unique within the switch."`
	Controller []string   `yaml:"controller" jsonschema_description:"Its controllers, as of a switch." jsonschema:"maxItems=8"`
	Default    bool       `yaml:"default,omitempty" jsonschema_description:"It has the packets that no other slice has." jsonschema:"default=false"`
	Links      []name     `yaml:"links,omitempty" jsonschema_description:"Links of its ports. Default: all ports."`
	Match      *switchRow `yaml:"match,omitempty" jsonschema_description:"What its packets have; without to. dscp, tcp and udp need src or dst."`
	Tables     *int       `yaml:"tables,omitempty" jsonschema_description:"Flow tables. Default: 8." jsonschema:"minimum=1,maximum=254"`
	Entries    *int       `yaml:"entries,omitempty" jsonschema_description:"Most entries. Default: 10000." jsonschema:"minimum=1,maximum=1000000"`
	Groups     *int       `yaml:"groups,omitempty" jsonschema_description:"Most groups. Default: 256." jsonschema:"minimum=1,maximum=65536"`
	Meters     *int       `yaml:"meters,omitempty" jsonschema_description:"Most meters. Default: 256." jsonschema:"minimum=1,maximum=65536"`
}

// switchRow is a row of a switch's table. What it does not state matches everything.
type switchRow struct {
	MAC     string `yaml:"mac,omitempty" jsonschema_description:"Destination, such as 02:00:00:00:00:01."`
	Src     *cidr  `yaml:"src,omitempty" jsonschema_description:"Addresses of the sender, such as 10.0.0.0/24."`
	Dst     *cidr  `yaml:"dst,omitempty" jsonschema_description:"Addresses of the receiver."`
	VLAN    uint16 `yaml:"vlan,omitempty" jsonschema_description:"VLAN of the frame." jsonschema:"minimum=1,maximum=4094"`
	DSCP    *uint8 `yaml:"dscp,omitempty" jsonschema_description:"DSCP of the packet." jsonschema:"maximum=63"`
	Proto   string `yaml:"proto,omitempty" jsonschema_description:"Protocol above IP." jsonschema:"enum=tcp,enum=udp,enum=icmp,enum=icmp6"`
	SrcPort uint16 `yaml:"src_port,omitempty" jsonschema_description:"Port of the sender, of tcp and udp." jsonschema:"minimum=1,maximum=65535"`
	DstPort uint16 `yaml:"dst_port,omitempty" jsonschema_description:"Port of the receiver, of tcp and udp." jsonschema:"minimum=1,maximum=65535"`
	To      []name `yaml:"to,omitempty" jsonschema_description:"Ports by which it leaves, by the names of their links. Default: none; it is dropped."`
}

// slice is a part of a switch on the same ports.
type slice struct {
	Name      name        `yaml:"name" jsonschema_description:"Unique within the switch."`
	Claim     claim       `yaml:"claim" jsonschema_description:"What frames have that are its own: one of these."`
	Share     percent     `yaml:"share" jsonschema_description:"Part of each output's capacity that it has, such as 20%; what nobody uses is everybody's."`
	Lend      percent     `yaml:"lend,omitempty" jsonschema_description:"Part of each crosspoint's buffer that the others may use while it is idle. Default: nothing."`
	Buffer    *size       `yaml:"buffer,omitempty" jsonschema_description:"What each crosspoint holds. Default: the switch's."`
	Scheduler string      `yaml:"scheduler,omitempty" jsonschema_description:"Which input is next at an output. Default: the switch's." jsonschema:"enum=drr,enum=rr,enum=fcfs,enum=lqf,enum=sp"`
	Manager   string      `yaml:"manager,omitempty" jsonschema_description:"Which frames a crosspoint drops. Default: the switch's."`
	Lookup    string      `yaml:"lookup,omitempty" jsonschema_description:"Where its frames go, as of a switch." jsonschema:"enum=learning,enum=static,enum=prefix,enum=classifier,default=learning"`
	Table     []switchRow `yaml:"table,omitempty" jsonschema_description:"What the lookup reads." jsonschema:"maxItems=64"`
}

// claim is what frames of a slice have.
type claim struct {
	VLAN uint16 `yaml:"vlan,omitempty" jsonschema_description:"VLAN." jsonschema:"minimum=1,maximum=4094"`
	DSCP *uint8 `yaml:"dscp,omitempty" jsonschema_description:"DSCP of the packet." jsonschema:"maximum=63"`
	Dst  *cidr  `yaml:"dst,omitempty" jsonschema_description:"Addresses of the receiver, such as 10.0.0.0/24."`
	MAC  string `yaml:"mac,omitempty" jsonschema_description:"Sender, such as 02:00:00:00:00:01."`
}

// crosspoint is what lies between two ports.
type crosspoint struct {
	From    name   `yaml:"from" jsonschema_description:"Link at the input."`
	To      name   `yaml:"to" jsonschema_description:"Link at the output."`
	Buffer  *size  `yaml:"buffer,omitempty" jsonschema_description:"What it holds. Default: the switch's."`
	Manager string `yaml:"manager,omitempty" jsonschema_description:"Which frames it drops. Default: the switch's."`
}

type link struct {
	Name    name     `yaml:"name,omitempty" jsonschema_description:"Default: the ends joined by '-'."`
	Ends    linkEnds `yaml:"ends" jsonschema_description:"Two nodes, routers or switches, by name or as {node: NAME, address: ..., interface: ...}, or {access: EXIT}; forward is from the first to the second."`
	demand  `yaml:",inline"`
	Latency span              `yaml:"latency,omitempty" jsonschema_description:"Bound on every path, such as 10ms."`
	Paths   *linkPaths        `yaml:"paths,omitempty" jsonschema_description:"It may be split over so many paths: {count: ..., order: ...}, or the number alone. Default: 1."`
	Control bool              `yaml:"control,omitempty" jsonschema_description:"It joins a switch of kind openflow to its controller, or to where that is reached, and is no port of the switch." jsonschema:"default=false"`
	Spread  span              `yaml:"spread,omitempty" jsonschema_description:"Bound on the difference in latency between its paths. Default: 10ms."`
	Area    int               `yaml:"area,omitempty" jsonschema_description:"Area of OSPF that the link is in. Default: 0, the backbone." jsonschema:"minimum=0,maximum=4294967295"`
	Cost    int               `yaml:"cost,omitempty" jsonschema_description:"Cost to OSPF and IS-IS, both directions. Default: their own, 10." jsonschema:"minimum=1,maximum=65535"`
	Class   name              `yaml:"class,omitempty" jsonschema_description:"Class of traffic (classes) that the link, between two routers, carries, and no other. Default: it carries all packets that no way of a class takes."`
	Labels  map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

// linkPaths is over how many paths a link may be split, and what that does to the
// order of packets.
type linkPaths struct {
	Count int    `yaml:"count" jsonschema_description:"So many at most." jsonschema:"minimum=1,maximum=8"`
	Order string `yaml:"order,omitempty" jsonschema_description:"by-flow: each flow goes by one path. kept: packets are numbered and put back into order, so that one flow gets all paths together." jsonschema:"enum=by-flow,enum=kept,default=by-flow"`
}

// short says that a number alone is how many.
func (p *linkPaths) short(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return &p.Count
}

// demand is bandwidth, impairment and failure of both directions; no bandwidth
// stated is best effort.
type demand struct {
	bandwidth `yaml:",inline"`
	Reverse   *bandwidth `yaml:"reverse,omitempty" jsonschema_description:"Bandwidth from the second end to the first. Default: the same as forward; {} is best effort."`
	Impair    *impairs   `yaml:"impair,omitempty" jsonschema_description:"What is made worse on purpose, both directions; {} is nothing."`
	Down      *bool      `yaml:"down,omitempty" jsonschema_description:"Whether it fails: its ends then have no carrier. Default: no."`
}

// impairs is impairment of both directions.
type impairs struct {
	impair  `yaml:",inline"`
	Reverse *impair `yaml:"reverse,omitempty" jsonschema_description:"From the second end to the first. Default: the same as forward; {} is nothing."`
}

type impair struct {
	Delay        span   `yaml:"delay,omitempty" jsonschema_description:"Mean, one way, on top of the path's latency, such as 20ms."`
	Jitter       span   `yaml:"jitter,omitempty" jsonschema_description:"Standard deviation of the delay, at most the delay; of uniform: half its range."`
	Distribution string `yaml:"distribution,omitempty" jsonschema_description:"Of the delay. Default: uniform." jsonschema:"enum=uniform,enum=normal,enum=pareto,enum=paretonormal"`
	Loss         share  `yaml:"loss,omitempty" jsonschema_description:"Frames that are lost, such as 0.1%."`
	Corrupt      share  `yaml:"corrupt,omitempty" jsonschema_description:"Frames of which one bit is flipped."`
	Duplicate    share  `yaml:"duplicate,omitempty" jsonschema_description:"Frames that arrive twice."`
	Reorder      share  `yaml:"reorder,omitempty" jsonschema_description:"Frames that are not delayed and overtake the others."`
}

type bandwidth struct {
	Min  *rate `yaml:"min,omitempty" jsonschema_description:"Guaranteed minimum. Default: none."`
	Max  *rate `yaml:"max,omitempty" jsonschema_description:"Allowed maximum. Default: what the substrate gives."`
	Rate *rate `yaml:"rate,omitempty" jsonschema_description:"Static reservation: minimum and maximum at once."`
}

type stage struct {
	Name      name                      `yaml:"name" jsonschema_description:"Unique among stages."`
	After     *span                     `yaml:"after,omitempty" jsonschema_description:"Time since the start, such as 1h, of a stage that begins at the clock."`
	Begins    string                    `yaml:"begins,omitempty" jsonschema_description:"When: at the clock, after the time stated; or on command (sublet stage), at the latest with the next stage that begins at the clock. Default: clock." jsonschema:"enum=clock,enum=command"`
	Links     map[string]demand         `yaml:"links,omitempty" jsonschema_description:"New bandwidth or impairment, by link name, both directions, and whether it is down. An entry without a bandwidth leaves that, if it states something else."`
	Chains    map[string]chainChange    `yaml:"chains,omitempty" jsonschema_description:"What becomes of chains, by name: new rates, other functions, another match, and whether they are paused."`
	Functions map[string]functionChange `yaml:"functions,omitempty" jsonschema_description:"Functions that come or go, by name."`
	Add       *addition                 `yaml:"add,omitempty" jsonschema_description:"What appears."`
	Remove    []name                    `yaml:"remove,omitempty" jsonschema_description:"Names that go; a node takes its links with it. Functions become absent, chains paused."`
}

// addition is what a stage brings. Its functions and chains are there from the start, absent
// and paused.
type addition struct {
	topology  `yaml:",inline"`
	Functions []function `yaml:"functions,omitempty" jsonschema_description:"Nodes through which chains lead. Until then nothing is booked for them or runs in them."`
	Chains    []chain    `yaml:"chains,omitempty" jsonschema_description:"Packets of one node to another that pass functions on their way." jsonschema:"maxItems=256"`
}
