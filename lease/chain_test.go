package lease

import (
	"errors"
	"slices"
	"testing"

	"sublet/vnet"
)

// chained asks for a chain over two hosts with a function on each.
func chained(rate vnet.Rate) vnet.Request {
	firewall := &vnet.Function{Kind: vnet.FunctionFirewall, Rules: []vnet.FunctionRule{{Flow: vnet.Packets{Protocol: vnet.ProtocolICMP}}}}
	r := vnet.Request{
		Network: "n", Tenant: "t",
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a", Host: "h1"}, {Name: "b", Host: "h1"}, {Name: "fw", Host: "h2", Function: firewall}},
			Links: []vnet.VirtualLink{{Ends: [2]string{"a", "b"}}},
		},
		Chains: []vnet.Chain{{Name: "web", From: "a", To: "b", Via: []string{"fw"}, Rate: rate}},
	}
	r.Fill()
	return r
}

// Segments of chains are booked as links are: what does not fit is refused with
// a chain of less rate among the offers, which is right in itself.
func TestChainsAreBookedAndOffered(t *testing.T) {
	b := pair(t)
	l, err := b.Admit(noon, chained(100*vnet.Mbit), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range l.Request.ChainLinks("web") {
		if len(l.Mapping.Paths(link.Name)) != 1 {
			t.Errorf("%s has no path: %v", link.Name, l.Mapping)
		}
	}
	more := chained(2 * vnet.Gbit)
	more.Network = "more"
	_, err = b.Admit(noon, more, 1000)
	var refused *vnet.Rejection
	if !errors.As(err, &refused) {
		t.Fatalf("admitted: %v", err)
	}
	found := false
	for _, o := range refused.Offers {
		rate := o.Request.Chains[0].Rate
		found = found || rate > 0 && rate < 2*vnet.Gbit
		if err := o.Request.Check(); err != nil {
			t.Errorf("offered %v: %v", o, err)
		}
	}
	if !found {
		t.Errorf("no offer of a chain with less rate: %+v", refused)
	}
}

// What is changed of the substrate does not mind chains, which have an identifier more
// than tunnels.
func TestChainsAndSubstrates(t *testing.T) {
	b := pair(t)
	if _, err := b.Admit(noon, chained(100*vnet.Mbit), 1000); err != nil {
		t.Fatal(err)
	}
	sub := b.Substrate()
	sub.Hosts = append(slices.Clone(sub.Hosts), vnet.SubstrateNode{Name: "h3"})
	if err := b.SetSubstrate(noon, sub); err != nil {
		t.Error(err)
	}
}
