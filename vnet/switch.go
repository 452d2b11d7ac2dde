package vnet

import (
	"slices"
	"time"
)

// SwitchKind is how a virtual switch is built.
type SwitchKind string

// Kinds of switches: the kernel's path (datapath/bridge), the crosspoint-queued
// engine (vxswitch), or one that its tenant's controller programs (openflow).
const (
	SwitchKernel   SwitchKind = "kernel"
	SwitchEngine   SwitchKind = "vxswitch"
	SwitchOpenFlow SwitchKind = "openflow"
)

// VirtualSwitch is a layer-2 switch that learns, or does what its controller says. Links that end at it are its
// ports; what stands at their other ends (its stations) is one network of
// layer 2 with the stations of every switch it is linked to.
type VirtualSwitch struct {
	Name   string                `json:"name"`
	Kind   SwitchKind            `json:"kind,omitempty"` // default: kernel
	CPU    CPU                   `json:"cpu_milli,omitempty"`
	Site   string                `json:"site,omitempty"`
	Host   HostID                `json:"host,omitempty"`
	Ageing time.Duration         `json:"ageing_ns,omitempty"` // of learned addresses; 0: DefaultAgeing
	Ports  map[string]SwitchPort `json:"ports,omitempty"`     // options, by the link that ends there
	Labels map[string]string     `json:"labels,omitempty"`
	Access string                `json:"access,omitempty"` // the exit to which it has one port more
	VLAN   uint16                `json:"vlan,omitempty"`   // there; 0: one is chosen
	SwitchEngineOptions
	OpenFlowOptions
}

// SwitchEngineOptions are what only a switch of kind SwitchEngine has.
type SwitchEngineOptions struct {
	Scheduler   string        `json:"scheduler,omitempty"`    // of each output, among its inputs; "": drr
	Buffer      Bytes         `json:"buffer_bytes,omitempty"` // of each crosspoint; 0: DefaultBuffer
	Manager     string        `json:"manager,omitempty"`      // of each crosspoint, see ParseQueueManager; "": tail-drop
	Crosspoints []Crosspoint  `json:"crosspoints,omitempty"`  // those that differ
	Lend        int           `json:"lend_percent,omitempty"` // of each crosspoint's idle buffer, to slices
	Lookup      string        `json:"lookup,omitempty"`       // "": learning
	Table       []SwitchRow   `json:"table,omitempty"`        // that the lookup reads
	Slices      []SwitchSlice `json:"slices,omitempty"`
}

// SwitchPort are the options of one port of a switch.
type SwitchPort struct {
	MACs      int      `json:"macs,omitempty"`          // most addresses learned; 0: DefaultMACs
	Broadcast int      `json:"broadcast_pps,omitempty"` // broadcast and multicast frames taken in a second; 0: DefaultFlood
	Unknown   int      `json:"unknown_pps,omitempty"`   // frames to unknown stations taken in a second; 0: DefaultFlood
	To        []string `json:"to,omitempty"`            // ports it may send to, by link; none: to all
	PortEngineOptions
}

// PortEngineOptions are what only a port of a switch of kind SwitchEngine has.
type PortEngineOptions struct {
	In        Rate   `json:"in_bps,omitempty"`        // capacity, frames a second counted as everywhere; 0: the link's
	Out       Rate   `json:"out_bps,omitempty"`       // the same
	Scheduler string `json:"scheduler,omitempty"`     // of this output; "": the switch's
	Quantum   Bytes  `json:"quantum_bytes,omitempty"` // of this input at outputs with drr; 0: a frame
	Priority  int    `json:"priority,omitempty"`      // of this input at outputs with sp, 0 first
}

// Defaults and bounds of switches.
const (
	DefaultAgeing = 5 * time.Minute // IEEE 802.1Q-2018, table 8-6
	MinAgeing     = time.Second
	MaxAgeing     = 1_000_000 * time.Second // the same table
	DefaultMACs   = 256
	MaxMACs       = 4096
	DefaultFlood  = 1000 // frames a second
	MaxFlood      = 1_000_000
	MaxPorts      = 256 // links at one switch, over all stages
)

// node is what placement and routing know of a switch that joins links.
func (s VirtualSwitch) node(links []VirtualLink) VirtualNode {
	return VirtualNode{Name: s.Name, CPU: s.CPU, Memory: s.memory(links), Site: s.Site, Host: s.Host, Labels: s.Labels}
}

// Switch finds a switch by name.
func (t Topology) Switch(name string) (VirtualSwitch, bool) {
	for _, s := range t.Switches {
		if s.Name == name {
			return s, true
		}
	}
	return VirtualSwitch{}, false
}

// Placed returns all that is placed on a host: end nodes, routers, switches.
func (t Topology) Placed() []VirtualNode {
	all := t.All()
	for _, s := range t.Switches {
		all = append(all, s.node(t.Links))
	}
	return all
}

// Passes says whether a switch sends frames that come in by one link out by
// another.
func (s VirtualSwitch) Passes(from, to string) bool {
	only := s.Ports[from].To
	return from != to && (len(only) == 0 || slices.Contains(only, to))
}
