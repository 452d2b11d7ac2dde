package vnet

import (
	"net/netip"
	"slices"
	"time"
)

// Bandwidth is what a tenant asks of one direction of a virtual link
// (Anhalt, thesis, section 5.2.4). Min = Max is a static reservation. The zero value is
// best effort: strictly below every leased packet.
type Bandwidth struct {
	Min Rate `json:"min_bps"` // guaranteed minimum
	Max Rate `json:"max_bps"` // allowed maximum; Unbounded = the substrate's
}

// BestEffort says that nothing was asked for.
func (b Bandwidth) BestEffort() bool { return b.Max == 0 }

// String says what is asked for, in words: "100Mbit to 500Mbit", "300Mbit",
// "up to 50Mbit", "at least 1Mbit", "best effort".
func (b Bandwidth) String() string {
	switch {
	case b.BestEffort():
		return "best effort"
	case b.Min == b.Max:
		return b.Max.String()
	case b.Max == Unbounded:
		return "at least " + b.Min.String()
	case b.Min == 0:
		return "up to " + b.Max.String()
	}
	return b.Min.String() + " to " + b.Max.String()
}

// Static returns the reservation of exactly r.
func Static(r Rate) Bandwidth { return Bandwidth{Min: r, Max: r} }

// Direction of a link: Forward runs from Ends[0] to Ends[1].
type Direction int

// The two directions, usable as indexes.
const (
	Forward Direction = iota
	Reverse
)

// Opposite returns the other direction.
func (d Direction) Opposite() Direction { return 1 - d }

// Directions lists both, for range loops.
var Directions = [2]Direction{Forward, Reverse}

// Request is the document a tenant writes.
type Request struct {
	Network VNetID        `json:"network"`
	Tenant  TenantID      `json:"tenant,omitempty"` // default: the caller
	Start   time.Time     `json:"start,omitzero"`   // zero: now
	Before  time.Time     `json:"before,omitzero"`  // latest start: any from Start on will do; zero: Start itself
	For     time.Duration `json:"for_ns,omitempty"` // zero: until released
	// Movable lets Sublet take the running network's links over other paths to
	// make room for others, which interrupts each link for a moment, and
	// postpone the start up to Before as long as it has not come.
	Movable bool `json:"movable,omitempty"`
	// IPv6 gives every link, and every segment of switches, a subnet of IPv6 beside what
	// it has of IPv4.
	IPv6 bool `json:"ipv6,omitempty"`
	// Verify says whether its promises are measured before it is said to run;
	// default: as the operator has it.
	Verify Verification `json:"verify,omitempty"`
	// Negotiable are the axes along which counter-offers may differ from the
	// request; none: all.
	Negotiable []Axis `json:"negotiable,omitempty"`
	// Labels say what the tenant likes of the network; a Selector chooses by them.
	Labels map[string]string `json:"labels,omitempty"`
	Topology
	Chains []Chain `json:"chains,omitempty"`
	// Classes of traffic have ways of their own between routers.
	Classes   []TrafficClass `json:"classes,omitempty"`
	Stages    []Stage        `json:"stages,omitempty"`    // in order of After
	Colocate  Colocation     `json:"colocate,omitempty"`  // default: ColocateAllowed
	Objective Objective      `json:"objective,omitempty"` // default: RevenueOverCost
}

// Axis is a way in which a counter-offer can differ from what was asked for.
type Axis string

// The axes of counter-offers.
const (
	AxisStart    Axis = "start"    // later, with the same duration
	AxisDuration Axis = "duration" // shorter, from the same start
	AxisMinimum  Axis = "minimum"  // lower guaranteed minima
	AxisLatency  Axis = "latency"  // longer bounds
	AxisSite     Axis = "site"     // other sites or hosts
)

// Axes lists all, in the order in which offers are listed.
var Axes = []Axis{AxisStart, AxisDuration, AxisMinimum, AxisLatency, AxisSite}

// Negotiates says whether counter-offers may differ along an axis.
func (r Request) Negotiates(a Axis) bool {
	return len(r.Negotiable) == 0 || slices.Contains(r.Negotiable, a)
}

