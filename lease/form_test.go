package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// reformable is a book in which a network runs, and what is asked of it then: a link
// and a node go, others come in front of them.
func reformable(t *testing.T) (*Book, vnet.Lease, vnet.Request) {
	t.Helper()
	book := New(line())
	text := []string{"alice/net", "a@h0", "b@h1", "c@h1", "a-b=100", "a-c=50", "b-c=10"}
	if _, err := book.Admit(noon, parseRequest(noon, text), 0); err != nil {
		t.Fatal(err)
	}
	reportAll(t, book)
	asked := parseRequest(noon, []string{"alice/net", "n@h2", "a@h0", "b@h1", "a-n=400", "a-b=100"})
	asked.Start = time.Time{}
	l, _ := book.Lease(parseID("alice/net"))
	if l.State != vnet.Running {
		t.Fatalf("it is %s", l.State)
	}
	return book, l, asked
}

// ofStanding are what hosts have of a link or node that stays, as text.
func ofStanding(b *Book, names ...string) map[string]string {
	standing := make(map[string]string)
	for host, p := range b.Plans() {
		for _, l := range plan.Of[plan.VxLink](p) {
			for _, name := range names {
				if l.Link == name {
					standing[string(host)+" "+l.Key()] = l.String()
				}
			}
		}
	}
	return standing
}

// TestForm: what stands is what it was on its hosts, and has what it had; the
// rest comes and goes.
func TestForm(t *testing.T) {
	book, was, asked := reformable(t)
	before := ofStanding(book, "a-b")
	asked.Verify = vnet.VerifyNone // it may change beside the form
	l, changes, err := book.Revise(noon, was.ID(), asked, nil, false)
	if err != nil || len(changes) == 0 {
		t.Fatalf("%v, %v", changes, err)
	}
	for range 3 {
		reportAll(t, book)
	}
	l, _ = book.Lease(was.ID())
	switch {
	case l.Request.Verify != vnet.VerifyNone:
		t.Errorf("verify is %q", l.Request.Verify)
	case l.State != vnet.Running || l.Move != nil || l.Undone != "":
		t.Errorf("it is %s, %+v, %q", l.State, l.Move, l.Undone)
	case !reflect.DeepEqual(ofStanding(book, "a-b"), before) || len(before) == 0:
		t.Errorf("what stands was %v and is %v", before, ofStanding(book, "a-b"))
	case l.Addresses["a"] != was.Addresses["a"] || l.Addresses["b"] != was.Addresses["b"] || !l.Addresses["n"].IsValid() || l.Addresses["c"].IsValid():
		t.Errorf("addresses were %v and are %v", was.Addresses, l.Addresses)
	case l.Mapping.Nodes["n"] != "h2" || l.Mapping.Nodes["c"] != "" || len(l.VNIs["a-n"]) == 0 || l.VNIs["a-c"] != nil:
		t.Errorf("it is on %v with %v", l.Mapping.Nodes, l.VNIs)
	case len(ofStanding(book, "a-c", "b-c")) > 0:
		t.Errorf("hosts still have %v", ofStanding(book, "a-c", "b-c"))
	}
	if _, again, err := book.Revise(noon, was.ID(), asked, nil, false); err != nil || len(again) > 0 {
		t.Errorf("asked for again: %v, %v", again, err)
	}
}

// TestFormIsTakenBack when a host cannot build it: the network is what it was,
// and says why.
func TestFormIsTakenBack(t *testing.T) {
	book, was, asked := reformable(t)
	before := ofStanding(book, "a-b", "a-c", "b-c")
	if _, _, err := book.Revise(noon, was.ID(), asked, nil, false); err != nil {
		t.Fatal(err)
	}
	p, _ := book.Plan("h2")
	step := plan.Step{Op: plan.Add, Item: plan.VNode{Lease: was.ID(), Node: "n"}}
	if err := book.Report(noon, report.Report{Host: "h2", Tried: p.Revision, Errors: report.Errors{report.NewItemError(step, errors.New("no room"))}}); err != nil {
		t.Fatal(err)
	}
	if err := book.Tick(noon); err != nil {
		t.Fatal(err)
	}
	l, _ := book.Lease(was.ID())
	if l.Undone == "" || !reflect.DeepEqual(l.Request, was.Request) || !maps.Equal(l.Addresses, was.Addresses) || !reflect.DeepEqual(l.VNIs, was.VNIs) {
		t.Fatalf("undone %q; it is %+v", l.Undone, l)
	}
	for range 3 {
		reportAll(t, book)
	}
	if l, _ = book.Lease(was.ID()); l.State != vnet.Running || l.Move != nil || !reflect.DeepEqual(ofStanding(book, "a-b", "a-c", "b-c"), before) {
		t.Errorf("it is %s, %+v; hosts have %v instead of %v", l.State, l.Move, ofStanding(book, "a-b", "a-c", "b-c"), before)
	}
}

// TestFormsOffer: what does not fit beside what stands is offered with less.
func TestFormsOffer(t *testing.T) {
	book, was, asked := reformable(t)
	for i := range asked.Links {
		if asked.Links[i].Name == "a-n" {
			asked.Links[i].Bandwidth = [2]vnet.Bandwidth{vnet.Static(700 * vnet.Mbit), vnet.Static(700 * vnet.Mbit)}
		}
	}
	_, _, err := book.Revise(noon, was.ID(), asked, nil, false)
	var refused *vnet.Rejection
	if !errors.As(err, &refused) || refused.Offer == nil {
		t.Fatalf("got %v", err)
	}
	if link, _ := refused.Offer.Link("a-n"); link.Bandwidth[0].Min < 590*vnet.Mbit || link.Bandwidth[0].Min > 600*vnet.Mbit {
		t.Errorf("offered %s", link.Bandwidth[0])
	}
	if _, _, err := book.Revise(noon, was.ID(), *refused.Offer, nil, false); err != nil {
		t.Errorf("the offer: %v", err)
	}
}

