package file

// The form of a substrate.

type substrate struct {
	Hosts    []host             `yaml:"hosts" jsonschema_description:"Machines that run an agent." jsonschema:"minItems=1"`
	Switches []name             `yaml:"switches,omitempty" jsonschema_description:"Forward, host nothing."`
	Links    []substrateLink    `yaml:"links,omitempty" jsonschema_description:"Wires between hosts and switches."`
	Relays   map[string]address `yaml:"relays,omitempty" jsonschema_description:"By switch: IPv4 address at which it takes relay lists off, so that leases choose paths between switches. All switches or none."`
}

type host struct {
	Name     name `yaml:"name" jsonschema_description:"Unique among hosts and switches."`
	Site     name `yaml:"site,omitempty" jsonschema_description:"Where it stands."`
	CPU      cpu  `yaml:"cpu,omitempty" jsonschema_description:"Cores that may be leased. Default: 0, only nodes without a CPU demand fit."`
	Memory   size `yaml:"memory,omitempty" jsonschema_description:"Memory that may be leased. Default: 0, only nodes without a memory demand fit."`
	Capacity rate `yaml:"capacity,omitempty" jsonschema_description:"What it carries per direction between its own nodes. Default: 2Gbit, or what calibration found."`
}

type substrateLink struct {
	Name     name            `yaml:"name,omitempty" jsonschema_description:"Default: the ends joined by '-'."`
	Ends     ends            `yaml:"ends" jsonschema_description:"Two hosts or switches."`
	Capacity rate            `yaml:"capacity" jsonschema_description:"Rate per direction, such as 1Gbit, counted in tenants' frames."`
	Share    *percent        `yaml:"share,omitempty" jsonschema_description:"Part of the capacity that leases may take. Default: 100%."`
	Latency  span            `yaml:"latency,omitempty" jsonschema_description:"One way, such as 1ms."`
	MTU      int             `yaml:"mtu,omitempty" jsonschema_description:"Of the wire. Default: 1500." jsonschema:"minimum=576,maximum=65535"`
	Ports    map[string]port `yaml:"ports,omitempty" jsonschema_description:"By host: where its end of the wire is plugged in."`
}

type port struct {
	Interface string   `yaml:"interface,omitempty" jsonschema_description:"Device of the host, such as eth0." jsonschema:"maxLength=15"`
	Address   *address `yaml:"address,omitempty" jsonschema_description:"IPv4 address other hosts send tunnels to."`
}
