package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// OpenFlow is what a switch of type openflow is given: a process of its own, and
// walls around what its controllers put into it. Its ports are the devices of
// its namespace; its controllers it reaches from the namespace of its
// vnet.ControlNode.
type OpenFlow struct {
	CPU         vnet.CPU   `json:"cpu_milli,omitempty"` // of the process; 0: no limit
	Memory      vnet.Bytes `json:"memory_bytes"`        // of the process, in whole pages
	Controllers []string   `json:"controllers"`         // "tcp:ADDRESS:PORT", or "ptcp::PORT" to listen; "tls" and "ptls" over TLS
	Standalone  bool       `json:"standalone,omitempty"`
	Kernel      bool       `json:"kernel,omitempty"`     // programs in the kernel forward what the process decided about
	MissEntry   bool       `json:"miss_entry,omitempty"` // what meets no entry goes to controllers, at the start
	Tables      int        `json:"tables"`
	Entries     int        `json:"entries"`
	Groups      int        `json:"groups"`
	Meters      int        `json:"meters"`
	PacketIns   int        `json:"packet_in_pps"`
	DatapathID  uint64     `json:"datapath_id"`

	MeterHold time.Duration `json:"meter_hold_ns,omitempty"` // most that packets wait which a meter would drop

	Auxiliary int `json:"auxiliary,omitempty"` // connections beside the main one to each controller that it connects to

	TLS *vnet.SwitchTLS `json:"tls,omitempty"` // String has nothing of it

	InBand *InBand `json:"in_band,omitempty"` // nil: it has a control link

	Slices []OpenFlowSlice `json:"slices,omitempty"` // none: Controllers have the whole switch

	Lost string `json:"-"` // of a switch that was started again: why what it had been told is gone
	Told string `json:"-"` // of one that goes on: what its process said
}

// OpenFlowSlice is a part of a switch with controllers of its own.
type OpenFlowSlice struct {
	Name        string   `json:"name"`
	Controllers []string `json:"controller"` // as OpenFlow.Controllers
	Default     bool     `json:"default,omitempty"`
	Ports       []int    `json:"ports,omitempty"`
	Match       string   `json:"match,omitempty"` // of its packets, as ovs-ofctl writes it
	Tables      int      `json:"tables"`
	Entries     int      `json:"entries"`
	Groups      int      `json:"groups"`
	Meters      int      `json:"meters"`
}

// InBand is control by the ports of data: the switch's port vnet.LocalInterface leads
// to its vnet.ControlNode.
type InBand struct {
	Gateways []netip.Addr `json:"gateways,omitempty"` // routers of its segment
	Ports    []int        `json:"ports"`              // by which control may pass
}

// ControlNamespace names the namespace from which the switch of an item reaches
// its controllers.
func (s Switch) ControlNamespace() string { return Namespace(s.Lease, vnet.ControlNode(s.Switch)) }

// meetOpenFlow is the switch with the smaller amounts of both.
func (s Switch) meetOpenFlow(o OpenFlow) Switch {
	m := *s.OpenFlow
	m.CPU, m.Memory = lesser(m.CPU, o.CPU), min(m.Memory, o.Memory)
	m.Tables, m.Entries, m.Groups = min(m.Tables, o.Tables), min(m.Entries, o.Entries), min(m.Groups, o.Groups)
	m.Meters, m.PacketIns = min(m.Meters, o.Meters), min(m.PacketIns, o.PacketIns)
	s.OpenFlow = &m
	return s
}

// Words are what requests, and flags of its process, have for its alternatives.
func (o OpenFlow) Words() (datapath, fail, miss string) {
	datapath, fail, miss = vnet.DatapathProcess, "secure", "drop"
	if o.Kernel {
		datapath = vnet.DatapathKernel
	}
	if o.Standalone {
		fail = "standalone"
	}
	if o.MissEntry {
		miss = "controller"
	}
	return datapath, fail, miss
}

func (o OpenFlow) String() string {
	datapath, fail, miss := o.Words()
	band := ""
	if o.InBand != nil {
		band = fmt.Sprintf(" in band by ports %v gateways %v", o.InBand.Ports, o.InBand.Gateways)
	}
	hold := ""
	if o.MeterHold > 0 {
		hold = " meter-hold " + vnet.FormatDuration(o.MeterHold)
	}
	beside := ""
	if o.Auxiliary > 0 {
		beside = fmt.Sprintf(" auxiliary %d", o.Auxiliary)
	}
	sliced := ""
	for _, x := range o.Slices {
		sliced += " " + x.String()
	}
	return fmt.Sprintf("dpid %016x datapath %s controllers %s fail %s miss %s tables %d entries %d groups %d meters %d packet-ins %d/s cpu %s memory %s%s%s%s%s",
		o.DatapathID, datapath, strings.Join(o.Controllers, ","), fail, miss, o.Tables, o.Entries, o.Groups, o.Meters, o.PacketIns, orNone(o.CPU), o.Memory, hold, beside, band, sliced)
}

