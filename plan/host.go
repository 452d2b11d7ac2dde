// Package plan says, as data, what each host must have, what it has, and what
// to change: Compile makes the wanted Hosts out of leases, Diff the Steps from
// one Host to another. Package report has what came of them.
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
	Store       string       `json:"store,omitempty"`    // identity of the store that it is of
	Term        string       `json:"term,omitempty"`     // of that store, in which it was published
	Terms       []Term       `json:"terms,omitempty"`    // that the store knows, oldest first; only when handed out
	Adopt       *Origin      `json:"adopt,omitempty"`    // whoever has that plan shall follow this one all the same
	Half        bool         `json:"half,omitempty"`     // do only what it allows of what is there: see Shrunk
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
	Reaches       []Reach        `json:"reaches,omitempty"`

	Unknown []Unknown `json:"-"` // of an observation: what could not be looked at
}

// Kind names a section, and the part that does its steps.
type Kind string

// Sections, in the order in which they are built; they are taken down in reverse.
const (
	KindUplink     Kind = "uplink"     // datapath/vxlink
	KindNames      Kind = "names"      // datapath/vnode
	KindVNode      Kind = "vnode"      // datapath/vnode
	KindVSwitch    Kind = "vswitch"    // datapath/bridge
	KindVxLink     Kind = "vxlink"     // datapath/vxlink
	KindOverlay    Kind = "overlay"    // datapath/overlay: it opens trunks, which vxlink makes
	KindVxRouter   Kind = "vxrouter"   // datapath/vxrouter
	KindSwitchPort Kind = "switchport" // datapath/bridge
	KindSpread     Kind = "spread"     // datapath/iplb

	KindVxSwitch     Kind = "vxswitch"     // datapath/vxswitch
	KindVxSwitchPort Kind = "vxswitchport" // datapath/vxswitch

	KindReach Kind = "reach" // datapath/reach: what shall be true when all the others are there
)

// sections is everything a Host lists, in building order.
var sections = []section{
	{KindUplink, func(h Host) []Item { return byKey(h.Uplinks) }},
	{KindNames, func(h Host) []Item { return byKey(h.Names) }},
	{KindVNode, func(h Host) []Item { return byKey(h.Nodes) }},
	{KindVSwitch, func(h Host) []Item { return byKey(h.Switches) }},
	{KindVxSwitch, func(h Host) []Item { return byKey(h.VxSwitches) }},
	{KindVxLink, func(h Host) []Item { return byKey(h.Links) }},
	{KindOverlay, func(h Host) []Item { return byKey(h.Overlay) }},
	{KindVxRouter, func(h Host) []Item { return byKey(h.Routers) }},
	{KindSwitchPort, func(h Host) []Item { return byKey(h.SwitchPorts) }},
	{KindVxSwitchPort, func(h Host) []Item { return byKey(h.VxSwitchPorts) }},
	{KindSpread, func(h Host) []Item { return byKey(h.Spreads) }},
	{KindReach, func(h Host) []Item { return byKey(h.Reaches) }},
}

type section struct {
	kind Kind
	list func(Host) []Item
}

// Kinds lists the sections in building order.
var Kinds = kinds()

func kinds() (list []Kind) {
	for _, s := range sections {
		list = append(list, s.kind)
	}
	return list
}

// Item is one thing a host has: an element of one of the sections.
type Item interface {
	Kind() Kind
	Key() string // unique within its kind on one host
	// LeaseID is the lease that the item is of; zero: the host's own, or one
	// read back from a kernel that does not know whose it is.
	LeaseID() vnet.LeaseID
	// Meet returns what both item and other (same kind and key) allow: the
	// smaller rates and limits, else the properties of item.
	Meet(other Item) Item
	String() string // one readable line

	// addTo puts the item into its section of a host: without a section there
	// is no item.
	addTo(*Host)
}

// Items lists the host's items in building order, by key within a kind.
func (h Host) Items() []Item {
	var items []Item
	for _, s := range sections {
		items = append(items, s.list(h)...)
	}
	return items
}

// Add puts an item into its section.
func (h *Host) Add(item Item) { item.addTo(h) }

// byKey makes each key once: they are put together from names.
func byKey[T Item](section []T) []Item {
	type keyed struct {
		key  string
		item Item
	}
	sorted := make([]keyed, len(section))
	for i, item := range section {
		sorted[i] = keyed{item.Key(), item}
	}
	slices.SortFunc(sorted, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	items := make([]Item, len(sorted))
	for i, k := range sorted {
		items[i] = k.item
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