// Colocation says whether two nodes of a network may share a host.
type Colocation string

// Policies of co-location. Forbidden is the rule of most published embedding
// problems, and what a network asks for that must survive the loss of a host.
const (
	ColocateAllowed   Colocation = "allowed"
	ColocateForbidden Colocation = "forbidden"
)

// Apart says that every node of the network wants a host of its own.
func (r Request) Apart() bool { return r.Colocate == ColocateForbidden }

// Objective names what a network's embedding is best at.
type Objective string

// Objectives of embedding; embed says what each of them counts.
const (
	RevenueOverCost Objective = "revenue-cost"
	LoadBalance     Objective = "load-balance"
	Energy          Objective = "energy"
)

// Objectives lists all, the default first.
var Objectives = []Objective{RevenueOverCost, LoadBalance, Energy}

// Topology is a set of virtual nodes, routers, switches and links.
type Topology struct {
	Nodes    []VirtualNode   `json:"nodes,omitempty"`
	Routers  []VirtualNode   `json:"routers,omitempty"`
	Switches []VirtualSwitch `json:"switches,omitempty"`
	Links    []VirtualLink   `json:"links,omitempty"`
}

// VirtualNode is an end host or, in Topology.Routers, a router.
type VirtualNode struct {
	Name      string            `json:"name"`
	CPU       CPU               `json:"cpu_milli,omitempty"`    // 0: no limit, nothing booked
	Memory    Bytes             `json:"memory_bytes,omitempty"` // 0: no limit, nothing booked
	Site      string            `json:"site,omitempty"`
	Host      HostID            `json:"host,omitempty"`
	Exclusive bool              `json:"exclusive,omitempty"` // no other network's node on this host
	Movable   NodeMove          `json:"movable,omitempty"`   // nodes only: how it may go to another host while it runs
	Address   netip.Addr        `json:"address,omitzero"`    // zero: Sublet chooses
	Protocol  Protocol          `json:"protocol,omitempty"`  // routers only
	AS        uint32            `json:"as,omitempty"`        // number of the autonomous system; protocol bgp only
	Neighbors []Neighbor        `json:"neighbors,omitempty"` // of BGP, beside those at its links
	FRR       string            `json:"frr,omitempty"`       // routers only: what FRR is told beside what Sublet says
	NAT       string            `json:"nat,omitempty"`       // routers only: the way out it is
	Join      string            `json:"join,omitempty"`      // nodes only: the place at which another machine becomes it
	Device    string            `json:"device,omitempty"`    // nodes only: the interface of a host that it has for itself
	Publish   []Publish         `json:"publish,omitempty"`   // ports outside that lead to nodes; needs NAT
	Labels    map[string]string `json:"labels,omitempty"`
	Function  *Function         `json:"function,omitempty"` // nodes only: what it does with packets of chains
	Setup
}

// NodeMove is how a node may go to another host while its network runs.
type NodeMove string

// MoveCold stops what runs in the node and starts it anew on the other host. MoveLive is
// of machines: one runs while its disk and memory are copied, and stands still for what
// is left in the end. "": it stays where it is.
const (
	MoveCold NodeMove = "cold"
	MoveLive NodeMove = "live"
)

// MayMove says that the node may go to another host while its network runs.
func (n VirtualNode) MayMove() bool { return n.Movable != "" }

// Protocol is how a router learns its routes.
type Protocol string

// Routing protocols. Static routes are computed; None leaves the table to the
// tenant. OSPF is for IPv4; OSPF6, BGP and ISIS are for both families.
const (
	ProtocolStatic Protocol = "static"
	ProtocolOSPF   Protocol = "ospf"
	ProtocolOSPF6  Protocol = "ospf6"
	ProtocolBGP    Protocol = "bgp"
	ProtocolISIS   Protocol = "isis"
	ProtocolNone   Protocol = "none"
)

