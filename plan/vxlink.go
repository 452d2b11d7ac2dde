package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"sublet/vnet"
)

// VxLink is one virtual link on one host: a wire between two ends, in the
// lease's fabric namespace. A packet that enters by one end leaves by the
// other, shaped by the end it leaves by. Port to port joins two nodes of this
// host, port to tunnel is the end of a longer path, tunnel to tunnel relays.
// Built by datapath/vxlink.
type VxLink struct {
	Lease vnet.LeaseID `json:"lease"`
	Link  string       `json:"link"`
	Index int          `json:"index"` // of the link in the lease; names its devices
	// A link over several paths is one VxLink for each, numbered by Path, with
	// Units of vnet.ShareUnits of its flows; of a link with one path both are 0.
	Path  int `json:"path,omitempty"`
	Units int `json:"units,omitempty"`
	// Stall is how long the end of a link with several paths waits for a packet by
	// another of them, so that order is kept; 0: each flow goes by one path.
	Stall time.Duration `json:"stall_ns,omitempty"`
	Ends  [2]End        `json:"ends"`
	// Standby is a link as it was or will be, beside what it is while a node moves to
	// another host, or it to another path: what comes by it arrives, and what its
	// other end, a Join, sends goes by the other one.
	Standby bool `json:"standby,omitempty"`
	// Control says which frames have a class of their own in the link's rate; nil: none.
	Control *Control `json:"control,omitempty"`
}

// End of a VxLink: a Port, a Tunnel, or a Join, only one of them.
type End struct {
	Port   *Port   `json:"port,omitempty"`
	Tunnel *Tunnel `json:"tunnel,omitempty"`
	// Join is the port of the link's path 0, which gives other paths their
	// part of its flows and takes their frames.
	Join *Port `json:"join,omitempty"`
	// Rate is enforced on tenants' frames that leave by this end; 0: not
	// here (they came shaped, or they are best effort).
	Rate vnet.Rate `json:"rate_bps,omitempty"`
	// Impair is what is done, before they are shaped, to frames that enter by
	// this end: of a Port, and the same of what joins it.
	Impair vnet.Impairment `json:"impair,omitzero"`
	// Down is a Port without carrier, by which no frame enters or leaves, and
	// the same of what joins it.
	Down bool `json:"down,omitempty"`
	// Place tells what is at one end of a link before and after a move apart, where a
	// host has both.
	Place int `json:"place,omitempty"`
	// Lost is an end that was read back without the device of its port.
	Lost bool `json:"-"`
	// Known says of a lost one that what its tenant made of it is known, and made again.
	Known bool `json:"-"`
}

// Places is how many there are.
const Places = 3

// Port is a virtual Ethernet pair: the tenant's end in its node's namespace,
// ours in the fabric.
type Port struct {
	Namespace string     `json:"namespace"`
	Interface string     `json:"interface"` // the tenant's end: eth0, eth1, ...
	MTU       int        `json:"mtu"`
	Address   netip.Addr `json:"address,omitzero"` // of the node; a switch's port has none
	Peer      netip.Addr `json:"peer,omitzero"`    // of the node at the far end of the virtual link
	// Subnet is what a switch at the far end leads to, instead of Peer; only
	// Address itself when its stations share none.
	Subnet netip.Prefix `json:"subnet,omitzero"`
	Metric int          `json:"metric,omitempty"` // of the route to Peer or Subnet: parallel links differ
	// More are the port's other addresses, with their subnets.
	More []netip.Prefix `json:"more,omitempty"`
	// Queues of an OpenFlow switch's port, and its rate; nil: neither.
	Queues *Queues `json:"queues,omitempty"`
	// Inside is what was read back of the tenant's doing there.
	Inside Inside `json:"-"`
}

// Reaches is the prefix that the port's address makes reachable.
func (p Port) Reaches() netip.Prefix {
	if p.Subnet.IsValid() || !p.Peer.IsValid() {
		return p.Subnet
	}
	return single(p.Peer)
}

