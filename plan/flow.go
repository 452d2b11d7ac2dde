package plan

import (
	"cmp"
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// Flow is one direction of a tunnel at an OpenFlow switch of the substrate: an entry
// that knows the tunnel's packets by their outer addresses and UDP source port, and a
// meter that they pass. Told to the switch by agent/forwarding.
type Flow struct {
	Lease   vnet.LeaseID `json:"lease"`
	Link    string       `json:"link"`
	VNI     vnet.VNI     `json:"vni"`
	Reverse bool         `json:"reverse,omitempty"` // from the link's second end
	In      uint32       `json:"in"`                // ports of the switch
	Out     uint32       `json:"out"`
	From    netip.Addr   `json:"from"` // outer addresses
	To      netip.Addr   `json:"to"`
	Source  uint16       `json:"source"` // UDP source port
	// Transport is that of a chain's packets; "": they are the tunnel's own.
	Transport vnet.Transport `json:"transport,omitempty"`
	// Of outer frames: what is guaranteed, and what the meter lets through; 0: it
	// shares the meter of what belongs to no lease.
	Min  vnet.Rate `json:"min_bps"`
	Rate vnet.Rate `json:"rate_bps"`
	// Queue is the rate of the port's queues of which it takes one, as the substrate
	// states it; 0: it has a meter.
	Queue vnet.Rate `json:"queue_bps,omitempty"`
}

// Source ports by which switches tell tunnels between two hosts apart. They are
// root's, and none of those that tunnels choose by their flows.
const (
	firstSource = 832
	// Sources is how many tunnels between two addresses switches can tell apart.
	Sources = 192
)

// SourceOf is the UDP source port of a tunnel that passes an OpenFlow switch.
func SourceOf(vni vnet.VNI) uint16 { return firstSource + uint16(vni%Sources) }

// Kind of the section.
func (Flow) Kind() Kind { return KindFlow }

// Key is the fabric, the number and the direction.
func (f Flow) Key() string { return fmt.Sprintf("%s/%d%s", Fabric(f.Lease), f.VNI, f.sign()) }

func (f Flow) sign() string {
	if f.Reverse {
		return "<"
	}
	return ">"
}

// LeaseID is the lease that it is of.
func (f Flow) LeaseID() vnet.LeaseID { return f.Lease }

// Meet has the smaller rates.
func (f Flow) Meet(other Item) Item {
	o := other.(Flow)
	f.Min, f.Rate = min(f.Min, o.Min), min(f.Rate, o.Rate)
	if f.Queue == 0 || o.Queue != 0 && o.Queue < f.Queue {
		f.Queue = o.Queue
	}
	return f
}

func (f Flow) String() string {
	nsh := ""
	if f.Transport != "" {
		nsh = " nsh over " + string(f.Transport)
	}
	queue := ""
	if f.Queue != 0 {
		queue = " in a queue of " + f.Queue.String()
	}
	return fmt.Sprintf("%s %s: port %d->%d %s->%s udp %d%s min %s rate %s%s", f.Key(), f.Link, f.In, f.Out, f.From, f.To, f.Source, nsh, f.Min, f.Rate, queue)
}

// TellsApart says whether a tunnel passes a switch that must know its packets.
func TellsApart(sub vnet.Substrate, hops []vnet.Hop) bool {
	for _, h := range hops {
		if _, speaks := sub.OpenFlowOf(h.To()); speaks {
			return true
		}
	}
	return false
}

// flows adds a tunnel's entries to the OpenFlow switches on its way. Best effort goes
// with what belongs to no lease, but on the way of the lease where entries choose it.
func (c *Compiler) flows(p pathPlan, h tunnelHop) {
	if len(c.sub.OpenFlow) == 0 {
		return
	}
	chain, chained := p.net.carried(p.link)
	if chain.Compat != 0 {
		return // by their port those of all chains are alike
	}
	var transport vnet.Transport
	if chained {
		transport = cmp.Or(chain.Transport, vnet.TransportUDP)
	}
	for i, hop := range h.hops[:len(h.hops)-1] {
		o, speaks := c.sub.OpenFlowOf(hop.To())
		if !speaks {
			continue
		}
		c.sources[h.vni] = true
		ports := [2]uint32{o.Ports[hop.Link.Name], o.Ports[h.hops[i+1].Link.Name]}
		near, far := portOf(h.out, h.from).Address, portOf(h.in, h.to).Address
		for _, dir := range vnet.Directions {
			class := p.class(h, dir)
			if class.BestEffort && !c.sub.Steered() {
				continue
			}
			if class.BestEffort {
				class.Guaranteed, class.Ceil = 0, 0
			}
			leaves := [2]string{h.hops[i+1].Link.Name, hop.Link.Name}[dir]
			f := Flow{Lease: p.net.lease.ID(), Link: p.link.Name, VNI: h.vni, In: ports[0], Out: ports[1], From: near, To: far, Source: SourceOf(h.vni), Transport: transport, Min: class.Guaranteed, Rate: class.Ceil}
			if ask := p.link.Bandwidth[dir]; !ask.BestEffort() {
				f.Queue = o.QueueRate(leaves, p.share.Of(ask.Max))
			}
			if dir == vnet.Reverse {
				f.Reverse, f.In, f.Out, f.From, f.To = true, f.Out, f.In, far, near
			}
			c.host(vnet.HostID(o.Name)).Add(f)
		}
	}
}
