package vnet

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Substrate is the shared physical graph with its capacities.
type Substrate struct {
	Hosts    []SubstrateNode `json:"hosts"`
	Switches []string        `json:"switches,omitempty"` // forward, host nothing
	Links    []SubstrateLink `json:"links,omitempty"`
	NAT      []NAT           `json:"nat,omitempty"` // ways out
	Exits    []Exit          `json:"exits,omitempty"`
	// Joins are where other machines become nodes.
	Joins []Join `json:"joins,omitempty"`
	// Devices are interfaces of hosts for one node at a time.
	Devices []Device `json:"devices,omitempty"`
	// Maintenance is what the operator plans. It is state, not configuration:
	// substrate files do not state it.
	Maintenance []Maintenance `json:"maintenance,omitempty"`
	// Relays says that the fabric lets senders choose paths: at these addresses
	// the switches take relay lists off (datapath/iplb). Of all switches or of
	// none. All links between switches cost the same there, equal ways are all
	// used, and no two join the same switches.
	Relays map[string]netip.Addr `json:"relays,omitempty"`
	// OpenFlow is what is known of those switches that speak it.
	OpenFlow []OpenFlowSwitch `json:"openflow,omitempty"`
	// Forwards is what all hosts forward together, where they share the
	// processors of one machine, as those of a lab do; 0: each has its own.
	Forwards Rate `json:"forwards_bps,omitempty"`
}

// MaxRelays is how many relays a packet's list has room for (datapath/iplb). A
// path between two hosts that takes more to pin it carries no lease.
const MaxRelays = 8

// SubstrateNode is a host.
type SubstrateNode struct {
	Name   HostID `json:"name"`
	Site   string `json:"site,omitempty"`
	CPU    CPU    `json:"cpu_milli"`
	Memory Bytes  `json:"memory_bytes"`
	// Capacity is what the host carries per direction between two nodes it
	// hosts itself; 0 means what was measured, else DefaultHostCapacity.
	Capacity Rate `json:"capacity_bps,omitempty"`
	Measurement
	// Price is added for each second of a node or router there.
	Price float64 `json:"price,omitempty"`
	// Inside is the latency of a link between two of its nodes, as admission
	// counts it; WithDelays fills it in.
	Inside time.Duration `json:"-"`
	// Down says that the operator reported it out of order. It is state, not
	// configuration: substrate files do not state it.
	Down bool `json:"down,omitempty"`
	// Drained says that it takes nothing new, as the operator said. It is state, too.
	Drained bool `json:"drained,omitempty"`
}

// Measurement is what a host was found to do (sublet calibrate).
type Measurement struct {
	// Measured is what its processors forward; 0: nobody has measured.
	Measured Rate `json:"measured_bps,omitempty"`
	// Delay is what it adds to a link's latency: half the round trip between two
	// nodes, on it or by a tunnel to a host like it, whichever takes longer; 0:
	// nobody has measured.
	Delay time.Duration `json:"delay_ns,omitempty"`
	// InsideCost is of a packet on a link inside the host, TunnelCost of one at either end
	// of a tunnel.
	InsideCost PacketCost `json:"inside_cost,omitzero"`
	TunnelCost PacketCost `json:"tunnel_cost,omitzero"`
	MeasuredAt time.Time  `json:"measured_at,omitzero"`
	Machine    string     `json:"machine,omitempty"` // it was measured on: kernel and processors
}

// DefaultHostCapacity stands in for a host's Capacity until it is measured: what
// one processor of a virtual machine forwards of frames of 900 bytes
// (docs/research/measurements.md).
const DefaultHostCapacity = 2 * Gbit

// Carries is Capacity with its default, but never more than was measured.
func (n SubstrateNode) Carries() Rate {
	switch {
	case n.Measured != 0 && (n.Capacity == 0 || n.Measured < n.Capacity):
		return n.Measured
	case n.Capacity == 0:
		return DefaultHostCapacity
	}
	return n.Capacity
}

