package controller

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sublet/openflow/of13"
)

// Numbers that virtual routers take of a switch.
const (
	routerPriority   = 1000 // and above it; just below, what meets no route
	routeLevel       = 130  // a priority of a route counts more than any prefix
	MaxRoutePriority = 400
	firstMeter       = 0x5b00
	mostMeters       = 4096
	leastBurst       = 120 // kbit: ten frames
	burstsIn         = 10  // a burst is what a meter's rate lets through in this part of a second
)

// VxRouter is a virtual router: entries inside a subset of a switch's ports.
type VxRouter struct {
	Name   string
	Ports  []uint32
	Match  []of13.Field // what its packets have, besides coming in at one of its ports
	Routes []Route
	Active bool // what meets no route the controller sends on, to the router's ports; else it is dropped
}

// Route is one of a virtual router's: packets to a destination, of which more may
// be said, leave over a link.
type Route struct {
	To       netip.Prefix // not valid: any
	Match    []of13.Field
	Priority int // 0 to MaxRoutePriority, before the length of the prefix
	VxLink   string
	Next     [6]byte // address of the next hop, which packets are sent to; zero: they stay as they are
}

// VxLink is a virtual link that leaves a switch: a meter or a queue that all its
// packets pass.
type VxLink struct {
	Name  string
	Port  uint32
	Kbps  uint32 // of its meter
	Queue uint32 // of its port, if it has no meter
}

// Meter drops what is above a rate.
type Meter struct{ Number, Kbps, Burst uint32 }

// Slicing is what virtual routers and links want of one switch, and what it has
// for them.
type Slicing struct {
	Routers               []VxRouter
	Links                 []VxLink
	MaxEntries, MaxMeters int
}

// Installed is entries and meters of one switch.
type Installed struct {
	Entries []Entry
	Meters  []Meter
	Active  []ActiveRouter
	Room    int // entries that are left for paths of active routers
}

// ActiveRouter is a router whose packets without a route come to the controller, by an
// entry for each port.
type ActiveRouter struct {
	Ports   []uint32
	Match   []of13.Field
	Entries []Entry
}

var errInPort = errors.New("packets come in at the ports of the router: leave in_port out")

// ConflictError is two virtual routers, or two routes, that want the same packets.
type ConflictError struct{ A, B, Why string }

func (e *ConflictError) Error() string { return fmt.Sprintf("%s and %s: %s", e.A, e.B, e.Why) }

// Compile translates routers and links into entries and meters. It refuses what
// would take packets of another router, leave a router's ports, or not fit.
func (s Slicing) Compile() (made Installed, err error) {
	links, meters, err := s.links()
	if err != nil {
		return made, err
	}
	made.Meters = meters
	need := 0 // entries
	users := make(map[string]string)
	for i := range s.Routers {
		r := &s.Routers[i]
		for j := range s.Routers[:i] {
			if err := apart(&s.Routers[j], r); err != nil {
				return made, err
			}
		}
		entries, err := r.entries(links, users)
		if err != nil {
			return made, err
		}
		made.Entries = append(made.Entries, entries...)
		if without := r.withoutRoute(); r.Active {
			made.Active = append(made.Active, ActiveRouter{r.Ports, r.Match, without})
			need += len(without)
		} else {
			made.Entries = append(made.Entries, without...)
		}
	}
	if need += len(made.Entries); need > s.MaxEntries {
		return made, fmt.Errorf("the routers need %d entries, and the switch has %d for them", need, s.MaxEntries)
	}
	made.Room = s.MaxEntries - need
	return made, nil
}

// usable is a link and its meter, 0 for none.
type usable struct {
	VxLink
	meter uint32
}

func (s Slicing) links() (map[string]usable, []Meter, error) {
	links := make(map[string]usable)
	var meters []Meter
	for _, l := range s.Links {
		if _, twice := links[l.Name]; twice {
			return nil, nil, fmt.Errorf("there are two links %s", l.Name)
		}
		u := usable{VxLink: l}
		if l.Kbps > 0 {
			u.meter = firstMeter + uint32(len(meters))
			meters = append(meters, Meter{u.meter, l.Kbps, max(l.Kbps/burstsIn, leastBurst)})
		}
		links[l.Name] = u
	}
	if len(meters) > min(s.MaxMeters, mostMeters) {
		return nil, nil, fmt.Errorf("the links need %d meters, and the switch has %d for them", len(meters), min(s.MaxMeters, mostMeters))
	}
	return links, meters, nil
}

// apart refuses two routers that would both take a packet.
func apart(a, b *VxRouter) error {
	if a.Name == b.Name {
		return &ConflictError{"router " + a.Name, "another one", "have the same name"}
	}
	for _, port := range b.Ports {
		if slices.Contains(a.Ports, port) && Overlap(of13.Match{Fields: a.Match}, of13.Match{Fields: b.Match}) {
			return &ConflictError{"router " + a.Name, "router " + b.Name, fmt.Sprintf("both take packets of port %d: let a field of match keep them apart", port)}
		}
	}
	return nil
}