// Tunnel is a point-to-point tunnel over one tunnel hop of a path, and the
// class of the physical interface it leaves by. Class rates count outer frames.
type Tunnel struct {
	VNI       vnet.VNI           `json:"vni"`
	Protocol  vnet.Encapsulation `json:"protocol,omitempty"`
	Interface string             `json:"interface"` // physical
	Local     netip.Addr         `json:"local"`
	Remote    netip.Addr         `json:"remote"`
	MTU       int                `json:"mtu"` // of the inner packet
	// List is the bytes that a relay list adds to each of its packets, behind
	// the class, which does not count them.
	List  int   `json:"list,omitempty"`
	Class Class `json:"class"`
}

// Class of the physical egress, of HTB: what it is guaranteed and what it may take.
type Class struct {
	Guaranteed vnet.Rate `json:"rate_bps"`
	Ceil       vnet.Rate `json:"ceil_bps"`
	BestEffort bool      `json:"best_effort,omitempty"` // strictly below every leased class
}

// Device names the fabric-side device of end i (0 or 1): two letters for each place.
func (l VxLink) Device(i int) string {
	return fmt.Sprintf("l%d%c", l.Index, 'a'+i+2*l.Ends[i].Place)
}

// Trunk names the device by which all tunnels of a lease leave its fabric, in
// the host's namespace: 65 bits of a digest, since a device's name has 15
// characters. Its other end, in the fabric, is TrunkInside.
func Trunk(lease vnet.LeaseID) string {
	sum := sha256.Sum256([]byte(Fabric(lease)))
	return trunkPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:trunkDigits])
}

const (
	trunkPrefix = "sl"
	trunkDigits = 13
)

// IsTrunk says whether a device may be a Trunk, by its name.
func IsTrunk(device string) bool {
	return strings.HasPrefix(device, trunkPrefix) && len(device) == len(trunkPrefix)+trunkDigits
}

// TrunkInside is the fabric's end of every trunk.
const TrunkInside = "trunk"

// Kind of the section.
func (VxLink) Kind() Kind { return KindVxLink }

// Key is fabric and index: a lease's links keep their index for life. Paths
// beside the first have their number, too, and what stands by a tilde.
func (l VxLink) Key() string {
	key := fmt.Sprintf("%s#%04d", Fabric(l.Lease), l.Index)
	if l.Path > 0 {
		key += fmt.Sprintf("+%d", l.Path)
	}
	if l.Standby {
		key += "~"
	}
	return key
}

// LeaseID is the lease that it is of.
func (l VxLink) LeaseID() vnet.LeaseID { return l.Lease }

// Meet keeps the smaller rates. Queues share what one link has, and take nothing of
// others: they stay. A port is in ChainHome if either has it there, since the node is only
// in one of them.
func (l VxLink) Meet(other Item) Item {
	o := other.(VxLink)
	for i := range l.Ends {
		end, theirs := &l.Ends[i], o.Ends[i]
		end.Rate = lesser(end.Rate, theirs.Rate)
		if end.Tunnel != nil && theirs.Tunnel != nil {
			tunnel := *end.Tunnel
			tunnel.Class.Guaranteed = min(tunnel.Class.Guaranteed, theirs.Tunnel.Class.Guaranteed)
			tunnel.Class.Ceil = min(tunnel.Class.Ceil, theirs.Tunnel.Class.Ceil)
			end.Tunnel = &tunnel
		}
		if end.Port != nil && theirs.Port != nil && theirs.Port.atHome() {
			end.Port = theirs.Port
		}
	}
	return l
}

func (l VxLink) String() string {
	share := ""
	if l.Units > 0 {
		share = fmt.Sprintf(" %d of %d", l.Units, vnet.ShareUnits)
	}
	if l.Stall > 0 {
		share += fmt.Sprintf(" in order within %s", l.Stall)
	}
	share += l.Control.String()
	return fmt.Sprintf("%s %s%s: %s <-> %s", l.Key(), l.Link, share, l.Ends[0], l.Ends[1])
}

func (e End) String() string {
	text := e.text()
	if e.Place > 0 {
		text += fmt.Sprintf(" place %d", e.Place)
	}
	return text
}