// TestRoutersAreToldAnother: what routers of a running network are told changes, for
// them and for those whom it concerns, and for no other.
func TestRoutersAreToldAnother(t *testing.T) {
	book := New(line())
	asked := parseRequest(noon, []string{"alice/net", "a@h0", "b@h1", "a-b=10"})
	var names []string
	for i, l := range []string{"r1-r2", "r2-r3", "r3-r4"} {
		ends := [2]string{l[:2], l[3:]}
		asked.Links = append(asked.Links, vnet.VirtualLink{Name: l, Ends: ends, Bandwidth: asked.Links[0].Bandwidth})
		if names = append(names, ends[1]); i == 0 {
			names = append(names, ends[0])
		}
	}
	for _, name := range names {
		asked.Routers = append(asked.Routers, vnet.VirtualNode{Name: name, Protocol: vnet.ProtocolOSPF})
	}
	was, err := book.Admit(noon, asked, 0)
	if err != nil {
		t.Fatal(err)
	}
	reportAll(t, book)
	asked.Start = time.Time{}
	for _, c := range []struct {
		change  func(r *vnet.Request)
		routers string
		says    string
	}{
		{func(r *vnet.Request) { routerOf(r, "r4").FRR = "ip route 10.77.0.0/16 blackhole\n" }, "r4", "frr of r4"},
		{func(r *vnet.Request) { r.Links[1].Cost = 7 }, "r1 r2", "cost of r1-r2"},
		{func(r *vnet.Request) { r.Links[1].Area = 3 }, "r1 r2", "area of r1-r2"},
		{func(r *vnet.Request) {
			*routerOf(r, "r4") = vnet.VirtualNode{Name: "r4", Protocol: vnet.ProtocolStatic}
		}, "r3 r4", "protocol of r4"},
		{func(r *vnet.Request) {
			*routerOf(r, "r4") = vnet.VirtualNode{Name: "r4", Protocol: vnet.ProtocolBGP, AS: 65001, Neighbors: []vnet.Neighbor{{Address: netip.MustParseAddr("10.9.9.9"), AS: 65002}}}
		}, "r4", "neighbors of r4"},
	} {
		before := toldRouters(book)
		c.change(&asked)
		_, changes, err := book.Revise(noon, was.ID(), asked, nil, false)
		if err != nil || !strings.Contains(fmt.Sprint(changes), c.says) || !strings.Contains(fmt.Sprint(changes), "begins anew") {
			t.Fatalf("%s: %v, %v", c.says, changes, err)
		}
		for range 3 {
			reportAll(t, book)
		}
		var told []string
		for name, now := range toldRouters(book) {
			if before[name] != now {
				told = append(told, name)
			}
		}
		if slices.Sort(told); strings.Join(told, " ") != c.routers {
			t.Errorf("%s: %v are told another, want %s", c.says, told, c.routers)
		}
	}
}

func routerOf(r *vnet.Request, name string) *vnet.VirtualNode {
	return &r.Routers[slices.IndexFunc(r.Routers, func(n vnet.VirtualNode) bool { return n.Name == name })]
}

// toldRouters is what hosts have to tell routers, as text.
func toldRouters(b *Book) map[string]string {
	all := make(map[string]string)
	for _, p := range b.Plans() {
		for _, r := range plan.Of[plan.VxRouter](p) {
			if text, err := json.Marshal(r); err == nil && strings.HasPrefix(r.Node, "r") {
				all[r.Node] = string(text)
			}
		}
	}
	return all
}

// TestWaitingOpensWhenTheOtherEnds: a lease that waits for the move of another one begins
// in the very tick that ends the other's window.
func TestWaitingOpensWhenTheOtherEnds(t *testing.T) {
	book := New(line())
	waits := parseRequest(noon, []string{"alice/waits", "a@h0", "b@h1", "a-b=100"})
	waits.Start, waits.For = noon.Add(30*time.Minute), 2*time.Hour
	ends := parseRequest(noon, []string{"bob/ends", "a@h0", "b@h1", "a-b=100"})
	ends.For = time.Hour
	for _, r := range []vnet.Request{waits, ends} {
		if _, err := book.Admit(noon, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	reportAll(t, book)
	asked := parseRequest(noon, []string{"bob/ends", "a@h0", "b@h1", "c@h1", "a-b=100", "a-c=50"})
	asked.Start, asked.For = time.Time{}, time.Hour
	if _, _, err := book.Revise(noon, parseID("bob/ends"), asked, nil, false); err != nil {
		t.Fatal(err)
	}
	now := noon.Add(time.Hour)
	if err := book.Tick(now); err != nil {
		t.Fatal(err)
	}
	if l, _ := book.Lease(parseID("alice/waits")); l.State == vnet.Booked {
		t.Errorf("it is %s: %s", l.State, l.Message)
	}
	if next := book.Next(now); !next.After(now) {
		t.Errorf("next is %s, now %s", next, now)
	}
}
