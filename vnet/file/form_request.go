package file

// The form of a request. Field order is the order in which it is written;
// the descriptions are the published schema's.

type request struct {
	Network   name    `yaml:"network" jsonschema_description:"Name of the virtual network, unique among its tenant's leases."`
	Tenant    name    `yaml:"tenant,omitempty" jsonschema_description:"Who leases. Default: the caller."`
	Window    *window `yaml:"window,omitempty" jsonschema_description:"When. Default: now, until released."`
	Movable   bool    `yaml:"movable,omitempty" jsonschema_description:"Links may be taken over other paths while the network runs, to make room for others; each move interrupts a link for a moment. Until it begins it may be postponed up to before."`
	Axes      []axis  `yaml:"negotiable,omitempty" jsonschema_description:"In what counter-offers may differ from the request. Default: in all of these."`
	topology  `yaml:",inline"`
	Colocate  string  `yaml:"colocate,omitempty" jsonschema_description:"Whether two nodes of this network may share a host." jsonschema:"enum=allowed,enum=forbidden,default=allowed"`
	Objective string  `yaml:"objective,omitempty" jsonschema_description:"What its embedding is best at: revenue-cost takes the least bandwidth, load-balance keeps links and processors evenly used, energy wakes the fewest hosts." jsonschema:"enum=revenue-cost,enum=load-balance,enum=energy,default=revenue-cost"`
	Stages    []stage `yaml:"stages,omitempty" jsonschema_description:"Changes after the start, in order of time. Each begins from what the one before it left." jsonschema:"maxItems=64"`
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
	setup     `yaml:",inline"`
	Labels    map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

type router struct {
	node     `yaml:",inline"`
	Protocol string    `yaml:"protocol,omitempty" jsonschema_description:"static: routes are computed. ospf: FRR's ospfd runs inside. none: the table is the tenant's." jsonschema:"enum=static,enum=ospf,enum=none,default=static"`
	NAT      name      `yaml:"nat,omitempty" jsonschema_description:"Way out of the substrate that the router is (substrate: nat). It stands on the host of the way out, and takes an address of its pool."`
	Publish  []publish `yaml:"publish,omitempty" jsonschema_description:"Ports of the router's outer address that lead to ports of nodes, such as 8080:web:80 or 5353:dns:53/udp. The operator says which may be published." jsonschema:"maxItems=32"`
}

type vswitch struct {
	Name   name                  `yaml:"name" jsonschema_description:"Unique among nodes, routers, switches and links."`
	Kind   string                `yaml:"kind,omitempty" jsonschema_description:"kernel: forwarded by programs in the kernel. vxswitch: the crosspoint-queued engine, with queues, schedulers and capacities of its own (docs/vxswitch-live.md)." jsonschema:"enum=kernel,enum=vxswitch,default=kernel"`
	CPU    cpu                   `yaml:"cpu,omitempty" jsonschema_description:"Cores to book for it. Default: nothing booked."`
	Site   name                  `yaml:"site,omitempty" jsonschema_description:"Place it on a host of this site."`
	Host   name                  `yaml:"host,omitempty" jsonschema_description:"Place it on this host."`
	Ageing span                  `yaml:"ageing,omitempty" jsonschema_description:"How long an address is known after its last frame. Default: 5m."`
	Ports  map[string]switchPort `yaml:"ports,omitempty" jsonschema_description:"Options of ports, by the name of the link that ends there."`

	Scheduler   string       `yaml:"scheduler,omitempty" jsonschema_description:"kind vxswitch: which input is next at an output: deficit round robin, round robin, first come first served, longest queue first, strict priority." jsonschema:"enum=drr,enum=rr,enum=fcfs,enum=lqf,enum=sp,default=drr"`
	Buffer      *size        `yaml:"buffer,omitempty" jsonschema_description:"kind vxswitch: what each crosspoint holds, such as 64KB; booked as the host's memory. Default: 256KiB."`
	Manager     string       `yaml:"manager,omitempty" jsonschema_description:"kind vxswitch: which frames a crosspoint drops: tail-drop, red or codel, settings behind a colon as in codel:target=5ms,interval=100ms. Default: tail-drop."`
	Crosspoints []crosspoint `yaml:"crosspoints,omitempty" jsonschema_description:"kind vxswitch: crosspoints with a buffer or manager of their own."`

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

// crosspoint is what lies between two ports.
type crosspoint struct {
	From    name   `yaml:"from" jsonschema_description:"Link at the input."`
	To      name   `yaml:"to" jsonschema_description:"Link at the output."`
	Buffer  *size  `yaml:"buffer,omitempty" jsonschema_description:"What it holds. Default: the switch's."`
	Manager string `yaml:"manager,omitempty" jsonschema_description:"Which frames it drops. Default: the switch's."`
}

type link struct {
	Name    name     `yaml:"name,omitempty" jsonschema_description:"Default: the ends joined by '-'."`
	Ends    linkEnds `yaml:"ends" jsonschema_description:"Two nodes, routers or switches, by name or as {node: NAME, address: ...}; forward is from the first to the second."`
	demand  `yaml:",inline"`
	Latency span              `yaml:"latency,omitempty" jsonschema_description:"Bound on every path, such as 10ms."`
	Paths   int               `yaml:"paths,omitempty" jsonschema_description:"It may be split over so many paths, by flow. Default: 1." jsonschema:"minimum=1,maximum=8"`
	Spread  span              `yaml:"spread,omitempty" jsonschema_description:"Bound on the difference in latency between its paths. Default: 10ms."`
	Labels  map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

// demand is bandwidth and impairment of both directions; no bandwidth stated is
// best effort.
type demand struct {
	bandwidth `yaml:",inline"`
	Reverse   *bandwidth `yaml:"reverse,omitempty" jsonschema_description:"Bandwidth from the second end to the first. Default: the same as forward; {} is best effort."`
	Impair    *impairs   `yaml:"impair,omitempty" jsonschema_description:"What is made worse on purpose, both directions; {} is nothing."`
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
	Name   name              `yaml:"name" jsonschema_description:"Unique among stages."`
	After  span              `yaml:"after" jsonschema_description:"Time since the start, such as 1h."`
	Links  map[string]demand `yaml:"links,omitempty" jsonschema_description:"New bandwidth or impairment, by link name, both directions. An entry with impair alone leaves the bandwidth."`
	Add    *topology         `yaml:"add,omitempty" jsonschema_description:"What appears."`
	Remove []name            `yaml:"remove,omitempty" jsonschema_description:"Names that go; a node takes its links with it."`
}
