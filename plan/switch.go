package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Switch is a virtual switch of layer 2: a namespace of the provider's that
// holds its ports, and the stations it knows without learning. Its type picks
// the part that builds it.
type Switch struct {
	Lease    vnet.LeaseID    `json:"lease"`
	Switch   string          `json:"switch"`
	Type     vnet.SwitchKind `json:"kind"`
	Ageing   time.Duration   `json:"ageing_ns"` // of learned addresses
	Stations []Station       `json:"stations,omitempty"`
	Engine   *Engine         `json:"engine,omitempty"`   // of type vxswitch, else nil
	OpenFlow *OpenFlow       `json:"openflow,omitempty"` // of type openflow, else nil
}

// Station is a node's or router's interface on the switch's segment. Stations
// of a switch are listed by address.
type Station struct {
	Address   netip.Addr `json:"address"`
	Hardware  Hardware   `json:"hardware"`
	Interface string     `json:"interface"` // port of this switch that leads there
}

func (s Station) String() string { return fmt.Sprintf("%s=%s@%s", s.Address, s.Hardware, s.Interface) }

// Engine is what a switch of type vxswitch has of its host's hosting switch,
// which is one process for all tenants.
type Engine struct {
	CPU         vnet.CPU         `json:"cpu_milli,omitempty"` // of the process; 0: no limit
	Scheduler   string           `json:"scheduler"`
	Buffer      vnet.Bytes       `json:"buffer_bytes"` // of each crosspoint
	Manager     string           `json:"manager"`
	Crosspoints []Crosspoint     `json:"crosspoints,omitempty"`  // those that differ
	Lend        int              `json:"lend_percent,omitempty"` // of each crosspoint's idle buffer, to slices
	Lookup      string           `json:"lookup,omitempty"`       // "": learning
	Table       []vnet.SwitchRow `json:"table,omitempty"`        // that the lookup reads, ports by their interfaces
	Slices      []Slice          `json:"slices,omitempty"`
}

// Crosspoint is what lies between two ports, by their interfaces.
type Crosspoint struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	Buffer  vnet.Bytes `json:"buffer_bytes"`
	Manager string     `json:"manager"`
}

// switchType is how plans speak of a type of switches.
type switchType struct {
	kind, port Kind
	namespace  string // how the names of its switches' namespaces end
}

// switchTypes are those that a part builds.
var switchTypes = map[vnet.SwitchKind]switchType{
	vnet.SwitchKernel: {KindSwitch, KindSwitchPort, ".switch"},
	vnet.SwitchEngine: {KindVxSwitch, KindVxSwitchPort, ".vxswitch"},
	// Its ports are its controller's matter: no item tells of them.
	vnet.SwitchOpenFlow: {KindOpenFlow, "", ".openflow"},
}

// SwitchNamespace names the namespace of a switch: it has one part more than a
// node's, which is the tenant's.
func SwitchNamespace(lease vnet.LeaseID, name string, of vnet.SwitchKind) string {
	return Namespace(lease, name) + switchTypes[of].namespace
}

// ParseSwitchNamespace takes a SwitchNamespace of one type apart; false: it is none.
func ParseSwitchNamespace(key string, of vnet.SwitchKind) (lease vnet.LeaseID, name string, ok bool) {
	if node, ours := strings.CutSuffix(key, switchTypes[of].namespace); ours {
		return ParseNamespace(node)
	}
	return lease, "", false
}

// Kind is that of its type.
func (s Switch) Kind() Kind { return switchTypes[s.Type].kind }

// Key is the namespace.
func (s Switch) Key() string { return SwitchNamespace(s.Lease, s.Switch, s.Type) }

// LeaseID is the lease that it is of.
func (s Switch) LeaseID() vnet.LeaseID { return s.Lease }

// Meet is the switch with the smaller buffers of both: what they take of the
// host's memory is booked.
func (s Switch) Meet(other Item) Item {
	o := other.(Switch)
	if s.OpenFlow != nil && o.OpenFlow != nil {
		return s.meetOpenFlow(*o.OpenFlow)
	}
	if s.Engine == nil || o.Engine == nil {
		return s
	}
	e := *s.Engine
	e.Buffer = min(e.Buffer, o.Engine.Buffer)
	e.Crosspoints = slices.Clone(e.Crosspoints)
	for i := range e.Crosspoints {
		x := &e.Crosspoints[i]
		x.Buffer = min(x.Buffer, o.Engine.bufferOf(x.From, x.To))
	}
	e.Slices = e.meetSlices(*o.Engine)
	s.Engine = &e
	return s
}

func (e Engine) bufferOf(from, to string) vnet.Bytes {
	for _, x := range e.Crosspoints {
		if x.From == from && x.To == to {
			return x.Buffer
		}
	}
	return e.Buffer
}

func (s Switch) String() string {
	text := fmt.Sprintf("%s ageing %s", s.Key(), vnet.FormatDuration(s.Ageing))
	if s.Engine != nil {
		text += " " + s.Engine.String()
	}
	if s.OpenFlow != nil {
		text += " " + s.OpenFlow.String()
	}
	for _, st := range s.Stations {
		text += " " + st.String()
	}
	return text
}

func (e Engine) String() string {
	text := fmt.Sprintf("buffer %s %s %s", e.Buffer, e.Scheduler, e.Manager)
	if e.CPU > 0 {
		text += fmt.Sprintf(" cpu %s", e.CPU)
	}
	for _, x := range e.Crosspoints {
		text += fmt.Sprintf(" %s->%s=%s,%s", x.From, x.To, x.Buffer, x.Manager)
	}
	text += sharing(e.Lend, e.Lookup, e.Table)
	for _, x := range e.Slices {
		text += " " + x.String()
	}
	return text
}

// Defaults of a switch of type vxswitch.
const (
	defaultScheduler = "drr"
	defaultManager   = "tail-drop"
)

// switchItem is a switch's item.
func (n *network) switchItem(s vnet.VirtualSwitch) Switch {
	if s.Kind == vnet.SwitchOpenFlow {
		return Switch{Lease: n.lease.ID(), Switch: s.Name, Type: s.Kind, OpenFlow: n.openFlow(s)}
	}
	item := Switch{
		Lease: n.lease.ID(), Switch: s.Name, Type: cmp.Or(s.Kind, vnet.SwitchKernel),
		Ageing: cmp.Or(s.Ageing, vnet.DefaultAgeing), Stations: n.stations(s.Name),
	}
	if s.Kind == vnet.SwitchEngine {
		item.Engine = n.engine(s)
	}
	return item
}

func (n *network) engine(s vnet.VirtualSwitch) *Engine {
	e := &Engine{
		CPU: s.CPU, Scheduler: cmp.Or(s.Scheduler, defaultScheduler),
		Buffer: s.BufferOf("", ""), Manager: cmp.Or(s.Manager, defaultManager),
		Lend: s.Lend, Lookup: s.Lookup, Table: n.switchTable(s, s.Table),
	}
	e.Slices = n.slices(s, e)
	for _, x := range s.Crosspoints {
		from, ok := n.interfaceOf(x.From, s.Name)
		to, too := n.interfaceOf(x.To, s.Name)
		if ok && too {
			e.Crosspoints = append(e.Crosspoints, Crosspoint{from, to, s.BufferOf(x.From, x.To), cmp.Or(x.Manager, e.Manager)})
		}
	}
	return e
}

// interfaceOf is a switch's port on a link of the running stage.
func (n *network) interfaceOf(link, name string) (string, bool) {
	l, ok := n.top.Link(link)
	return n.device[linkEnd{link, endAt(l, name)}], ok
}
