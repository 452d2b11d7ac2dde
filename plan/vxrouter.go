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
}

// Route through a neighbour on one of the node's interfaces, or, without Via,
// to what is on the same segment of layer 2.
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
	if r.OSPF != nil {
		s += fmt.Sprintf(" ospf %s on %v stubs %v", r.OSPF.RouterID, r.OSPF.Interfaces, r.OSPF.Stubs)
	}
	for _, route := range r.Routes {
		via := ""
		if route.Via.IsValid() {
			via = route.Via.String()
		}
		s += fmt.Sprintf(" %s->%s@%s", route.Prefix, via, route.Interface)
	}
	return s
}