// entries translates the routes of a router, for each port that packets come in
// at.
func (r *VxRouter) entries(links map[string]usable, users map[string]string) (entries []Entry, err error) {
	if slices.ContainsFunc(r.Match, func(f of13.Field) bool { return f.ID == of13.InPort }) {
		return nil, fmt.Errorf("router %s: %w", r.Name, errInPort)
	}
	matches := make([]of13.Match, len(r.Routes))
	for i := range r.Routes {
		route := &r.Routes[i]
		if err := r.mayUse(route, links, users); err != nil {
			return nil, err
		}
		if matches[i], err = r.match(route); err != nil {
			return nil, fmt.Errorf("router %s, route %d: %w", r.Name, i+1, err)
		}
		for j := range i {
			if r.Routes[j].rank() == route.rank() && Overlap(matches[i], matches[j]) {
				return nil, &ConflictError{fmt.Sprintf("router %s, route %d", r.Name, j+1), fmt.Sprintf("route %d", i+1), "both take the same packets: state a priority"}
			}
		}
	}
	for _, in := range r.Ports {
		at := of13.Exact(of13.InPort, uint64(in))
		for i := range r.Routes {
			if l := links[r.Routes[i].VxLink]; l.Port != in {
				entries = append(entries, Entry{Priority: r.Routes[i].rank(), Match: with(matches[i], at), Instructions: r.Routes[i].instructions(l)})
			}
		}
	}
	return entries, nil
}

// withoutRoute are the entries of packets that meet no route: they are dropped, or come
// to the controller, whose paths for them have the priority above that.
func (r *VxRouter) withoutRoute() (entries []Entry) {
	e := Entry{Priority: routerPriority - 1}
	if r.Active {
		e = Entry{Priority: routerPriority - 2, Instructions: toController()}
	}
	for _, in := range r.Ports {
		e.Match = with(of13.Match{Fields: r.Match}, of13.Exact(of13.InPort, uint64(in)))
		entries = append(entries, e)
	}
	return entries
}

func with(m of13.Match, f of13.Field) of13.Match {
	return plainMatch(of13.Match{Fields: append(slices.Clone(m.Fields), f)})
}

// mayUse sees to it that a link leaves at a port of the router, and is no other's.
func (r *VxRouter) mayUse(route *Route, links map[string]usable, users map[string]string) error {
	l, ok := links[route.VxLink]
	if !ok {
		return fmt.Errorf("router %s: there is no link %q", r.Name, route.VxLink)
	}
	if !slices.Contains(r.Ports, l.Port) {
		return fmt.Errorf("router %s: link %s leaves at port %d, which is none of its ports", r.Name, l.Name, l.Port)
	}
	if user, used := users[l.Name]; used && user != r.Name {
		return &ConflictError{"router " + user, "router " + r.Name, "both use link " + l.Name + ": give each one of its own"}
	}
	users[l.Name] = r.Name
	return nil
}

func (r *Route) rank() uint16 {
	return uint16(routerPriority + routeLevel*r.Priority + max(r.To.Bits(), 0))
}

// match is what the packets of a route have, the router's fields included.
func (r *VxRouter) match(route *Route) (of13.Match, error) {
	m := of13.Match{Fields: slices.Clone(r.Match)}
	for _, f := range append(destination(route.To), route.Match...) {
		i := slices.IndexFunc(m.Fields, func(g of13.Field) bool { return g.ID == f.ID })
		switch {
		case f.ID == of13.InPort:
			return m, errInPort
		case i < 0:
			m.Fields = append(m.Fields, f)
		case m.Fields[i] != f:
			return m, fmt.Errorf("%s is another one already", of13.Fields[f.ID].Name)
		}
	}
	m = plainMatch(m)
	ctx := of13.NewContext()
	for i := range m.Fields {
		if !ctx.Allows(m.Fields[i].ID) {
			return m, fmt.Errorf("%s needs a protocol: state such as tcp before it", of13.Fields[m.Fields[i].ID].Name)
		}
		ctx.Learn(&m.Fields[i])
	}
	return m, nil
}

// destination is the fields of a prefix.
func destination(to netip.Prefix) []of13.Field {
	if !to.IsValid() {
		return nil
	}
	kind, id := uint64(0x0800), of13.IPv4Dst
	if to.Addr().Is6() {
		kind, id = 0x86dd, of13.IPv6Dst
	}
	list := []of13.Field{of13.Exact(of13.EthType, kind)}
	if to.Bits() == 0 {
		return list
	}
	bits := of13.Fields[id].Bits
	mask := make([]byte, bits/8)
	for i := range to.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return append(list, of13.WithMask(id, of13.ReadU128(to.Addr().AsSlice()), of13.ReadU128(mask)))
}

func (r *Route) instructions(l usable) (list []of13.Instruction) {
	if l.meter != 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionMeter, Meter: l.meter})
	}
	var actions []of13.Action
	if r.Next != [6]byte{} {
		actions = append(actions, of13.SetField(of13.Exact(of13.EthDst, address(r.Next[:]))))
	}
	if l.meter == 0 {
		actions = append(actions, of13.Action{Type: of13.ActionSetQueue, Number: l.Queue})
	}
	return append(list, of13.Instruction{Type: of13.InstructionApply, Actions: append(actions, of13.Output(l.Port))})
}
