package file

// The form of a substrate.

type substrate struct {
	Hosts         []host             `yaml:"hosts" jsonschema_description:"Machines that run an agent." jsonschema:"minItems=1"`
	Switches      []fabricSwitch     `yaml:"switches,omitempty" jsonschema_description:"Forward, host nothing: names, or more of switches that speak OpenFlow."`
	Links         []substrateLink    `yaml:"links,omitempty" jsonschema_description:"Wires between hosts and switches."`
	Relays        map[string]address `yaml:"relays,omitempty" jsonschema_description:"By switch: IPv4 address at which it takes relay lists off, so that leases choose paths between switches. All switches or none."`
	Encapsulation string             `yaml:"encapsulation,omitempty" jsonschema_description:"Of tunnels on links that state none." jsonschema:"enum=vxlan,enum=geneve,enum=nvgre,enum=kernel-vxlan,default=vxlan"`
	NAT           nats               `yaml:"nat,omitempty" jsonschema_description:"Ways out of the substrate, for routers that take one; one alone needs no list."`
	Exits         []exit             `yaml:"exits,omitempty" jsonschema_description:"Interfaces of hosts for networks of layer 2, for switches that take one." jsonschema:"maxItems=256"`
	Joins         []join             `yaml:"joins,omitempty" jsonschema_description:"Addresses of hosts at which other machines become nodes, over WireGuard." jsonschema:"maxItems=256"`
	Devices       []device           `yaml:"devices,omitempty" jsonschema_description:"Interfaces of hosts, each for one node at a time." jsonschema:"maxItems=256"`
}

// device is an interface that one node has for itself.
type device struct {
	Name      string `yaml:"name" jsonschema_description:"Unique among devices. The interface has this name in the node." jsonschema:"maxLength=15"`
	Host      name   `yaml:"host" jsonschema_description:"Host of the interface."`
	Interface string `yaml:"interface" jsonschema_description:"The host's interface, which is up, has no addresses of the host, and is no other's." jsonschema:"maxLength=15"`
}

// join is where other machines become nodes.
type join struct {
	Name     name      `yaml:"name" jsonschema_description:"Unique among places to join."`
	Host     name      `yaml:"host" jsonschema_description:"Host of the address."`
	Address  address   `yaml:"address" jsonschema_description:"IPv4 address of the host, at which machines reach it."`
	Ports    portRange `yaml:"ports" jsonschema_description:"Ports of UDP there that nothing else uses, such as 51820-51899: one for each node."`
	Capacity rate      `yaml:"capacity" jsonschema_description:"Rate per direction that all leases together may have."`
}

// exit is an interface that switches have access to.
type exit struct {
	Name      name      `yaml:"name" jsonschema_description:"Unique among exits."`
	Host      name      `yaml:"host" jsonschema_description:"Host of the interface."`
	Interface string    `yaml:"interface" jsonschema_description:"Device of the host, such as eth2; no link of the substrate leaves by it." jsonschema:"maxLength=15"`
	VLAN      vlanRange `yaml:"vlan,omitempty" jsonschema_description:"VLANs that leases may have, each one at a time, such as 100-199. Default: frames without a tag, for one lease at a time."`
	Capacity  rate      `yaml:"capacity" jsonschema_description:"Rate per direction that all leases together may have."`
}

// nat is a way out.
type nat struct {
	Name      name      `yaml:"name,omitempty" jsonschema_description:"Unique among ways out. Default: internet."`
	Host      name      `yaml:"host" jsonschema_description:"Host of the interface."`
	Interface string    `yaml:"interface" jsonschema_description:"Device of the host that leads out, such as eth2. Each lease has a MAC address of its own behind it." jsonschema:"maxLength=15"`
	Pool      addrRange `yaml:"pool" jsonschema_description:"Addresses of that network that nobody else has, such as 192.0.2.10-192.0.2.20: one for each router that takes the way out."`
	Via       address   `yaml:"via" jsonschema_description:"IPv4 address of the router that leads on from there. All packets go to it."`
	Capacity  rate      `yaml:"capacity" jsonschema_description:"Rate per direction that all leases together may have."`
	Publish   portRange `yaml:"publish,omitempty" jsonschema_description:"Ports that tenants may publish, such as 8000-8999. Default: none."`
	Refuse    []network `yaml:"refuse,omitempty" jsonschema_description:"Networks that no tenant reaches, such as 10.0.0.0/8, besides the host's own addresses, the pool and what is link-local." jsonschema:"maxItems=64"`
}

type host struct {
	Name     name    `yaml:"name" jsonschema_description:"Unique among hosts and switches."`
	Site     name    `yaml:"site,omitempty" jsonschema_description:"Where it stands."`
	CPU      cpu     `yaml:"cpu,omitempty" jsonschema_description:"Cores that may be leased. Default: 0, only nodes without a CPU demand fit."`
	Memory   size    `yaml:"memory,omitempty" jsonschema_description:"Memory that may be leased. Default: 0, only nodes without a memory demand fit."`
	Capacity rate    `yaml:"capacity,omitempty" jsonschema_description:"What it carries per direction between its own nodes. Default: 2Gbit, or what calibration found."`
	Price    float64 `yaml:"price,omitempty" jsonschema_description:"Added to what a node or router there costs for a second, in networks that are asked for from now on. Default: 0." jsonschema:"minimum=0,maximum=1000000000000"`
}

type substrateLink struct {
	Name          name            `yaml:"name,omitempty" jsonschema_description:"Default: the ends joined by '-'."`
	Ends          ends            `yaml:"ends" jsonschema_description:"Two hosts or switches."`
	Capacity      rate            `yaml:"capacity" jsonschema_description:"Rate per direction, such as 1Gbit, counted in tenants' frames."`
	Share         *percent        `yaml:"share,omitempty" jsonschema_description:"Part of the capacity that leases may take. Default: 100%."`
	Latency       span            `yaml:"latency,omitempty" jsonschema_description:"One way, such as 1ms."`
	Price         float64         `yaml:"price,omitempty" jsonschema_description:"Added to what 1 Mbit/s guaranteed there costs for a second, in networks that are asked for from now on. Default: 0." jsonschema:"minimum=0,maximum=1000000000000"`
	MTU           int             `yaml:"mtu,omitempty" jsonschema_description:"Of the wire. Default: 1500." jsonschema:"minimum=576,maximum=65535"`
	Encapsulation string          `yaml:"encapsulation,omitempty" jsonschema_description:"Of tunnels that take it: vxlan, geneve (UDP 6081), nvgre (IP protocol 47), or kernel-vxlan (UDP 14790), by the stack of the host, with its firewall and IPsec. Links that meet at a switch have the same; nvgre and kernel-vxlan pass no relays, and OpenFlow switches only vxlan. Default: that of the substrate." jsonschema:"enum=vxlan,enum=geneve,enum=nvgre,enum=kernel-vxlan"`
	Ports         map[string]port `yaml:"ports,omitempty" jsonschema_description:"By host: where its end of the wire is plugged in."`
}

type port struct {
	Interface string   `yaml:"interface,omitempty" jsonschema_description:"Device of the host, such as eth0." jsonschema:"maxLength=15"`
	Address   *address `yaml:"address,omitempty" jsonschema_description:"IPv4 address other hosts send tunnels to."`
}
