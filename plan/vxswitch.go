package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// VxSwitch is a virtual switch on its host's hosting switch, which is one
// process for all tenants: the queues it has, and the namespace of the
// provider's that holds its ports. Built by datapath/vxswitch.
type VxSwitch struct {
	Lease       vnet.LeaseID   `json:"lease"`
	Switch      string         `json:"switch"`
	CPU         vnet.CPU       `json:"cpu_milli,omitempty"` // of the process; 0: no limit
	Ageing      time.Duration  `json:"ageing_ns"`
	Scheduler   string         `json:"scheduler"`
	Buffer      vnet.Bytes     `json:"buffer_bytes"` // of each crosspoint
	Manager     string         `json:"manager"`
	Crosspoints []VxCrosspoint `json:"crosspoints,omitempty"` // those that differ
	Stations    []Station      `json:"stations,omitempty"`    // by address
}

// VxCrosspoint is what lies between two ports, by their interfaces.
type VxCrosspoint struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	Buffer  vnet.Bytes `json:"buffer_bytes"`
	Manager string     `json:"manager"`
}

// VxSwitchPort is a port of a virtual switch. The device itself is a VxLink's.
// Built by datapath/vxswitch.
type VxSwitchPort struct {
	Lease     vnet.LeaseID `json:"lease"`
	Switch    string       `json:"switch"`
	Interface string       `json:"interface"`
	In        vnet.Rate    `json:"in_bps,omitempty"`  // capacity of the input; 0: all that comes
	Out       vnet.Rate    `json:"out_bps,omitempty"` // of the output; 0: all that the device takes
	Scheduler string       `json:"scheduler"`         // of the output, among inputs
	Quantum   vnet.Bytes   `json:"quantum_bytes,omitempty"`
	Priority  int          `json:"priority,omitempty"`
	To        []string     `json:"to,omitempty"` // interfaces it may send to; none: all
}

// EngineNamespace names the namespace of a switch of kind vxswitch.
func EngineNamespace(lease vnet.LeaseID, name string) string {
	return Namespace(lease, name) + ofEngine
}

const ofEngine = ".vxswitch"

// ParseEngineNamespace takes EngineNamespace apart; false: it is none.
func ParseEngineNamespace(key string) (lease vnet.LeaseID, name string, ok bool) {
	return parseNamespace(key, ofEngine)
}

// Kind of the section.
func (VxSwitch) Kind() Kind { return KindVxSwitch }

// Key is the namespace.
func (s VxSwitch) Key() string { return EngineNamespace(s.Lease, s.Switch) }

// LeaseID is the lease that it is of.
func (s VxSwitch) LeaseID() vnet.LeaseID { return s.Lease }

func (s VxSwitch) addTo(h *Host) { h.VxSwitches = append(h.VxSwitches, s) }

// Meet is the switch with the smaller buffers of both: what they take of the
// host's memory is booked.
func (s VxSwitch) Meet(other Item) Item {
	o, ok := other.(VxSwitch)
	if !ok {
		return s
	}
	s.Buffer = min(s.Buffer, o.Buffer)
	s.Crosspoints = slices.Clone(s.Crosspoints)
	for i := range s.Crosspoints {
		x := &s.Crosspoints[i]
		x.Buffer = min(x.Buffer, o.bufferOf(x.From, x.To))
	}
	return s
}

func (s VxSwitch) bufferOf(from, to string) vnet.Bytes {
	for _, x := range s.Crosspoints {
		if x.From == from && x.To == to {
			return x.Buffer
		}
	}
	return s.Buffer
}

func (s VxSwitch) String() string {
	text := fmt.Sprintf("%s ageing %s buffer %s %s %s", s.Key(), vnet.FormatDuration(s.Ageing), s.Buffer, s.Scheduler, s.Manager)
	if s.CPU > 0 {
		text += fmt.Sprintf(" cpu %s", s.CPU)
	}
	for _, x := range s.Crosspoints {
		text += fmt.Sprintf(" %s->%s=%s,%s", x.From, x.To, x.Buffer, x.Manager)
	}
	for _, st := range s.Stations {
		text += " " + st.String()
	}
	return text
}

// Kind of the section.
func (VxSwitchPort) Kind() Kind { return KindVxSwitchPort }

