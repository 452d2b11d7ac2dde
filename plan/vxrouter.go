package plan

import (
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// VxRouter is the routing of one virtual node: a router forwards and may run
// a routing daemon; an end node only has a table. What the tenant adds inside
// (routes of another protocol number) is not seen here. Built by
// datapath/vxrouter.
type VxRouter struct {
	Lease   vnet.LeaseID `json:"lease"`
	Node    string       `json:"node"`
	Forward bool         `json:"forward"`
	Routes  []Route      `json:"routes,omitempty"` // by prefix
	OSPF    *OSPF        `json:"ospf,omitempty"`
	Classes []RouteClass `json:"classes,omitempty"`
	FRR     *FRR         `json:"frr,omitempty"` // in the place of OSPF, which says what is usual in few words
	// Neighbours are stations of the node's own links. They are entered once, and outside
	// of what the machine's table of neighbours has for all. A router which comes from
	// another host need not ask for them: as long as it stands by, none would answer.
	Neighbours []Station `json:"neighbours,omitempty"`
	// Keep has the router keep what its daemons have learned, behind what they learn,
	// while one of the network's goes to another host and all learn anew.
	Keep bool `json:"keep,omitempty"`
	// Inside are, of routing that was read back, the interfaces of links that the
	// tenant changed and keeps so.
	Inside map[string]Inside `json:"-"`
}

// RouteClass is how a router routes packets of a class of traffic, before its other
// routes are asked: those hold for what leads nowhere here.
type RouteClass struct {
	Match  []ChainMatch `json:"match"` // one of these
	Routes []Route      `json:"routes"`
}

// Route through a neighbour on one of the node's interfaces, or, without Via,
// to what is on the same segment of layer 2. Without an interface it is a dead end
// for what no other route to the same prefix leads on, be it one of the kernel's or of a
// daemon.
type Route struct {
	Prefix    netip.Prefix `json:"prefix"`
	Via       netip.Addr   `json:"via,omitzero"` // the neighbour, on-link
	Interface string       `json:"interface"`
}

// OSPF runs FRR's ospfd in the router.
type OSPF struct {
	RouterID   netip.Addr `json:"router_id"`
	Interfaces []string   `json:"interfaces"` // towards other OSPF routers; the rest are announced only
	Stubs      []string   `json:"stubs,omitempty"`
}

// FRR runs daemons of FRR in the router.
type FRR struct {
	Daemons []Daemon `json:"daemons"` // in the order in which they start; zebra is the first
	// Config is a tenant's: vtysh tells it to the daemons once they run.
	Config string `json:"config,omitempty"`
}

// Daemon is one of FRR's, by the name of its program, and what it is told.
type Daemon struct {
	Name   string `json:"name"`
	Config string `json:"config"`
}

// Learns says whether daemons find the router's ways.
func (r VxRouter) Learns() bool { return r.OSPF != nil || r.FRR != nil }

// Silent is the router without its daemons.
func (r VxRouter) Silent() VxRouter {
	r.OSPF, r.FRR = nil, nil
	return r
}

// Kind of the section.
func (VxRouter) Kind() Kind { return KindVxRouter }

// Key is the namespace.
func (r VxRouter) Key() string { return Namespace(r.Lease, r.Node) }

// LeaseID is the lease that it is of.
func (r VxRouter) LeaseID() vnet.LeaseID { return r.Lease }

// Meet is the router itself: there is no amount in it.
func (r VxRouter) Meet(Item) Item { return r }

func (r VxRouter) String() string {
	s := r.Key()
	if r.Forward {
		s += " forward"
	}
	if r.Keep {
		s += " keeps"
	}
	if r.OSPF != nil {
		s += fmt.Sprintf(" ospf %s on %v stubs %v", r.OSPF.RouterID, r.OSPF.Interfaces, r.OSPF.Stubs)
	}
	if r.FRR != nil {
		for _, d := range r.FRR.Daemons {
			s += fmt.Sprintf(" %s (%d bytes)", d.Name, len(d.Config))
		}
		if r.FRR.Config != "" {
			s += fmt.Sprintf(" own configuration (%d bytes)", len(r.FRR.Config))
		}
	}
	for i, c := range r.Classes {
		s += fmt.Sprintf(" class %d of %d sets by %d routes", i, len(c.Match), len(c.Routes))
	}
	for _, route := range r.Routes {
		if route.Interface == "" {
			s += fmt.Sprintf(" %s->nowhere", route.Prefix)
			continue
		}
		via := ""
		if route.Via.IsValid() {
			via = route.Via.String()
		}
		s += fmt.Sprintf(" %s->%s@%s", route.Prefix, via, route.Interface)
	}
	return s
}