// VirtualLink joins two virtual nodes, routers or switches.
type VirtualLink struct {
	Name      string            `json:"name"`
	Ends      [2]string         `json:"ends"`
	Bandwidth [2]Bandwidth      `json:"bandwidth"`            // by Direction
	Latency   time.Duration     `json:"latency_ns,omitempty"` // bound on every path; 0: none
	Paths     int               `json:"paths,omitempty"`      // it may be split over, up to MaxPaths; 0 and 1: one
	Order     PathOrder         `json:"order,omitempty"`      // of packets that go by several paths
	Spread    time.Duration     `json:"spread_ns,omitempty"`  // bound on its paths' difference in latency; 0: DefaultSpread
	Impair    [2]Impairment     `json:"impair,omitzero"`      // by Direction
	Down      bool              `json:"down,omitempty"`       // it fails: its ends have no carrier
	Area      uint32            `json:"area,omitempty"`       // of OSPF
	Cost      int               `json:"cost,omitempty"`       // to OSPF and IS-IS, both directions; 0: its own
	Class     string            `json:"class,omitempty"`      // of traffic, which alone it carries
	Labels    map[string]string `json:"labels,omitempty"`
	// Control says that it joins a switch of kind openflow to its controller,
	// and is no port of that switch.
	Control bool `json:"control,omitempty"`
	// Chain is that of which it is a segment, or FUNCTION>NODE of a function's own
	// link; "": it is an ordinary link.
	Chain string `json:"chain,omitempty"`
	// Addresses that the ends state; in a subnet of which only some stations
	// state theirs, the others' are chosen.
	Addresses LinkAddresses `json:"addresses,omitzero"`
	// Interfaces are names of the ends' interfaces; "": see Topology.Interfaces.
	Interfaces [2]string `json:"interfaces,omitzero"`
}

// BestEffort says that neither direction asks for anything.
func (l VirtualLink) BestEffort() bool {
	return l.Bandwidth[Forward].BestEffort() && l.Bandwidth[Reverse].BestEffort()
}

// Stage changes the network After its start, or when its owner says so. One on
// command that nobody began begins with the next one at the clock. Stages add up: each begins from
// the topology the one before it left.
type Stage struct {
	Name  string        `json:"name"`
	After time.Duration `json:"after_ns"` // of one OnCommand: when it began; zero: it has not
	// OnCommand says that it begins when its owner says so.
	OnCommand bool                     `json:"on_command,omitempty"`
	Links     map[string][2]Bandwidth  `json:"links,omitempty"`     // new rates, by link name
	Impair    map[string][2]Impairment `json:"impair,omitempty"`    // new impairments, by link name
	Down      map[string]bool          `json:"down,omitempty"`      // links that fail (true) or are mended (false), by name
	Chains    map[string]ChainChange   `json:"chains,omitempty"`    // what it makes of chains, by name
	Functions map[string]bool          `json:"functions,omitempty"` // those that come (true) or go (false), by name
	Add       Topology                 `json:"add,omitzero"`        // nodes, routers, switches and links that appear
	Remove    []string                 `json:"remove,omitempty"`    // names that go; a node takes its links with it
}

// Window is a span of time: [Start, End). A zero End is open.
type Window struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end,omitzero"`
}

// Contains says whether t lies in the window.
func (w Window) Contains(t time.Time) bool {
	return !t.Before(w.Start) && (w.End.IsZero() || t.Before(w.End))
}

// Since is the part of the window from an instant on; false: it is over by then.
func (w Window) Since(from time.Time) (Window, bool) {
	if w.Start.Before(from) {
		w.Start = from
	}
	return w, w.End.IsZero() || w.Start.Before(w.End)
}

// Overlaps says whether two windows share an instant; windows that abut do not.
func (w Window) Overlaps(v Window) bool {
	return (v.End.IsZero() || w.Start.Before(v.End)) && (w.End.IsZero() || v.Start.Before(w.End))
}

// Verification says when promises are measured without being asked.
type Verification string

// Before a network is handed over, or never.
const (
	VerifyHandover Verification = "handover"
	VerifyNone     Verification = "none"
)
