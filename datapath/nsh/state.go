package nsh

import (
	"net/netip"
	"time"
)

// Plane is what one host does for one lease's chains: all of it is desired
// state, and all of it is data. A path is named by a number of 24 bits that no
// other path of the substrate has, whoever's it is.
//
// Devices are named as in the namespace Fabric. A device there is the end of a
// virtual link's port that faces the node (vxlink's lN devices).
type Plane struct {
	Fabric      string // namespace of the lease's devices on this host, for kernel.Host.Open
	Interface   string // of the host, by which other hosts are reached; "": the plane has no remotes
	Local       netip.Addr
	Classifiers []Classifier `json:",omitempty"`
	Functions   []Function   `json:",omitempty"`
	Remotes     []Remote     `json:",omitempty"`
	Hops        []Hop        `json:",omitempty"`
	Metadata    []Metadata   `json:",omitempty"` // of paths; others begin with MD type 2 and none
	OAM         bool         `json:",omitempty"` // packets with the O bit pass on, past functions; else they are dropped
}

// Classifier puts frames that come in by a port on paths. What no rule takes goes
// on as if there were no classifier.
type Classifier struct {
	Port  string
	Rules []Rule // the first that matches; MaxRules at most
}

// Rule puts what matches on a path, at an index.
type Rule struct {
	Match Match
	Path  uint32 // 1 to MaxPath
	Index uint8  // of the first hop, 1 to 255
}

// Metadata is what packets get where a path begins. A node that knows no NSH returns them
// with what they had of type 1, and with what is stated here of type 2.
type Metadata struct {
	Path  uint32
	Type  uint8  // MD type: 1 or 2
	Bytes []byte // of type 1 16; of type 2 a multiple of 4, MaxMetadata at most
}

// Match is met by IP packets only. What is zero matches anything.
type Match struct {
	Proto    uint8        `json:",omitempty"`
	Src, Dst netip.Prefix // the zero Prefix: any; both of one family
	SrcPorts Ports
	DstPorts Ports
	VLAN     *uint16 `json:",omitempty"` // 0: without a tag
	DSCP     *uint8  `json:",omitempty"`
}

// Ports is a range, both ends included; zero: any.
type Ports struct{ From, To uint16 }

// Hop is the row of the forwarding table for a path and index: exactly one of
// Function, Remote, Egress and Jump. A function takes one off the index, and the packet
// goes on with the row of the result. A packet that meets no row is dropped.
type Hop struct {
	Path     uint32
	Index    uint8
	Function string  `json:",omitempty"` // of Plane.Functions
	Reverse  bool    `json:",omitempty"` // Function: the packet goes through it from the far side (NAT, balancer, node)
	Remote   string  `json:",omitempty"` // of Plane.Remotes; index and path stay as they are
	Egress   *Egress `json:",omitempty"` // the chain ends here
	Jump     *Place  `json:",omitempty"` // the packet goes on there
	// Below is how far below the index of its backend a packet goes on that Function, a
	// Balancer, leads to one: each chain through it has rows of its own there.
	Below uint8 `json:",omitempty"`
	// Fails says what becomes of packets while Function, a Node, returns nothing; "":
	// nobody looks. Instead is where they go on with Reroute; what comes back from there
	// is led on by a Jump.
	Fails   Failure `json:",omitempty"`
	Instead *Place  `json:",omitempty"`
}

// Place is a path and index.
type Place struct {
	Path  uint32
	Index uint8
}

// Failure is what becomes of packets for a dead node.
type Failure string

// What becomes of them.
const (
	Drop    Failure = "drop" // counted as dead
	Bypass  Failure = "bypass"
	Reroute Failure = "reroute"
)

// Egress sends the original frame to a node.
type Egress struct {
	Port     string // device that leads to it
	Ethernet string `json:",omitempty"` // of the node: written over the destination; "": stays
}

// Remote is another host of the chain, which sends to this one or gets from it.
type Remote struct {
	Name      string
	Address   netip.Addr // of its plane (Plane.Local there)
	Transport Transport  `json:",omitempty"` // "": UDP
	VNI       uint32     `json:",omitempty"` // GPE
	Source    uint16     `json:",omitempty"` // source port of all packets; 0: one by the flow
	Class     uint16     `json:",omitempty"` // HTB class of the interface (minor); 0: none
	MTU       int        `json:",omitempty"` // of the path to it, IP packet; 0: the interface's
}

// Transport is what carries NSH between hosts.
type Transport string

// Transports and the bytes that they add over IPv4, header of MD type 2 included.
const (
	UDP Transport = "udp" // Ethernet, IP, UDP, NSH: 50
	GPE Transport = "gpe" // the same with VXLAN-GPE in between: 58
)

