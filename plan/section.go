package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Kind says what an item is, and so which part does its steps.
type Kind string

// Kinds of items. Items of one section have one type; where parts share a
// section, each has a kind of its own.
const (
	KindUplink       Kind = "uplink"       // datapath/vxlink
	KindNames        Kind = "names"        // datapath/vnode
	KindVNode        Kind = "vnode"        // datapath/vnode
	KindSwitch       Kind = "vswitch"      // datapath/bridge
	KindVxSwitch     Kind = "vxswitch"     // datapath/vxswitch
	KindOpenFlow     Kind = "openflow"     // datapath/openflow
	KindVxLink       Kind = "vxlink"       // datapath/vxlink
	KindOverlay      Kind = "overlay"      // datapath/overlay: it opens trunks, which vxlink makes
	KindVxRouter     Kind = "vxrouter"     // datapath/vxrouter
	KindGateway      Kind = "gateway"      // datapath/nat
	KindJoin         Kind = "join"         // datapath/join
	KindDevice       Kind = "device"       // datapath/device
	KindAccess       Kind = "access"       // datapath/access
	KindSwitchPort   Kind = "switchport"   // datapath/bridge
	KindVxSwitchPort Kind = "vxswitchport" // datapath/vxswitch
	KindSpread       Kind = "spread"       // agent/iplbd: paths of tunnels
	KindPrefixSpread Kind = "prefixspread" // agent/iplbd: paths to all else
	KindSetup        Kind = "setup"        // datapath/vnode: what runs in nodes, once the network is there
	KindPause        Kind = "pause"        // datapath/vnode: nodes that stand still
	KindChains       Kind = "chains"       // datapath/chain: once the programs that packets pass run
	KindFlow         Kind = "flow"         // agent/forwarding: entries of OpenFlow switches of the substrate, which are hosts that have nothing else
	KindReach        Kind = "reach"        // datapath/reach: what shall be true when all the others are there
)

// sections is everything a Host lists, in the order in which it is built; it is
// taken down in reverse. A new section is a row here and its type.
var sections = []section{
	of[Uplink]("uplinks", KindUplink),
	of[NameTable]("names", KindNames),
	of[VNode]("nodes", KindVNode),
	of[Switch]("switches", KindSwitch, KindVxSwitch, KindOpenFlow).formerly("vxswitches"),
	of[VxLink]("links", KindVxLink),
	of[Overlay]("overlay", KindOverlay),
	of[Flow]("flows", KindFlow),
	of[VxRouter]("routers", KindVxRouter),
	of[Gateway]("gateways", KindGateway),
	of[Join]("joins", KindJoin),
	of[Device]("devices", KindDevice),
	of[Access]("accesses", KindAccess),
	of[SwitchPort]("switch_ports", KindSwitchPort, KindVxSwitchPort).formerly("vxswitch_ports"),
	of[Spread]("spreads", KindSpread),
	of[Spread]("prefix_spreads", KindPrefixSpread).ownedBy(ByPaths),
	of[Setup]("setups", KindSetup),
	of[Pause]("pauses", KindPause),
	of[Chains]("chains", KindChains),
	of[Reach]("reaches", KindReach),
}

// section is a list of items of one type.
type section struct {
	name   string // in JSON
	former string // name in JSON that a former version gave to some of them; "": none
	kinds  []Kind // in building order
	owner  Owner
	item   reflect.Type
	read   func(text []byte) ([]Item, error)
}

func of[T Item](name string, kinds ...Kind) section {
	return section{name: name, kinds: kinds, item: reflect.TypeFor[T](), read: func(text []byte) ([]Item, error) {
		var list []T
		err := unmarshal(text, &list)
		items := make([]Item, len(list))
		for i, item := range list {
			items[i] = item
		}
		return items, err
	}}
}

func (s section) formerly(name string) section {
	s.former = name
	return s
}

func (s section) ownedBy(o Owner) section {
	s.owner = o
	return s
}

// Kinds lists all kinds in building order.
var Kinds = kinds()

func kinds() (list []Kind) {
	for _, s := range sections {
		list = append(list, s.kinds...)
	}
	return list
}

// ranks are the places of kinds in building order.
var ranks = func() map[Kind]int {
	places := make(map[Kind]int, len(Kinds))
	for i, k := range Kinds {
		places[k] = i
	}
	return places
}()

// rank is the place of a kind in building order; one that no section has is last.
func rank(k Kind) int {
	if place, ok := ranks[k]; ok {
		return place
	}
	return len(ranks)
}

// SectionNames lists the members that the items of a server's plan have in JSON.
func SectionNames() (names []string) {
	for _, s := range sections {
		if s.owner == ByServer {
			names = append(names, s.name)
		}
	}
	return names
}

// ErrUnknown is wrapped where a plan has what this version does not know: a
// server of a newer version wrote it.
var ErrUnknown = errors.New("not known to this version, upgrade it")

// header is a Host without its items, in JSON.
type header Host

// headerNames are the members of a header, and what Seal adds.
var headerNames = func() map[string]bool {
	names := map[string]bool{"sum": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[header]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}()

// MarshalJSON writes the header and every section that is not empty. An item of
// a kind that no section has is an error.
func (h Host) MarshalJSON() ([]byte, error) { return h.encode(Form) }

func (h Host) encode(form uint64) ([]byte, error) {
	lists := make(map[string][]any)
	for _, item := range h.Items() {
		s, err := sectionOf(item.Kind())
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", item, err)
		}
		item = spare(item, form)
		name, written := s.name, any(item)
		if form < Form && form < s.formOf(item) {
			return nil, fmt.Errorf("%s %s in form %d: %w", item.Kind(), item.Key(), form, ErrUnknown)
		}
		if form < 2 {
			name, written = s.inForm1(item)
		}
		lists[name] = append(lists[name], written)
	}
	text, err := json.Marshal(header(h))
	if err != nil || len(lists) == 0 {
		return text, err
	}
	rest, err := json.Marshal(lists)
	if err != nil {
		return nil, err
	}
	return append(append(text[:len(text)-1], ','), rest[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON writes, and what former versions wrote.
// A member or an item that this version does not know is ErrUnknown: a host
// that did only the rest of its plan would take away what runs.
func (h *Host) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	var read Host
	if err := json.Unmarshal(text, (*header)(&read)); err != nil {
		return err
	}
	for _, s := range sections {
		for _, name := range []string{s.name, s.former} {
			if err := s.add(&read, members[name]); err != nil {
				return fmt.Errorf("section %s: %w", name, err)
			}
			delete(members, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !headerNames[name] {
			return fmt.Errorf("section %q: %w", name, ErrUnknown)
		}
	}
	*h = read
	return nil
}

// add reads a list of the section's items; nil is an empty one.
func (s section) add(h *Host, text json.RawMessage) error {
	if text == nil {
		return nil
	}
	items, err := s.read(text)
	if err != nil {
		return err
	}
	for _, item := range items {
		if !slices.Contains(s.kinds, item.Kind()) {
			return fmt.Errorf("%s: kind %q: %w", item.Key(), item.Kind(), ErrUnknown)
		}
	}
	h.Add(items...)
	return nil
}

func sectionOf(k Kind) (section, error) {
	for _, s := range sections {
		if slices.Contains(s.kinds, k) {
			return s, nil
		}
	}
	return section{}, fmt.Errorf("kind %q: %w", k, ErrUnknown)
}