// Key is namespace and interface.
func (p VxSwitchPort) Key() string { return EngineNamespace(p.Lease, p.Switch) + "/" + p.Interface }

// LeaseID is the lease that it is of.
func (p VxSwitchPort) LeaseID() vnet.LeaseID { return p.Lease }

func (p VxSwitchPort) addTo(h *Host) { h.VxSwitchPorts = append(h.VxSwitchPorts, p) }

// Meet is the port with the smaller capacities of both.
func (p VxSwitchPort) Meet(other Item) Item {
	if o, ok := other.(VxSwitchPort); ok {
		p.In, p.Out = meetRate(p.In, o.In), meetRate(p.Out, o.Out)
	}
	return p
}

// meetRate is the smaller of two rates of which 0 is no limit.
func meetRate(a, b vnet.Rate) vnet.Rate {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (p VxSwitchPort) String() string {
	s := fmt.Sprintf("%s in %s out %s %s", p.Key(), rateOrDash(p.In), rateOrDash(p.Out), p.Scheduler)
	if p.Quantum > 0 {
		s += fmt.Sprintf(" quantum %s", p.Quantum)
	}
	if p.Priority > 0 {
		s += fmt.Sprintf(" priority %d", p.Priority)
	}
	if len(p.To) > 0 {
		s += fmt.Sprintf(" to %v", p.To)
	}
	return s
}

func rateOrDash(r vnet.Rate) string {
	if r == 0 {
		return "-"
	}
	return r.String()
}

// Defaults of a switch of kind vxswitch.
const (
	defaultScheduler = "drr"
	defaultManager   = "tail-drop"
)

// vxswitch is an engine's item.
func (n *network) vxswitch(s vnet.VirtualSwitch) VxSwitch {
	item := VxSwitch{
		Lease: n.lease.ID(), Switch: s.Name, CPU: s.CPU, Ageing: cmp.Or(s.Ageing, vnet.DefaultAgeing),
		Scheduler: cmp.Or(s.Scheduler, defaultScheduler), Buffer: s.BufferOf("", ""), Manager: cmp.Or(s.Manager, defaultManager),
		Stations: n.stations(s.Name),
	}
	for _, x := range s.Crosspoints {
		from, ok := n.interfaceOf(x.From, s.Name)
		to, too := n.interfaceOf(x.To, s.Name)
		if ok && too {
			item.Crosspoints = append(item.Crosspoints, VxCrosspoint{from, to, s.BufferOf(x.From, x.To), cmp.Or(x.Manager, item.Manager)})
		}
	}
	return item
}

// interfaceOf is a switch's port on a link of the running stage.
func (n *network) interfaceOf(link, name string) (string, bool) {
	l, ok := n.top.Link(link)
	return n.device[linkEnd{link, endAt(l, name)}], ok
}

// vxswitchPorts are the ports of an engine, but for those that carry nothing:
// blocked ones, and those all of whose targets are gone in this stage.
func (n *network) vxswitchPorts(s vnet.VirtualSwitch) []VxSwitchPort {
	var list []VxSwitchPort
	for _, l := range n.top.Links {
		if !slices.Contains(l.Ends[:], s.Name) || n.loops[l.Name] {
			continue
		}
		p := s.Ports[l.Name]
		end := endAt(l, s.Name)
		rates := n.rates(l)
		in, out := rates[1-end], rates[end] // Forward is from end 0
		item := VxSwitchPort{
			Lease: n.lease.ID(), Switch: s.Name, Interface: n.device[linkEnd{l.Name, end}],
			In: below(p.In, in), Out: within(p.Out, out),
			Scheduler: cmp.Or(p.Scheduler, s.Scheduler, defaultScheduler), Quantum: p.Quantum, Priority: p.Priority,
		}
		for _, to := range p.To {
			if device, ok := n.interfaceOf(to, s.Name); ok {
				item.To = append(item.To, device)
			}
		}
		if len(p.To) > 0 && len(item.To) == 0 {
			continue
		}
		slices.Sort(item.To)
		list = append(list, item)
	}
	return list
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
func within(stated, link vnet.Rate) vnet.Rate { return enforced(meetRate(stated, link)) }