func (e End) text() string {
	if e.Port != nil {
		text := fmt.Sprintf("%s mtu %d rate %s", e.Port, e.Port.MTU, orNone(e.Rate))
		if e.Impair != (vnet.Impairment{}) {
			text += " impair " + e.Impair.String()
		}
		if e.Down {
			text += " down"
		}
		return text
	}
	if e.Join != nil {
		return fmt.Sprintf("joins %s", e.Join)
	}
	if e.Tunnel == nil {
		return "nothing"
	}
	t := e.Tunnel
	list := ""
	if t.Protocol != "" {
		list = " " + string(t.Protocol)
	}
	if t.List > 0 {
		list += fmt.Sprintf(" list %d", t.List)
	}
	return fmt.Sprintf("vni %d %s %s->%s mtu %d%s rate %s class %s", t.VNI, t.Interface, t.Local, t.Remote, t.MTU, list, orNone(e.Rate), t.Class)
}

func (p Port) String() string {
	s := p.Namespace + "/" + p.Interface
	switch {
	case p.Subnet.IsValid():
		s += fmt.Sprintf(" %s subnet %s", p.Address, p.Subnet)
	case p.Address.IsValid():
		s += fmt.Sprintf(" %s peer %s", p.Address, p.Peer)
	}
	for _, more := range p.More {
		s += fmt.Sprintf(" and %s", more)
	}
	return s + p.Queues.String()
}

func (c Class) String() string {
	if c.BestEffort {
		return fmt.Sprintf("best-effort ceil %s", c.Ceil)
	}
	return fmt.Sprintf("rate %s ceil %s", c.Guaranteed, c.Ceil)
}

// Uplink is the shaped egress of one physical interface: leases in one
// class, everything else on the host strictly below them in another. Rates
// count outer frames. Built by datapath/vxlink.
type Uplink struct {
	Interface string    `json:"interface"`
	Capacity  vnet.Rate `json:"capacity_bps"` // all that may leave
	Leases    vnet.Rate `json:"leases_bps"`   // of it, for leases
}

// Kind of the section.
func (Uplink) Kind() Kind { return KindUplink }

// Key is the interface.
func (u Uplink) Key() string { return u.Interface }

// LeaseID is none: all leases share it.
func (Uplink) LeaseID() vnet.LeaseID { return vnet.LeaseID{} }

// Meet is the uplink itself: its rates follow the substrate, not the leases.
func (u Uplink) Meet(Item) Item { return u }

func (u Uplink) String() string {
	return fmt.Sprintf("%s capacity %s leases %s", u.Interface, u.Capacity, u.Leases)
}

// OuterHeaders is the most that tunnels over IPv4 add to a tenant's frame
// (vnet.Encapsulation.Headers): what VXLAN and Geneve do. Wires and uplinks have room
// for as much, whatever the encapsulation of their tunnels.
const OuterHeaders = 50

// MeanFrame is the smallest mean size of tenants' frames for which the
// substrate pays the outer headers; with smaller ones, a tenant's own share
// pays. Two-way TCP with an acknowledgement for every second segment averages
// (2*1464+66)/3 = 998 bytes.
const MeanFrame = 900

// Outer converts a rate of tenants' frames to the rate of outer frames that
// carries it in any tunnel, as queues of hosts count them: without relay lists, which are put
// in once the kernel has taken a packet's length.
func Outer(r vnet.Rate) vnet.Rate { return outer(r, OuterHeaders) }

func outer(r vnet.Rate, headers int) vnet.Rate {
	return (r + r/MeanFrame*vnet.Rate(headers)).WholeBytesUp()
}

// PaidPart is the part of a rate that tenants' frames of a mean size get: they pay what the
// headers in front of them take more than OuterHeaders in front of frames of MeanFrame.
func PaidPart(mean float64, headers int) float64 {
	if mean <= 0 {
		return 1
	}
	return min(1, (1+OuterHeaders/float64(MeanFrame))*mean/(mean+float64(headers)))
}

// WireRate is Outer with the longest relay list that a path of the substrate can
// have: what the wire of a link passes that carries a rate of tenants' frames.
func WireRate(sub vnet.Substrate, r vnet.Rate) vnet.Rate {
	list := 0
	if len(sub.Relays) > 0 {
		list = listBytes(min(len(sub.Switches)-2, vnet.MaxRelays))
	}
	return outer(r, OuterHeaders+list)
}

// listBytes is what a list of so many relays adds to a tunnel's packet: its own
// header and an address for each (docs/multipath.md).
func listBytes(relays int) int {
	if relays <= 0 {
		return 0
	}
	return 4 + 4*relays
}