// DefaultDelay stands in for a host's Delay until it is measured: twice what
// hosts with an idle processor of 2020 take (docs/research/measurements.md).
const DefaultDelay = 100 * time.Microsecond

// WithDelays is the substrate with what its hosts add to latencies: between two
// nodes of a host its delay, and half of it at each end of a link that is at a
// host, so that every tunnel counts once. OpenFlow switches count as slow as their
// slow paths, where packets of leases take those.
func (s Substrate) WithDelays() Substrate {
	delays := make(map[string]time.Duration, len(s.Hosts))
	s.Hosts, s.Links = slices.Clone(s.Hosts), slices.Clone(s.Links)
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if h.Inside = h.Delay; h.Delay == 0 {
			h.Inside = DefaultDelay
		}
		delays[string(h.Name)] = h.Inside
	}
	for i := range s.Links {
		l := &s.Links[i]
		l.Latency = max(l.Latency+(delays[l.Ends[0]]+delays[l.Ends[1]])/2, l.Takes)
	}
	s.addSlowPaths()
	return s
}

// SubstrateLink joins two substrate nodes. Capacity counts tenants' frames per
// direction; the wire below also carries Sublet's own outer headers.
type SubstrateLink struct {
	Name     string        `json:"name"`
	Ends     [2]string     `json:"ends"`
	Capacity Rate          `json:"capacity_bps"`
	Share    int           `json:"share_percent,omitempty"` // of Capacity that leases may take; 0 means 100
	Latency  time.Duration `json:"latency_ns,omitempty"`
	Price    float64       `json:"price,omitempty"` // added for each Mbit guaranteed there
	MTU      int           `json:"mtu,omitempty"`   // of the wire; 0 means DefaultMTU
	// Encapsulation is that of tunnels that take the link; "": VXLAN. Links that meet at a
	// switch have the same, so that a tunnel has one.
	Encapsulation Encapsulation `json:"encapsulation,omitempty"`
	Ports         [2]Port       `json:"ports,omitzero"`
	// Forwards is what the processors at its ends were found to forward, the
	// smaller of both; 0: nobody has measured. SpreadMeasured fills it in.
	Forwards Rate `json:"forwards_bps,omitempty"`
	Down     bool `json:"down,omitempty"` // as SubstrateNode's
	// Takes is what frames were measured to take by it, hosts' delays included, if that is
	// more than is stated. It is state, as Down is.
	Takes time.Duration `json:"takes_ns,omitempty"`
	// NoCarrier says, by end, that the agent there sees no carrier. It is state too.
	NoCarrier [2]bool `json:"dark,omitzero"`
}

// Works says that nobody knows the link to be out of order.
func (l SubstrateLink) Works() bool { return !l.Down && l.NoCarrier == [2]bool{} }

// DefaultMTU is a wire's MTU when the substrate does not state one.
const DefaultMTU = 1500

// Port is a host's end of a substrate link: the interface it leaves by and the
// underlay address other hosts send to. Switches need none.
type Port struct {
	Interface string     `json:"interface,omitempty"`
	Address   netip.Addr `json:"address,omitzero"`
}

// Leasable is what leases may take of the link, per direction: its share, but
// never more than the hosts at its ends forward.
func (l SubstrateLink) Leasable() Rate {
	rate := l.Capacity
	if l.Share != 0 {
		rate = l.Capacity / 100 * Rate(l.Share)
	}
	if l.Forwards != 0 {
		rate = min(rate, l.Forwards)
	}
	return rate
}

// ApplyMeasured tells the links what was measured of the hosts at their ends.
func (s *Substrate) ApplyMeasured() {
	measured := make(map[string]Rate)
	for _, h := range s.Hosts {
		if h.Measured != 0 {
			measured[string(h.Name)] = h.Measured
		}
	}
	s.Links = slices.Clone(s.Links)
	for i := range s.Links {
		l := &s.Links[i]
		l.Forwards = 0
		for _, end := range l.Ends {
			if rate, ok := measured[end]; ok && (l.Forwards == 0 || rate < l.Forwards) {
				l.Forwards = rate
			}
		}
	}
}