// Function is something that packets pass.
type Function struct {
	Name string
	Kind Kind
	// Firewall: the first rule that matches decides, then Deny.
	Rules []FirewallRule `json:",omitempty"`
	Deny  bool           `json:",omitempty"` // what no rule matches
	// Reclassifier: what a rule matches goes on at its place, all else on its path; what
	// comes reverse stays on its path.
	Moves []Move `json:",omitempty"`
	// NAT: sources of packets that pass forward become one of these addresses;
	// what comes reverse is translated back, if it answers something.
	Prefix netip.Prefix // IPv4
	Ports  Ports        // zero: 1024 to 65535
	// Balancer: packets forward to Service go to one of Backends, by the flow, and what
	// these answer to such flows comes from Service. Port 0: any, and echoes, and no Target.
	Service  netip.AddrPort
	Target   uint16    `json:",omitempty"` // port of backends, in the place of that of Service; 0: the same
	Backends []Backend `json:",omitempty"`
	// NAT, Balancer, shared Node: flows that are remembered at once; 0: 16384. The
	// one longest without a packet gives way.
	Flows uint32 `json:",omitempty"`
	// Limit: bit per second of frames, and bytes at once; Burst 0: 10 ms, 64 kB at least.
	Rate  uint64 `json:",omitempty"`
	Burst uint32 `json:",omitempty"`
	// Shape, of packets that go on to other hosts: the most of them with the bytes that
	// are put in front of each, which small ones come to first.
	Outer    uint64 `json:",omitempty"` // bit per second
	Overhead uint16 `json:",omitempty"`
	// Mirror: device in the fabric by which a copy of each frame leaves, or enters as
	// if the node there had sent it.
	To     string `json:",omitempty"`
	Enters bool   `json:",omitempty"`
	// Node, Aware: devices that lead to the node's two interfaces; what an Aware one gets
	// by one may come back by either. Ethernet addresses are written over the destination; "": it stays.
	In, Out string `json:",omitempty"`
	// Patience, of a Node that is watched: how long packets may go in and none come back
	// until it is dead; 0: DefaultPatience.
	Patience                time.Duration `json:",omitempty"`
	EthernetIn, EthernetOut string        `json:",omitempty"`
}

// Kind is what a function does.
type Kind string

// Kinds of functions. All but Node and Aware are programs of this room.
const (
	None         Kind = "none" // nothing: steering alone
	Firewall     Kind = "firewall"
	NAT          Kind = "nat"
	Balancer     Kind = "balancer"
	Limit        Kind = "limit" // drops what is above the rate
	Shape        Kind = "shape" // has it wait, and drops what the queue has no room for; the first hop of its paths
	Mirror       Kind = "mirror"
	Reclassifier Kind = "reclassifier"
	Node         Kind = "node"  // a program between two interfaces that knows no NSH: headers are off before and on after
	Aware        Kind = "aware" // one that gets and returns Ethernet frames of type 0x894f
)

// FirewallRule denies or allows.
type FirewallRule struct {
	Match Match
	Deny  bool
}

// Move leads what matches to another path of the plane.
type Move struct {
	Match Match
	To    Place // zero: it stays
}

// Backend is one node behind a balancer. One that is down gets no new flow, and
// no packet of an old one. With a Path the packet goes on there, at Index: each
// backend then has an egress of its own.
type Backend struct {
	Address  netip.Addr
	Ethernet string
	Path     uint32 `json:",omitempty"`
	Index    uint8  `json:",omitempty"`
	Down     bool   `json:",omitempty"`
}

// Bounds.
const (
	MaxPath     = 1<<24 - 1
	MaxMetadata = 64
	typeOne     = 16 // bytes of metadata of type 1
	MaxRules    = 64 // of a classifier or firewall
	MaxBackends = 64
	MaxFlows    = 1 << 20 // of a function: 200 MB

	DefaultPatience = 150 * time.Millisecond
)

// Counts is what one hop did since its row was made.
type Counts struct {
	Path           uint32
	Index          uint8
	Packets, Bytes uint64            // that met the row; large packets count as their segments
	Returned       uint64            // packets that came back from a Node or Aware function, or the queue of a Shape, or that a Reclassifier moved
	Drops          map[string]uint64 // by cause, those above zero
	// Timed are packets whose time at a function was taken, one in 61; Spent is what
	// they took, in ns: until the next hop, of a node until they came back.
	Timed, Spent uint64
}

// Report is what a plane counted.
type Report struct {
	Hops []Counts // in the plane's order
	Dead []string // watched nodes that return nothing, sorted
	// Answers are probes, and copies by which dead nodes are tried, that came back, by
	// watched node.
	Answers map[string]uint32
	Drops   map[string]uint64 // by cause, of packets that met no hop
}
