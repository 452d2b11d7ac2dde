package lease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	said := strings.Join(refused.Reasons, "; ")
	for _, o := range refused.Offers {
		for _, c := range o.Changes {
			said += "; " + c.What
		}
	}
	if !strings.Contains(said, "rate of chain web") || !strings.Contains(said, "chain web from ") || strings.Contains(said, "web-") {
		t.Errorf("the refusal is not in words of chains: %s", said)
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

// The functions of an unordered chain are passed in the order that takes least
// bandwidth, which stays when the same is asked for again.
func TestUnorderedChains(t *testing.T) {
	request := func(unordered bool, hosts ...string) vnet.Request {
		r := chained(100 * vnet.Mbit)
		r.Links = r.Links[:1]
		r.Nodes[0].Host, r.Nodes[1].Host = "h1", "h2"
		fw := r.Nodes[2]
		r.Nodes = r.Nodes[:2]
		r.Chains[0].Via, r.Chains[0].Unordered = nil, unordered
		for i, host := range hosts {
			fw.Name, fw.Host = fmt.Sprint("f", i), vnet.HostID(host)
			r.Nodes = append(r.Nodes, fw)
			r.Chains[0].Via = append(r.Chains[0].Via, fw.Name)
		}
		return r
	}
	for _, c := range []struct {
		hosts []string
		want  []string
		hops  int
	}{
		{[]string{"h2", "h1"}, []string{"f1", "f0"}, 1},
		{[]string{"h1", "h2"}, []string{"f0", "f1"}, 1},
		{[]string{"h2", "h1", "h1"}, []string{"f1", "f2", "f0"}, 1},
		{[]string{"h2", "h1", "h2", "h1"}, []string{"f1", "f3", "f0", "f2"}, 1},
	} {
		b := pair(t)
		l, err := b.Admit(noon, request(true, c.hosts...), 1000)
		if err != nil {
			t.Fatal(err)
		}
		hops := 0
		for _, link := range l.Request.ChainLinks("web") {
			hops += len(l.Mapping.Links[link.Name])
		}
		via := l.Request.Chains[0].Via
		if hops != c.hops || !slices.Equal(via, c.want) || l.Request.Chains[0].Unordered != true {
			t.Errorf("functions at %v: %v over %d links, want %v over %d", c.hosts, via, hops, c.want, c.hops)
		}
		again := request(true, c.hosts...)
		again.Tenant, again.Start = l.Request.Tenant, time.Time{}
		if _, changes, err := b.Revise(noon, l.ID(), again, nil, false); err != nil || len(changes) != 0 {
			t.Errorf("the same changes %v, %v", changes, err)
		}
	}
	b := pair(t)
	bare := request(false, "h2", "h1")
	bare.Chains = nil
	l, err := b.Admit(noon, bare, 1000)
	if err != nil {
		t.Fatal(err)
	}
	added := request(true, "h2", "h1")
	added.Tenant = l.Request.Tenant
	if l, _, err = b.Revise(noon, l.ID(), added, nil, false); err != nil {
		t.Fatal(err)
	}
	if via := l.Request.Chains[0].Via; !slices.Equal(via, []string{"f1", "f0"}) {
		t.Errorf("the functions of an added chain are passed in the order %v", via)
	}
	narrow := request(true, "h2", "h1") // as it is written it goes from h1 to h2 twice
	narrow.Chains[0].Rate = 600 * vnet.Mbit
	if _, err := pair(t).Admit(noon, narrow, 1000); err != nil {
		t.Errorf("it fits in one order: %v", err)
	}
	narrow.Chains[0].Unordered = false
	var refused *vnet.Rejection
	if _, err := pair(t).Admit(noon, narrow, 1000); !errors.As(err, &refused) {
		t.Errorf("in its order it does not fit: %v", err)
	}
}

// Rates that cost a function more than a core by its profile are refused with the
// highest that do not as an offer, which is admitted; a lease whose chain asks for more
// than that stays as it is.
func TestRatesAboveACoreAreOffered(t *testing.T) {
	b := pair(t)
	asked := chained(100 * vnet.Mbit)
	profile := vnet.Processing{Fixed: 1e-4, Packet: 500} // 42 Mbit/s with a twentieth to spare: 38 Mbit/s
	for i, n := range asked.Nodes {
		if n.IsFunction() {
			asked.Nodes[i].Setup.Run = []vnet.Program{{Cmd: []string{"sleep", "infinity"}}}
			asked.Nodes[i].Function = &vnet.Function{Kind: vnet.FunctionProgram, Auto: &profile}
		}
	}
	_, err := b.Admit(noon, asked, 1000)
	var refused *vnet.Rejection
	if !errors.As(err, &refused) || !strings.Contains(strings.Join(refused.Reasons, "; "), "cores by its profile") {
		t.Fatalf("admitted, or refused without the reason: %v", err)
	}
	if len(refused.Offers) == 0 {
		t.Fatalf("nothing is offered: %+v", refused)
	}
	offered := refused.Offers[0].Request
	if rate := offered.Chains[0].Rate; rate < 37*vnet.Mbit || rate > 39*vnet.Mbit {
		t.Errorf("offered are %s", rate)
	}
	l, err := b.Admit(noon, offered, 1000)
	if err != nil {
		t.Fatalf("what was offered is refused: %v", err)
	}
	_, _, err = b.Revise(noon, l.ID(), asked, nil, false)
	if !errors.As(err, &refused) {
		t.Errorf("a change to more than a core: %v", err)
	}
	if now, _ := b.Lease(l.ID()); now.Request.Chains[0].Rate != offered.Chains[0].Rate {
		t.Errorf("the lease has %s now", now.Request.Chains[0].Rate)
	}
}
