package plan

import (
	"cmp"
	"fmt"
	"slices"

	"sublet/vnet"
)

// SwitchPort is what a switch does with the frames of one port. The device
// itself is a VxLink's. The type of the switch picks the part.
type SwitchPort struct {
	Lease     vnet.LeaseID    `json:"lease"`
	Switch    string          `json:"switch"`
	Type      vnet.SwitchKind `json:"kind"`
	Interface string          `json:"interface"`
	To        []string        `json:"to,omitempty"` // interfaces it may send to; none: all
	LearningPort
	Engine *EnginePort `json:"engine,omitempty"` // of type vxswitch, else nil
}

// LearningPort is what a port of type kernel learns and takes.
type LearningPort struct {
	MACs      int  `json:"macs,omitempty"`          // most addresses learned
	Broadcast int  `json:"broadcast_pps,omitempty"` // frames a second
	Unknown   int  `json:"unknown_pps,omitempty"`   // frames a second to unknown stations
	Blocked   bool `json:"blocked,omitempty"`
}

// EnginePort is what a port of type vxswitch has. In and Out are in bit/s.
type EnginePort struct {
	In        vnet.Rate  `json:"in_bps,omitempty"`  // capacity of the input; 0: all that comes
	Out       vnet.Rate  `json:"out_bps,omitempty"` // of the output; 0: all that the device takes
	Scheduler string     `json:"scheduler"`         // of the output, among inputs
	Quantum   vnet.Bytes `json:"quantum_bytes,omitempty"`
	Priority  int        `json:"priority,omitempty"`
}

// Kind is that of the switch's type.
func (p SwitchPort) Kind() Kind { return switchTypes[p.Type].port }

// Key is namespace and interface.
func (p SwitchPort) Key() string {
	return SwitchNamespace(p.Lease, p.Switch, p.Type) + "/" + p.Interface
}

// LeaseID is the lease that it is of.
func (p SwitchPort) LeaseID() vnet.LeaseID { return p.Lease }

// Meet is the port with the smaller capacities of both; 0 is no limit.
func (p SwitchPort) Meet(other Item) Item {
	o := other.(SwitchPort)
	if p.Engine == nil || o.Engine == nil {
		return p
	}
	e := *p.Engine
	e.In, e.Out = lesser(e.In, o.Engine.In), lesser(e.Out, o.Engine.Out)
	p.Engine = &e
	return p
}

func (p SwitchPort) String() string {
	s := p.Key() + " "
	if p.Engine != nil {
		s += p.Engine.String()
	} else {
		s += fmt.Sprintf("macs %d broadcast %d/s unknown %d/s", p.MACs, p.Broadcast, p.Unknown)
	}
	if len(p.To) > 0 {
		s += fmt.Sprintf(" to %v", p.To)
	}
	if p.Blocked {
		s += " blocked"
	}
	return s
}

func (e EnginePort) String() string {
	s := fmt.Sprintf("in %s out %s %s", orNone(e.In), orNone(e.Out), e.Scheduler)
	if e.Quantum > 0 {
		s += fmt.Sprintf(" quantum %s", e.Quantum)
	}
	if e.Priority > 0 {
		s += fmt.Sprintf(" priority %d", e.Priority)
	}
	return s
}

// switchPorts are the ports of one switch, by link. Ports of type vxswitch that
// carry nothing, because they are blocked or all of their targets are gone in
// this stage, are left out.
func (n *network) switchPorts(s vnet.VirtualSwitch) (list []SwitchPort) {
	if switchTypes[cmp.Or(s.Kind, vnet.SwitchKernel)].port == "" {
		return nil
	}
	for _, l := range n.top.Links {
		if !slices.Contains(l.Ends[:], s.Name) {
			continue
		}
		item := n.switchPort(s, l)
		idle := n.loops[l.Name] || len(s.Ports[l.Name].To) > 0 && len(item.To) == 0
		if s.Kind != vnet.SwitchEngine {
			item.LearningPort = n.learningPort(s, l)
			item.Blocked = idle
		} else if item.Engine = n.enginePort(s, l); idle {
			continue
		}
		list = append(list, item)
	}
	return list
}

// switchPort is what ports of all types have.
func (n *network) switchPort(s vnet.VirtualSwitch, l vnet.VirtualLink) SwitchPort {
	item := SwitchPort{
		Lease: n.lease.ID(), Switch: s.Name, Type: cmp.Or(s.Kind, vnet.SwitchKernel),
		Interface: n.device[linkEnd{l.Name, endAt(l, s.Name)}],
	}
	for _, to := range s.Ports[l.Name].To {
		if device, ok := n.interfaceOf(to, s.Name); ok {
			item.To = append(item.To, device)
		}
	}
	slices.Sort(item.To)
	return item
}

func (n *network) learningPort(s vnet.VirtualSwitch, l vnet.VirtualLink) LearningPort {
	p, macs := s.Ports[l.Name], vnet.DefaultMACs
	if n.segment[far(l, s.Name)] != nil {
		macs = vnet.MaxMACs // all that another switch has learned
	}
	return LearningPort{
		MACs: cmp.Or(p.MACs, macs), Broadcast: cmp.Or(p.Broadcast, vnet.DefaultFlood), Unknown: cmp.Or(p.Unknown, vnet.DefaultFlood),
	}
}

func (n *network) enginePort(s vnet.VirtualSwitch, l vnet.VirtualLink) *EnginePort {
	p, end, rates := s.Ports[l.Name], endAt(l, s.Name), n.rates(l)
	return &EnginePort{
		In: below(p.In, rates[1-end]), Out: within(p.Out, rates[end]), // Forward is from end 0
		Scheduler: cmp.Or(p.Scheduler, s.Scheduler, defaultScheduler), Quantum: p.Quantum, Priority: p.Priority,
	}
}

// below is an input's capacity: what is stated, unless the link's shaper lets
// no more through anyway.
func below(stated, link vnet.Rate) vnet.Rate {
	if link != 0 && stated >= link {
		return 0
	}
	return stated
}

// within is an output's capacity: what is stated, at most what its link has,
// so that frames wait in the switch's buffers and not before the link's shaper.
func within(stated, link vnet.Rate) vnet.Rate { return enforced(lesser(stated, link)) }
