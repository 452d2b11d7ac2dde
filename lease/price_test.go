package lease

import (
	"testing"
	"time"

	"sublet/vnet"
)

// TestPricesOfPlaces: hosts and links that state prices are quoted and metered beside the
// prices of the server; a lease keeps those it was admitted at, but for what it gets anew.
func TestPricesOfPlaces(t *testing.T) {
	b := pair(t)
	set := func(host, link float64) {
		t.Helper()
		sub := b.Substrate()
		sub.Hosts[1].Price, sub.Links[0].Price = host, link
		if _, err := b.Resubstrate(b.now, sub, false, false); err != nil {
			t.Fatal(err)
		}
	}
	across := func(name vnet.VNetID) vnet.Request {
		r := local(name, 10*vnet.Mbit)
		r.Nodes[1].Host, r.For = "h2", time.Hour
		return r
	}
	costs := func(when string, c *vnet.Cost, second float64, seconds float64) {
		t.Helper()
		if want := second * seconds; c == nil || c.Places != want || c.Total != c.Resource+c.Bandwidth+want {
			t.Errorf("%s: %+v, want %g for places", when, c, want)
		}
	}
	if err := b.Tick(noon); err != nil {
		t.Fatal(err)
	}
	set(3, 0.5)
	quote, err := b.Quote(noon, across("old"))
	if err != nil {
		t.Fatal(err)
	}
	costs("the quote", quote.Account.Quote, 3+10*0.5, 3600)
	old, err := b.Admit(noon, across("old"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	costs("what was admitted", old.Account.Quote, 8, 3600)
	inside, err := b.Admit(noon, local("inside", 10*vnet.Mbit), 1000)
	if err != nil {
		t.Fatal(err)
	}
	costs("what is on no place with a price", &inside.Account.Hourly, 0, 3600)

	set(7, 0)
	young, err := b.Admit(noon, across("young"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	costs("what is admitted later", young.Account.Quote, 7, 3600)
	reportAll(t, b)
	reportAll(t, b)
	old, _ = b.Lease(old.ID())
	used := old.Metered(noon.Add(10 * time.Minute)).Account.Used
	costs("ten minutes of what was admitted before", &used, 8, 600)

	more := across("old")
	more.Nodes = append(more.Nodes, vnet.VirtualNode{Name: "c", Host: "h2"})
	if _, _, err := b.Revise(noon, old.ID(), more, nil, false); err != nil {
		t.Fatal(err)
	}
	old, _ = b.Lease(old.ID())
	costs("with a new node", old.Account.Quote, 8+7, 3600)
}
