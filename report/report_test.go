package report

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

func TestReportsOfFormerAgentsAreRead(t *testing.T) {
	var r Report
	if err := json.Unmarshal([]byte(`{"errors":{"vnode a.net.n":"add: busy","host":"read"}}`), &r); err != nil {
		t.Fatal(err)
	}
	want := Errors{{Kind: "host", Text: "read"}, {Kind: plan.KindVNode, Key: "a.net.n", Text: "add: busy"}}
	if !reflect.DeepEqual(r.Errors, want) {
		t.Errorf("read %+v, want %+v", r.Errors, want)
	}
	text, err := json.Marshal(Report{Errors: want})
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again.Errors, want) {
		t.Errorf("read %+v, %v", again.Errors, err)
	}
	if err := json.Unmarshal([]byte(`{"errors":3}`), &r); err == nil {
		t.Error("a number was taken for errors")
	}
}

func TestRepairsAreTold(t *testing.T) {
	port := func(mtu int) *plan.Port { return &plan.Port{Namespace: "alice.net.r1", Interface: "eth1", MTU: mtu} }
	link := plan.VxLink{Link: "r1-r2", Ends: [2]plan.End{{Port: port(1500), Rate: 8000}, {Port: port(1500)}}}
	down, slower, deleted := link, link, link
	atSwitch := link
	atSwitch.Ends[0].Port = &plan.Port{Namespace: plan.SwitchNamespace(vnet.LeaseID{Tenant: "alice", Network: "net"}, "s1", vnet.SwitchOpenFlow), Interface: "eth0", MTU: 1500}
	down.Ends[0] = plan.End{}
	slower.Ends[0].Rate = 7000
	deleted.Ends[0] = plan.End{Lost: true}
	known := link
	known.Ends[0] = plan.End{Lost: true, Known: true}
	far := link // its other end is gone, and this one differs for that
	far.Ends = [2]plan.End{{}, {Lost: true}}
	two := link
	two.Ends[1].Port = &plan.Port{Namespace: "alice.net.r2", Interface: "eth0", MTU: 1500}
	router := plan.VxRouter{Node: "r1", Forward: true}
	way := func(prefix string) plan.Route {
		return plan.Route{Prefix: netip.MustParsePrefix(prefix), Interface: "eth0"}
	}
	routed := func(routes ...plan.Route) plan.VxRouter { return plan.VxRouter{Node: "a", Routes: routes} }
	both := routed(way("0.0.0.0/0"), way("::/0"))
	flows := plan.Switch{Switch: "s1", OpenFlow: &plan.OpenFlow{DatapathID: 1}}
	ended := plan.Switch{Switch: "s1", OpenFlow: &plan.OpenFlow{}}
	for _, c := range []struct {
		step plan.Step
		want string
	}{
		{plan.Step{Op: plan.Set, Item: flows, Was: ended}, "switch s1: its process had ended or did not answer: it was started again"},
		{plan.Step{Op: plan.Set, Item: link, Was: down}, "link r1-r2: eth1 of r1 was down or set differently, is as planned again"},
		{plan.Step{Op: plan.Set, Item: atSwitch, Was: down}, "link r1-r2: eth0 of s1 was down or set differently, is as planned again"},
		{plan.Step{Op: plan.Set, Item: link, Was: deleted}, "link r1-r2: eth1 of r1 was deleted, is there again: addresses, routes, queues and settings that were made at it by hand are lost, make them again"},
		{plan.Step{Op: plan.Set, Item: link, Was: known}, "link r1-r2: eth1 of r1 was deleted, is there again, with addresses, routes, state and MTU that it had by hand; queues, filters, neighbours and settings that were made at it by hand are lost, make them again"},
		{plan.Step{Op: plan.Set, Item: two, Was: far}, "link r1-r2: eth0 of r2 was deleted, is there again: addresses, routes, queues and settings that were made at it by hand are lost, make them again"},
		{plan.Step{Op: plan.Set, Item: link, Was: slower}, "link r1-r2: rate_bps was 7000, is 8000 again"},
		{plan.Step{Op: plan.Set, Item: plan.Setup{Node: "a"}, Was: plan.Setup{Node: "a", Lost: "what starts them had ended"}}, "programs of node a are started again: what starts them had ended"},
		{plan.Step{Op: plan.Set, Item: plan.Setup{Node: "a"}, Was: plan.Setup{Node: "a"}}, "what node a is given was not as planned, is again: its programs are started again"},
		{plan.Step{Op: plan.Add, Item: plan.VNode{Node: "a"}, Was: nil}, "node a was gone, is there again: devices, rules, filters and settings that were made in it by hand are lost, make them again"},
		{plan.Step{Op: plan.Add, Item: router, Was: nil}, "routing of r1 was gone, is there again"},
		{plan.Step{Op: plan.Delete, Item: router, Was: nil}, "routing of r1 was there, is gone again"},
		{plan.Step{Op: plan.Set, Item: router, Was: plan.VxRouter{Node: "r1"}}, "routing of r1: forward was false, is true again"},
		{plan.Step{Op: plan.Set, Item: both, Was: routed(way("::/0"))}, "routing of a: one of its routes (interface eth0, prefix 0.0.0.0/0) was gone, is there again"},
		{plan.Step{Op: plan.Set, Item: both, Was: routed()}, "routing of a: one of its routes (interface eth0, prefix 0.0.0.0/0) was gone, is there again"},
		{plan.Step{Op: plan.Set, Item: routed(way("::/0")), Was: both}, "routing of a: one of its routes (interface eth0, prefix 0.0.0.0/0) was there, is gone again"},
		{plan.Step{Op: plan.Set, Item: both, Was: routed(way("::/0"), way("10.0.0.0/8"))}, "routing of a: one of its routes (interface eth0, prefix 0.0.0.0/0) was gone, is there again"},
		{plan.Step{Op: plan.Set, Item: router, Was: router}, "routing of r1 was not as planned, is again"},
	} {
		if got := RepairText(c.step); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestWhatCannotBeReadIsOfItsLease(t *testing.T) {
	id := vnet.LeaseID{Tenant: "t", Network: "a"}
	if e := Unread(plan.Unknown{Kind: plan.KindVxLink, Lease: id, Why: "no"}); e.OfHost() || e.Lease != id || e.String() != "links of t.a cannot be read: no" {
		t.Errorf("an unknown of one lease is reported as %v", e)
	}
	if e := Unread(plan.Unknown{Kind: plan.KindVxLink, Why: "no"}); !e.OfHost() {
		t.Errorf("an unknown of everybody is reported as %v", e)
	}
}

// Every kind has a word for users, and an error says in such words what failed, where and
// why, without the names that plans have for it.
func TestErrorsAreInTheWordsOfUsers(t *testing.T) {
	for _, kind := range plan.Kinds {
		if nouns[kind] == "" {
			t.Errorf("users have no word for a %s", kind)
		}
	}
	id := vnet.LeaseID{Tenant: "t", Network: "a"}
	for want, step := range map[string]plan.Step{
		"what node n is given cannot be set up: busy":     {Op: plan.Set, Item: plan.Setup{Lease: id, Node: "n"}},
		"link l cannot be made: busy":                     {Op: plan.Add, Item: plan.VxLink{Lease: id, Link: "l", Index: 7}},
		"node n cannot be removed: busy":                  {Op: plan.Delete, Item: plan.VNode{Lease: id, Node: "n"}},
		"switch s cannot be made: busy":                   {Op: plan.Add, Item: plan.Switch{Lease: id, Switch: "s", Type: vnet.SwitchKernel}},
		"service chains cannot be set up: busy":           {Op: plan.Set, Item: plan.Chains{Lease: id}},
		"interface eth1 of the host cannot be made: busy": {Op: plan.Add, Item: plan.Uplink{Interface: "eth1"}},
	} {
		for _, text := range []string{"busy", "do it to " + step.Item.Key() + ": busy"} {
			if got := NewItemError(step, errors.New(text)).String(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
