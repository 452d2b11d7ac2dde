package rate

import (
	"strings"

	"sublet/vnet"
)

// Element is one direction of a substrate link, or of a host's own carrying
// between two nodes it hosts. Its Dir is the substrate link's direction (Ends[0]
// to Ends[1] is Forward); inside a host it is the virtual link's direction.
type Element struct {
	Link string // a substrate link's name inside a host, "host:" and its name; of a way out, "nat:" and its name; of an exit, "exit:" and its name; of a place to join, "join:" and its name
	Dir  vnet.Direction
}

// hostPrefix cannot begin a link's name: names hold no ':' (vnet.CheckName).
const hostPrefix = "host:"

// Inside is the element that carries a virtual link whose ends share a host.
func Inside(host vnet.HostID, dir vnet.Direction) Element {
	return Element{hostPrefix + string(host), dir}
}

// NATPrefix begins the Link of an element of a way out.
const NATPrefix = "nat:"

// Outside is the element of a way out: outwards (Forward) or inwards.
func Outside(nat string, dir vnet.Direction) Element { return Element{NATPrefix + nat, dir} }

// ExitPrefix begins the Link of an element of an exit.
const ExitPrefix = "exit:"

// Exit is the element of an exit: outwards (Forward) or inwards.
func Exit(name string, dir vnet.Direction) Element { return Element{ExitPrefix + name, dir} }

// JoinPrefix begins the Link of an element of a place to join.
const JoinPrefix = "join:"

// Join is the element of a place to join: outwards (Forward) or inwards.
func Join(name string, dir vnet.Direction) Element { return Element{JoinPrefix + name, dir} }

// DevicePrefix begins the key of a device, which carries no links of the substrate.
const DevicePrefix = "device:"

// Host names the host whose inside the element is.
func (e Element) Host() (vnet.HostID, bool) {
	name, ok := strings.CutPrefix(e.Link, hostPrefix)
	return vnet.HostID(name), ok
}

// String gives the name and '>' for Forward, '<' for Reverse.
func (e Element) String() string { return e.Link + string("><"[e.Dir]) }

// Capacities lists what leases may take of each element of a substrate.
func Capacities(sub vnet.Substrate) map[Element]vnet.Rate {
	capacities := make(map[Element]vnet.Rate, 2*(len(sub.Links)+len(sub.Hosts)))
	for _, dir := range vnet.Directions {
		for _, l := range sub.Links {
			capacities[Element{l.Name, dir}] = l.Leasable()
		}
		for _, h := range sub.Hosts {
			capacities[Inside(h.Name, dir)] = h.Carries()
		}
		for _, n := range sub.NAT {
			capacities[Outside(n.Name, dir)] = n.Capacity
		}
		for _, x := range sub.Exits {
			capacities[Exit(x.Name, dir)] = x.Capacity
		}
		for _, j := range sub.Joins {
			capacities[Join(j.Name, dir)] = j.Capacity
		}
	}
	return capacities
}

// Demand is what one direction of a virtual link asks of the elements it runs over.
type Demand struct {
	Bandwidth vnet.Bandwidth
	Elements  []Element
}
