// Package plan says, as data, what each host must have, what it has, and what
// to change: Compile makes the wanted Hosts out of leases, Diff the Steps from
// one Host to another, Report what came of them.
//
// A Host is a list of items, one section per kind of kernel object. An item
// read back from the kernel equals the item that was put there, so Compile
// normalises every figure to what the kernel can hold (whole bytes per second,
// whole pages).
//
//	leases --Compile--> Host (wanted) --+
//	                                    +--Diff--> []Step --> agent
//	kernel --Observe--> Host (had) -----+
package plan

import (
	"cmp"
	"slices"
	"strings"

	"sublet/vnet"
)

// Host is everything one host must have, or has.
type Host struct {
	Host        vnet.HostID  `json:"host"`
	Revision    uint64       `json:"revision,omitempty"` // of the book; 0 in an observation
	Uplinks     []Uplink     `json:"uplinks,omitempty"`
	Names       []NameTable  `json:"names,omitempty"`
	Nodes       []VNode      `json:"nodes,omitempty"`
	Switches    []VSwitch    `json:"switches,omitempty"`
	Links       []VxLink     `json:"links,omitempty"`
	Overlay     []Overlay    `json:"overlay,omitempty"`
	Routers     []VxRouter   `json:"routers,omitempty"`
	SwitchPorts []SwitchPort `json:"switch_ports,omitempty"`
	Spreads     []Spread     `json:"spreads,omitempty"`

	VxSwitches    []VxSwitch     `json:"vxswitches,omitempty"`
	VxSwitchPorts []VxSwitchPort `json:"vxswitch_ports,omitempty"`
}

// Kind names a section, and the part that does its steps.
type Kind string

// Sections, in the order in which they are built; they are taken down in reverse.
const (
	KindUplink     Kind = "uplink"     // datapath/vxlink
	KindNames      Kind = "names"      // datapath/vnode
	KindVNode      Kind = "vnode"      // datapath/vnode
	KindVSwitch    Kind = "vswitch"    // datapath/vswitch
	KindVxLink     Kind = "vxlink"     // datapath/vxlink
	KindOverlay    Kind = "overlay"    // datapath/overlay: it opens trunks, which vxlink makes
	KindVxRouter   Kind = "vxrouter"   // datapath/vxrouter
	KindSwitchPort Kind = "switchport" // datapath/vswitch
	KindSpread     Kind = "spread"     // datapath/iplb

	KindVxSwitch     Kind = "vxswitch"     // datapath/vxswitch
	KindVxSwitchPort Kind = "vxswitchport" // datapath/vxswitch
)

// Kinds lists the sections in building order.
var Kinds = []Kind{KindUplink, KindNames, KindVNode, KindVSwitch, KindVxSwitch, KindVxLink, KindOverlay, KindVxRouter, KindSwitchPort, KindVxSwitchPort, KindSpread}

// Item is one thing a host has: an element of one of the sections.
type Item interface {
	Kind() Kind
	Key() string // unique within its kind on one host
	// Meet returns what both item and other (same kind and key) allow: the
	// smaller rates and limits, else the properties of item.
	Meet(other Item) Item
	String() string // one readable line
}

// Items lists the host's items in building order, by key within a kind.
func (h Host) Items() []Item {
	var items []Item
	items = appendItems(items, h.Uplinks)
	items = appendItems(items, h.Names)
	items = appendItems(items, h.Nodes)
	items = appendItems(items, h.Switches)
	items = appendItems(items, h.VxSwitches)
	items = appendItems(items, h.Links)
	items = appendItems(items, h.Overlay)
	items = appendItems(items, h.Routers)
	items = appendItems(items, h.SwitchPorts)
	items = appendItems(items, h.VxSwitchPorts)
	return appendItems(items, h.Spreads)
}

// Add puts an item into its section.
func (h *Host) Add(item Item) {
	switch item := item.(type) {
	case Uplink:
		h.Uplinks = append(h.Uplinks, item)
	case NameTable:
		h.Names = append(h.Names, item)
	case VNode:
		h.Nodes = append(h.Nodes, item)
	case VSwitch:
		h.Switches = append(h.Switches, item)
	case SwitchPort:
		h.SwitchPorts = append(h.SwitchPorts, item)
	case VxSwitch:
		h.VxSwitches = append(h.VxSwitches, item)
	case VxSwitchPort:
		h.VxSwitchPorts = append(h.VxSwitchPorts, item)
	case VxLink:
		h.Links = append(h.Links, item)
	case Overlay:
		h.Overlay = append(h.Overlay, item)
	case Spread:
		h.Spreads = append(h.Spreads, item)
	case VxRouter:
		h.Routers = append(h.Routers, item)
	}
}

// appendItems makes each key once: they are put together from names.
func appendItems[T Item](items []Item, section []T) []Item {
	type keyed struct {
		key  string
		item Item
	}
	sorted := make([]keyed, len(section))
	for i, item := range section {
		sorted[i] = keyed{item.Key(), item}
	}
	slices.SortFunc(sorted, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for _, k := range sorted {
		items = append(items, k.item)
	}
	return items
}

// String prints a host one item a line, for people and golden tests.
func (h Host) String() string {
	var b strings.Builder
	for _, item := range h.Items() {
		b.WriteString(string(item.Kind()) + " " + item.String() + "\n")
	}
	return b.String()
}
