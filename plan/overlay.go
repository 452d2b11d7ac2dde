package plan

import (
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// Overlay is one entry of a host's overlay forwarding table: a tunnel to
// another host, with the receiving end of the same tunnel here. Frames of the
// lease come to it by the lease's Trunk with VNI as their mark, and leave it
// there likewise. Built by datapath/overlay.
type Overlay struct {
	Lease      vnet.LeaseID       `json:"lease"`
	Link       string             `json:"link"`
	VNI        vnet.VNI           `json:"vni"` // one tunnel end on a host
	Protocol   vnet.Encapsulation `json:"protocol,omitempty"`
	Interface  string             `json:"interface"` // physical
	Local      netip.Addr         `json:"local"`
	Remote     netip.Addr         `json:"remote"`
	MTU        int                `json:"mtu"` // of the inner packet; less if the path to Remote carries less
	BestEffort bool               `json:"best_effort,omitempty"`
	// Source is the UDP source port of its packets; 0: chosen by the flow inside.
	Source uint16 `json:"source,omitempty"`
	// Ethernet addresses, to and from, in front of what comes by a protocol
	// that carries IP packets: "02:00:00:00:00:01 02:00:00:00:00:02".
	Ethernet string `json:"ethernet,omitempty"`
}

// Kind of the section.
func (Overlay) Kind() Kind { return KindOverlay }

// Key is the fabric and the number.
func (o Overlay) Key() string { return fmt.Sprintf("%s/%d", Fabric(o.Lease), o.VNI) }

// LeaseID is the lease that it is of.
func (o Overlay) LeaseID() vnet.LeaseID { return o.Lease }

// Meet is the entry itself: there is no amount in it.
func (o Overlay) Meet(Item) Item { return o }

func (o Overlay) String() string {
	s := fmt.Sprintf("%s %s: %s %s->%s mtu %d", o.Key(), o.Link, o.Interface, o.Local, o.Remote, o.MTU)
	if o.Protocol != "" {
		s += " " + string(o.Protocol)
	}
	if o.BestEffort {
		s += " best-effort"
	}
	if o.Source != 0 {
		s += fmt.Sprintf(" udp %d", o.Source)
	}
	return s
}