// WireMTU is MTU with its default.
func (l SubstrateLink) WireMTU() int {
	if l.MTU == 0 {
		return DefaultMTU
	}
	return l.MTU
}

// HostOf finds a host by name.
func (s Substrate) HostOf(name string) (SubstrateNode, bool) {
	for _, h := range s.Hosts {
		if string(h.Name) == name {
			return h, true
		}
	}
	return SubstrateNode{}, false
}

// LinkOf finds a substrate link by name.
func (s Substrate) LinkOf(name string) (SubstrateLink, bool) {
	for i := range s.Links {
		if s.Links[i].Name == name {
			return s.Links[i], true
		}
	}
	return SubstrateLink{}, false
}

// Working is the substrate without what is down, and without the links of
// hosts that are.
func (s Substrate) Working() Substrate {
	down := make(map[string]bool)
	working := Substrate{Switches: s.Switches, NAT: s.NAT, Exits: s.Exits, Joins: s.Joins, Devices: s.Devices, Relays: s.Relays, OpenFlow: s.OpenFlow, Forwards: s.Forwards}
	for _, h := range s.Hosts {
		if down[string(h.Name)] = h.Down; !h.Down {
			working.Hosts = append(working.Hosts, h)
		}
	}
	for _, l := range s.Links {
		if l.Works() && !down[l.Ends[0]] && !down[l.Ends[1]] {
			working.Links = append(working.Links, l)
		}
	}
	return working
}

// Undrained is the substrate without the hosts that take nothing new, but for some.
func (s Substrate) Undrained(but map[HostID]bool) Substrate {
	open := func(h SubstrateNode) bool { return !h.Drained || but[h.Name] }
	if !slices.ContainsFunc(s.Hosts, func(h SubstrateNode) bool { return !open(h) }) {
		return s
	}
	gone := make(map[string]bool)
	hosts := s.Hosts
	s.Hosts = nil
	for _, h := range hosts {
		if open(h) {
			s.Hosts = append(s.Hosts, h)
		} else {
			gone[string(h.Name)] = true
		}
	}
	s.Links = slices.DeleteFunc(slices.Clone(s.Links), func(l SubstrateLink) bool { return gone[l.Ends[0]] || gone[l.Ends[1]] })
	return s
}

// Path is a walk through the substrate: link names in order. The empty path
// joins two nodes on one host.
type Path []string

// Hop is one link of a path in the direction it is walked.
type Hop struct {
	Link SubstrateLink
	Dir  Direction
}

// From and To are the substrate nodes a hop leaves and reaches.
func (h Hop) From() string { return h.Link.Ends[h.Dir] }

// To is the substrate node the hop reaches.
func (h Hop) To() string { return h.Link.Ends[h.Dir.Opposite()] }

// Walk gives the hops of a path that begins at from; an error names the first
// link that is unknown or does not continue the walk.
func (s Substrate) Walk(from HostID, path Path) ([]Hop, error) {
	return walk(s.LinkOf, from, path) // a path is short: cheaper than an index
}

func walk(find func(string) (SubstrateLink, bool), from HostID, path Path) ([]Hop, error) {
	at := string(from)
	hops := make([]Hop, 0, len(path))
	for _, name := range path {
		l, ok := find(name)
		if !ok {
			return nil, fmt.Errorf("path from %s: no substrate link %q", from, name)
		}
		hop := Hop{Link: l}
		switch at {
		case l.Ends[0]:
		case l.Ends[1]:
			hop.Dir = Reverse
		default:
			return nil, fmt.Errorf("path from %s: link %s does not touch %s", from, name, at)
		}
		at = hop.To()
		hops = append(hops, hop)
	}
	return hops, nil
}
