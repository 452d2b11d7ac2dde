package plan

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

var theirs = vnet.LeaseID{Tenant: "alice", Network: "demo"}

// twoFamilies is a link with a port in a node, and the node's routes by it.
func twoFamilies() (VxLink, VxRouter) {
	port := Port{
		Namespace: Namespace(theirs, "a"), Interface: "eth0", MTU: 1450, Address: netip.MustParseAddr("10.0.0.1"), Peer: netip.MustParseAddr("10.0.0.2"), Metric: 1,
		More: []netip.Prefix{netip.MustParsePrefix("192.168.7.1/24"), netip.MustParsePrefix("2001:db8::1/64")},
	}
	link := VxLink{Lease: theirs, Link: "ab", Ends: [2]End{{Port: &port}, {Tunnel: &Tunnel{VNI: 7}}}}
	router := VxRouter{Lease: theirs, Node: "a", Routes: []Route{
		{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Interface: "eth0"},
		{Prefix: netip.MustParsePrefix("10.10.0.0/16"), Interface: "eth1"},
		{Prefix: netip.MustParsePrefix("2001:db8:9::/48"), Interface: "eth0"},
	}}
	return link, router
}

// TestWhatTenantsChangedIsConceded: what an interface lacks since its tenant set it
// down, or took IPv6 from it, is no step; what else is wrong is one.
func TestWhatTenantsChangedIsConceded(t *testing.T) {
	link, router := twoFamilies()
	ipv4 := func(p *Port, r *VxRouter) {
		p.More, r.Routes = p.More[:1], r.Routes[:2]
	}
	bare := func(p *Port, r *VxRouter) {
		*p = Port{Namespace: p.Namespace, Interface: p.Interface, MTU: p.MTU, Inside: p.Inside}
		r.Routes = r.Routes[1:2]
	}
	down, noIPv6 := Inside{Down: true}, Inside{NoIPv6: true}
	for what, c := range map[string]struct {
		inside Inside
		lose   func(*Port, *VxRouter)
		steps  int
	}{
		"down, with all":          {down, func(*Port, *VxRouter) {}, 0},
		"down, with nothing":      {down, bare, 0},
		"up, with nothing":        {Inside{}, bare, 2},
		"small, without IPv6":     {noIPv6, ipv4, 0},
		"small, with nothing":     {noIPv6, bare, 2},
		"down, with another name": {down, func(p *Port, _ *VxRouter) { p.Interface = "eth9" }, 1},
		"down, with another MTU":  {down, func(p *Port, _ *VxRouter) { p.MTU = 9000 }, 1},
		"down, another route":     {down, func(_ *Port, r *VxRouter) { r.Routes = append(r.Routes[:1:1], r.Routes[2]) }, 1},
		"down, a route that is another": {down, func(_ *Port, r *VxRouter) {
			r.Routes = append([]Route{{Prefix: r.Routes[0].Prefix, Interface: "eth1"}}, r.Routes[1:]...)
		}, 1},
	} {
		var want, have Host
		want.Add(link, router)
		port, is, r := *link.Ends[0].Port, link, router
		if port.Inside = c.inside; c.inside != (Inside{}) {
			r.Inside = map[string]Inside{"eth0": c.inside}
		}
		c.lose(&port, &r)
		is.Ends[0].Port = &port
		have.Add(is, r)
		if steps := Diff(want, have); len(steps) != c.steps {
			t.Errorf("%s: %v", what, steps)
		}
	}
}

func TestTenantsNode(t *testing.T) {
	for namespace, is := range map[string]bool{
		Namespace(theirs, "a"): true, Namespace(theirs, "sw.control"): false, Namespace(theirs, ChainHome): false, Fabric(theirs): false,
	} {
		if TenantsNode(namespace) != is {
			t.Errorf("%s is a tenant's node: %t", namespace, !is)
		}
	}
}