// openFlow is what a switch of that kind is given. Controllers that are named get
// their nodes' addresses.
func (n *network) openFlow(s vnet.VirtualSwitch) *OpenFlow {
	o := s.OpenFlow()
	item := &OpenFlow{
		CPU: s.CPU, Memory: wholePages(s.Memory()), Standalone: o.Fail == "standalone", MissEntry: o.Miss == "controller", Kernel: o.Datapath == vnet.DatapathKernel,
		Tables: o.Tables, Entries: o.Entries, Groups: o.Groups, Meters: o.Meters, PacketIns: o.PacketIns, DatapathID: o.DatapathID, MeterHold: o.MeterHold,
		Auxiliary: o.Auxiliary, TLS: o.TLS, InBand: n.inBand(s.Name),
	}
	item.Controllers = n.controllers(s.Name, s.Controllers, item.InBand != nil)
	for _, x := range s.FlowSlices {
		item.Slices = append(item.Slices, n.flowSlice(s.Name, x.Sized(), item.InBand != nil))
	}
	return item
}

// controllers are those of a switch, or slice, as its process is told of them.
func (n *network) controllers(vswitch string, stated []string, inBand bool) (list []string) {
	for _, text := range stated {
		transport := "tcp"
		if vnet.SecureController(text) {
			transport = "tls"
		}
		if at := n.controller(vswitch, text, inBand); at.Addr().IsValid() {
			list = append(list, transport+":"+at.String())
		} else {
			list = append(list, fmt.Sprintf("p%s::%d", transport, at.Port()))
		}
	}
	return list
}

// controller is where a controller of a switch is; without an address: the switch
// listens there.
func (n *network) controller(vswitch, text string, inBand bool) netip.AddrPort {
	host, port, _ := vnet.ControllerTarget(text)
	at, err := netip.ParseAddr(host)
	if err != nil && host != "" {
		at = n.controllerAt(vswitch, host, inBand)
	}
	return netip.AddrPortFrom(at, port)
}

// controllerAt is a controller's address: of a switch in band that of its segment, if
// the controller is a station there with one of its own.
func (n *network) controllerAt(vswitch, host string, inBand bool) netip.Addr {
	if !inBand {
		return n.address(host)
	}
	for _, st := range n.segment[vswitch].stations {
		if st.Node == host {
			return n.endAddress(linkEnd{st.Link.Name, st.End}, host)
		}
	}
	return n.address(host)
}

// mostGateways of a switch in band; further ones lead to no controller.
const mostGateways = 8

// inBand is how control reaches a switch without a control link; nil: it has one.
// Stations that are no controllers get none of it.
func (n *network) inBand(vswitch string) *InBand {
	if n.whole.OutOfBand(vswitch) {
		return nil
	}
	b := &InBand{Ports: []int{}}
	for _, l := range n.whole.Links {
		for end, name := range l.Ends {
			var port int
			if _, err := fmt.Sscanf(n.device[linkEnd{l.Name, end}], "eth%d", &port); name == vswitch && err == nil && n.leadsControl(l.Ends[1-end]) {
				b.Ports = append(b.Ports, port+1)
			}
		}
	}
	for _, st := range n.segment[vswitch].stations {
		if _, router := n.routers[st.Node]; router {
			b.Gateways = append(b.Gateways, n.endAddress(linkEnd{st.Link.Name, st.End}, st.Node))
		}
	}
	slices.SortFunc(b.Gateways, netip.Addr.Compare)
	b.Gateways = slices.Compact(b.Gateways)
	b.Gateways = b.Gateways[:min(len(b.Gateways), mostGateways)]
	slices.Sort(b.Ports)
	return b
}

// leadsControl says whether control passes what a link of a switch in band leads to:
// other switches, routers, and nodes that are controllers.
func (n *network) leadsControl(name string) bool {
	if _, is := n.whole.Switch(name); is {
		return true
	}
	if slices.ContainsFunc(n.whole.Routers, func(r vnet.VirtualNode) bool { return r.Name == name }) {
		return true
	}
	for _, s := range n.whole.Switches {
		for _, text := range s.AllControllers() {
			host, _, _ := vnet.ControllerTarget(text)
			if at, err := netip.ParseAddr(host); host == name || err == nil && n.byAddress[at] == name {
				return true
			}
		}
	}
	return false
}
