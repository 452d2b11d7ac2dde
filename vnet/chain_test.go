package vnet

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// twoChains is a request that is right: a chain through a firewall and a program.
func twoChains() Request {
	rules := []FunctionRule{{Flow: Packets{Protocol: ProtocolTCP, DstPort: PortRange{First: 23, Last: 23}}}}
	return Request{
		Network: "n", Tenant: "t",
		Topology: Topology{
			Nodes: []VirtualNode{
				{Name: "a"}, {Name: "b"}, {Name: "c"},
				{Name: "fw", Function: &Function{Kind: FunctionFirewall, Rules: rules, Rate: 100 * Mbit}},
				{Name: "ids", Setup: Setup{Run: []Program{{Cmd: []string{"true"}}}}, Function: &Function{Kind: FunctionProgram, Auto: new(Processing)}},
			},
			Switches: []VirtualSwitch{{Name: "s"}},
			Links:    []VirtualLink{{Ends: [2]string{"a", "b"}}, {Ends: [2]string{"a", "s"}}},
		},
		Chains: []Chain{{Name: "web", From: "a", To: "b", Via: []string{"fw", "ids"}, Rate: 50 * Mbit}},
	}
}

// Each mistake in functions and chains is told in one line, with its place.
func TestBadChains(t *testing.T) {
	chain := func(change func(*Chain)) func(*Request) {
		return func(r *Request) { change(&r.Chains[0]) }
	}
	function := func(change func(*Function)) func(*Request) {
		return func(r *Request) { change(r.Nodes[3].Function) }
	}
	balanced := func(change func(*Request)) func(*Request) {
		return func(r *Request) {
			r.Nodes[3].Function = &Function{Kind: FunctionBalancer, Service: netip.MustParseAddr("203.0.113.1"), Nodes: []string{"b"}}
			r.Chains[0].Via, r.Chains[0].Reverse = []string{"fw"}, ReverseMirror
			change(r)
		}
	}
	for name, c := range map[string]struct {
		change func(*Request)
		says   string
	}{
		"right":                     {func(*Request) {}, ""},
		"unused function":           {chain(func(c *Chain) { c.Via = []string{"fw"} }), ""},
		"loop to its beginning":     {chain(func(c *Chain) { c.To = "a" }), `chains[0].to: the chain begins at "a" too, and would be a loop`},
		"loop through a function":   {chain(func(c *Chain) { c.Via = []string{"fw", "ids", "fw"} }), `chains[0].via[2]: the chain has been at "fw" before, and would be a loop`},
		"loop through an end":       {chain(func(c *Chain) { c.Via = []string{"fw", "b"} }), `chains[0].via[1]: "b" is an end of the chain, which would be a loop`},
		"one interface":             {chain(func(c *Chain) { c.Via = []string{"c"} }), `chains[0].via[0]: "c" is a node without a second interface`},
		"switch":                    {chain(func(c *Chain) { c.Via = []string{"s"} }), `chains[0].via[0]: "s" is a switch, and no function`},
		"unknown function":          {chain(func(c *Chain) { c.Via = []string{"fx"} }), `chains[0].via[0]: there is no function "fx"`},
		"unknown node":              {chain(func(c *Chain) { c.From = "x" }), `chains[0].from: there is no node "x"`},
		"no function":               {chain(func(c *Chain) { c.Via = nil }), "chains[0].via: 0 functions are not between 1 and"},
		"from a function":           {chain(func(c *Chain) { c.From = "fw" }), `chains[0].from: "fw" is a function`},
		"no link beside":            {chain(func(c *Chain) { c.To = "c" }), `chains[0].to: "c" has no link beside the chain`},
		"more than a function can":  {chain(func(c *Chain) { c.Rate = 200 * Mbit }), "chains[0].via[0]: fw passes 100Mbit, and chains through it ask for 200Mbit"},
		"back it is twice as much":  {chain(func(c *Chain) { c.Rate, c.Reverse = 60*Mbit, ReverseMirror }), "chains[0].via[0]: fw passes 100Mbit, and chains through it ask for 120Mbit"},
		"same of two":               {chain(func(c *Chain) { c.Reverse = ReverseSame }), ""},
		"same of two takes twice":   {chain(func(c *Chain) { c.Rate, c.Reverse = 60*Mbit, ReverseSame }), "chains[1].via[0]: fw passes 100Mbit, and chains through it ask for 120Mbit"},
		"same in any order":         {chain(func(c *Chain) { c.Reverse, c.Unordered = ReverseSame, true }), "chains[0].reverse: same is for chains in the order that is stated"},
		"unknown reverse":           {chain(func(c *Chain) { c.Reverse = "twice" }), `chains[0].reverse: "twice" is not known`},
		"bypass":                    {chain(func(c *Chain) { c.OnFailure = FailureBypass }), ""},
		"reroute to nowhere":        {chain(func(c *Chain) { c.OnFailure = FailureReroute }), "nodes[4].function.standby: is missing: chain web goes to another instance"},
		"standby of a firewall":     {function(func(f *Function) { f.Standby = "ids" }), "nodes[3].function.standby: a firewall is built in"},
		"standby is itself":         {func(r *Request) { r.Nodes[4].Function.Standby = "ids" }, "nodes[4].function.standby: ids cannot stand by for itself"},
		"standby is a node":         {func(r *Request) { r.Nodes[4].Function.Standby = "c" }, `nodes[4].function.standby: there is no function "c"`},
		"standby is a firewall":     {func(r *Request) { r.Nodes[4].Function.Standby = "fw" }, "nodes[4].function.standby: fw is a firewall"},
		"too patient":               {func(r *Request) { r.Nodes[4].Function.Patience = time.Hour }, "nodes[4].function.patience: 1h is not between 20ms and 1m"},
		"unknown failure":           {chain(func(c *Chain) { c.OnFailure = "panic" }), `chains[0].on-failure: "panic" is not known`},
		"best through auto":         {chain(func(c *Chain) { c.Rate = 0 }), "chain web leads through ids without a rate"},
		"ports of everything":       {chain(func(c *Chain) { c.Match.DstPort = PortRange{First: 80, Last: 80} }), "chains[0].match.dst_port: only tcp and udp have ports"},
		"dscp":                      {chain(func(c *Chain) { c.Match.DSCP = new(uint8); *c.Match.DSCP = 64 }), "chains[0].match.dscp: 64 is no DSCP"},
		"priority":                  {chain(func(c *Chain) { c.Priority = 8 }), "chains[0].priority: 8 is none: choose 0 to 7"},
		"vlan":                      {chain(func(c *Chain) { c.Match.VLAN = new(uint16); *c.Match.VLAN = 4095 }), "chains[0].match.vlan: 4095 is no VLAN"},
		"back by dscp":              {chain(func(c *Chain) { c.Match.DSCP, c.Reverse = new(uint8), ReverseMirror }), "chains[0].reverse: mirror is not offered for a match with dscp"},
		"twice":                     {func(r *Request) { r.Chains = append(r.Chains, r.Chains[0]) }, `chains[1].name: there is a chain "web" already`},
		"unknown kind":              {function(func(f *Function) { f.Kind = "teapot" }), `nodes[3].function.kind: "teapot" is no kind of function`},
		"balancer":                  {balanced(func(*Request) {}), ""},
		"balancer with rules":       {function(func(f *Function) { f.Kind = FunctionBalancer }), "nodes[3].function.rules: only a firewall or a classifier has rules"},
		"no service":                {balanced(func(r *Request) { r.Nodes[3].Function.Service = netip.Addr{} }), "nodes[3].function.service: is missing"},
		"service of IPv6":           {balanced(func(r *Request) { r.Nodes[3].Function.Service = netip.MustParseAddr("2001:db8::1") }), "nodes[3].function.service: 2001:db8::1 is no address of IPv4"},
		"nodes of nobody":           {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = nil }), "nodes[3].function.nodes: 0 nodes are not 1 to 64"},
		"node twice":                {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = []string{"b", "b"} }), `nodes[3].function.nodes[1]: "b" is there already`},
		"node that is not there":    {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = []string{"b", "x"} }), `nodes[3].function.nodes[1]: there is no node "x"`},
		"node that sends":           {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = []string{"b", "a"} }), `nodes[3].function.nodes[1]: chain web comes from "a", and would be a loop`},
		"node without a link":       {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = []string{"b", "c"} }), `nodes[3].function.nodes[1]: "c" has no link beside chains`},
		"end that is no node":       {balanced(func(r *Request) { r.Nodes[3].Function.Nodes = []string{"c"} }), `chains[0].to: "b" is none of the nodes of fw`},
		"behind a balancer":         {balanced(func(r *Request) { r.Chains[0].Via = []string{"fw", "ids"} }), "chains[0].via[0]: fw leads to nodes, and no function can follow it"},
		"balancer and no way back":  {balanced(func(r *Request) { r.Chains[0].Reverse = "" }), "chains[0].reverse: is missing: answers come back to fw"},
		"not for the service":       {balanced(func(r *Request) { r.Chains[0].Match.Dst = netip.MustParsePrefix("10.0.0.0/8") }), "chains[0].match.dst: 10.0.0.0/8 leaves out 203.0.113.1"},
		"nodes of a firewall":       {function(func(f *Function) { f.Nodes = []string{"b"} }), "nodes[3].function.nodes: only a balancer has it"},
		"impatient balancer":        {balanced(func(r *Request) { r.Nodes[3].Function.Patience = MinPatience }), "nodes[3].function.patience: 20ms is not between 400ms and 1m"},
		"port of nobody":            {balanced(func(r *Request) { r.Nodes[3].Function.Publish = 80 }), "nodes[3].function.port: is missing"},
		"publishes what it has not": {balanced(func(r *Request) { r.Nodes[3].Function.Publish, r.Nodes[3].Function.Port = 80, 8080 }), "chains[0].match: leaves out port 80"},
		"ports of a firewall":       {function(func(f *Function) { f.Ports = PortRange{First: 1, Last: 2} }), "nodes[3].function.ports: only a nat has ports"},
		"ports of a nat": {function(func(f *Function) {
			*f = Function{Kind: FunctionNAT, Prefix: netip.MustParsePrefix("198.51.100.0/28"), Ports: PortRange{First: 9, Last: 2}}
		}), "nodes[3].function.ports: 9-2 is no range"},
		"classifier":               {function(func(f *Function) { *f = Function{Kind: FunctionClassifier, Rules: []FunctionRule{{Chain: "web"}}} }), ""},
		"classifier without rules": {function(func(f *Function) { *f = Function{Kind: FunctionClassifier} }), "nodes[3].function.rules: is missing: state what goes to another chain"},
		"classifier that denies":   {function(func(f *Function) { f.Kind, f.Rate = FunctionClassifier, 0 }), "nodes[3].function.rules[0].chain: is missing: a classifier neither allows nor denies"},
		"firewall that classifies": {function(func(f *Function) { f.Rules[0].Chain = "web" }), "nodes[3].function.rules[0].chain: only a classifier moves packets"},
		"classifier to no chain":   {function(func(f *Function) { *f = Function{Kind: FunctionClassifier, Rules: []FunctionRule{{Chain: "x"}}} }), `nodes[3].function.rules[0].chain: there is no chain "x"`},
		"classifier to a stranger": {func(r *Request) {
			r.Nodes[3].Function = &Function{Kind: FunctionClassifier, Rules: []FunctionRule{{Chain: "other"}}}
			r.Chains = append(r.Chains, Chain{Name: "other", From: "a", To: "b", Via: []string{"ids"}, Rate: Mbit})
		}, "nodes[3].function.rules[0].chain: chain other does not lead through fw"},
		"transport":      {chain(func(c *Chain) { c.Transport = "pigeon" }), `chains[0].transport: "pigeon" is not known: choose udp or gpe`},
		"compat":         {chain(func(c *Chain) { c.Compat = 60002 }), "chains[0].compat: 60002 is no port"},
		"IPv6":           {chain(func(c *Chain) { c.Match.Dst = netip.MustParsePrefix("2001:db8::/64") }), ""},
		"IPv6 to nobody": {chain(func(c *Chain) { c.Match.Src = netip.MustParsePrefix("2001:db8::/64") }), "chains[0].match.dst: is missing: the address of b is of IPv4"},
		"IPv6 back to nobody": {chain(func(c *Chain) {
			c.Rate, c.Match.Dst, c.Reverse = 10*Mbit, netip.MustParsePrefix("2001:db8::/64"), ReverseMirror
		}), "chains[0].match.src: is missing: the address of a is of IPv4"},
		"two families": {chain(func(c *Chain) {
			c.Match.Dst, c.Match.Src = netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("10.0.0.0/8")
		}), "chains[0].match.dst: 2001:db8::/64 is not of the family of src"},
		"IPv6 through a balancer": {balanced(func(r *Request) {
			r.Chains[0].Match.Dst, r.Chains[0].Match.Src = netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("2001:db8::/64")
		}), "chains[0].via[0]: fw works on IPv4"},
		"prefix of a balancer":   {balanced(func(r *Request) { r.Nodes[3].Function.Prefix = netip.MustParsePrefix("10.0.0.0/8") }), "nodes[3].function.prefix: only a nat has a prefix"},
		"mirror":                 {function(func(f *Function) { *f = Function{Kind: FunctionMirror, To: "c"} }), ""},
		"mirror without a node":  {function(func(f *Function) { *f = Function{Kind: FunctionMirror} }), "nodes[3].function.to: is missing"},
		"mirror to nobody":       {function(func(f *Function) { *f = Function{Kind: FunctionMirror, To: "x"} }), `nodes[3].function.to: there is no node "x"`},
		"mirror to a function":   {function(func(f *Function) { *f = Function{Kind: FunctionMirror, To: "ids"} }), `nodes[3].function.to: "ids" is a function`},
		"copies of a firewall":   {function(func(f *Function) { f.To = "c" }), "nodes[3].function.to: only a mirror has"},
		"firewall without rules": {function(func(f *Function) { f.Rules = nil }), "nodes[3].function.rules: is missing"},
		"nat without a prefix":   {function(func(f *Function) { *f = Function{Kind: FunctionNAT} }), "nodes[3].function.prefix: is missing"},
		"limiter without a rate": {function(func(f *Function) { *f = Function{Kind: FunctionLimiter} }), "nodes[3].function.rate: is missing"},
	} {
		r := twoChains()
		c.change(&r)
		r.Fill()
		err := r.Check()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, and not %s", name, err, c.says)
		}
	}
}

// A mirror has a link to the node that gets its copies, which has what all chains
// through it ask for, as long as there are any. Where less is offered, they have less.
func TestCopiesHaveALink(t *testing.T) {
	r := twoChains()
	r.Nodes[3].Function = &Function{Kind: FunctionMirror, To: "c"}
	r.Chains = append(r.Chains, Chain{Name: "back", From: "b", To: "a", Via: []string{"fw"}, Rate: 20 * Mbit, Reverse: ReverseMirror})
	r.Fill()
	own := func() (list []VirtualLink) {
		for _, l := range r.Links {
			if l.Sender() == "fw" {
				list = append(list, l)
			}
		}
		return list
	}
	if list := own(); len(list) != 1 || list[0].Ends != [2]string{"fw", "c"} || list[0].Bandwidth != [2]Bandwidth{Static(90 * Mbit)} {
		t.Fatalf("own links: %+v", list)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	names := r.Numbering().Interfaces[own()[0].Name]
	if names != [2]string{"", "eth0"} {
		t.Errorf("interfaces of the copies' link: %v", names)
	}
	r.Links = slices.Clone(r.Links)
	for i := range r.Links {
		if r.Links[i].Sender() == "fw" {
			r.Links[i].Bandwidth[Forward] = Static(45 * Mbit)
		}
	}
	if r.Check() == nil {
		t.Error("copies with half of what they need are taken")
	}
	r.FollowLinks()
	if err := r.Check(); err != nil || r.Chains[0].Rate != 25*Mbit || r.Chains[1].Rate != 10*Mbit || own()[0].Bandwidth[Forward] != Static(45*Mbit) {
		t.Errorf("with half for copies: %v, chains of %s and %s, %+v", err, r.Chains[0].Rate, r.Chains[1].Rate, own())
	}
	for i := range r.Chains {
		r.Chains[i].Via = []string{"ids"}
	}
	r.Links = nil
	r.Fill()
	if list := own(); len(list) != 0 {
		t.Errorf("a mirror of no chain has %+v", list)
	}
}

// A program has links to its standby and back, with the rates of the chains that go
// there when it dies, in each direction.
func TestStandbysHaveLinks(t *testing.T) {
	r := twoChains()
	r.Nodes[4].Function.Standby = "ids2"
	r.Nodes = append(r.Nodes, VirtualNode{Name: "ids2", Setup: r.Nodes[4].Setup, Function: &Function{Kind: FunctionProgram}})
	r.Chains = append(r.Chains, Chain{Name: "back", From: "b", To: "a", Via: []string{"ids"}, Rate: 20 * Mbit, Reverse: ReverseMirror})
	r.Fill()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if slices.ContainsFunc(r.Links, func(l VirtualLink) bool { return l.Sender() != "" }) {
		t.Errorf("links to a standby that no chain goes to: %+v", r.Links)
	}
	for i := range r.Chains {
		r.Chains[i].OnFailure = FailureReroute
	}
	r.Fill()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	var ends [][2]string
	for _, l := range r.Links {
		if l.Sender() != "" {
			ends = append(ends, l.Ends)
			if l.Bandwidth != [2]Bandwidth{Static(70 * Mbit), Static(20 * Mbit)} || !r.ReachesNode(l, len(ends)%2) || r.ReachesNode(l, 1-len(ends)%2) {
				t.Errorf("%+v", l)
			}
		}
	}
	if !slices.Equal(ends, [][2]string{{"ids", "ids2"}, {"ids2", "ids"}}) {
		t.Errorf("own links between %v", ends)
	}
	r.Chains[0].Via = []string{"ids", "ids2"}
	r.Links = slices.DeleteFunc(r.Links, func(l VirtualLink) bool { return l.Chain != "" })
	r.Fill()
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "leads through ids2 already") {
		t.Errorf("a standby on the same chain: %v", err)
	}
}

// A balancer has a link to each of its nodes: with what its chains ask for that end at
// another one, in both directions, and with nothing promised to their own end.
func TestNodesOfBalancersHaveLinks(t *testing.T) {
	r := twoChains()
	r.Nodes[3].Function = &Function{Kind: FunctionBalancer, Service: netip.MustParseAddr("203.0.113.1"), Nodes: []string{"b", "c"}}
	r.Links = append(r.Links, VirtualLink{Ends: [2]string{"a", "c"}})
	r.Chains[0].Via, r.Chains[0].Reverse = []string{"fw"}, ReverseMirror
	r.Chains = append(r.Chains, r.Chains[0])
	r.Chains[1].Name, r.Chains[1].To, r.Chains[1].Rate = "other", "c", 20*Mbit
	r.Fill()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	rates := make(map[string][2]Bandwidth)
	for _, l := range r.Links {
		if l.Sender() == "fw" {
			rates[l.Ends[1]] = l.Bandwidth
			if r.ReachesNode(l, 0) || r.ReachesNode(l, 1) {
				t.Errorf("%s has an interface in a node", l.Name)
			}
		}
	}
	if want := map[string][2]Bandwidth{"b": {Static(20 * Mbit), Static(20 * Mbit)}, "c": {Static(50 * Mbit), Static(50 * Mbit)}}; !maps.Equal(rates, want) {
		t.Errorf("links to nodes have %v", rates)
	}
	r.Chains[0].Unordered, r.Chains[0].Via = true, []string{"ids", "fw"}
	r.Links = slices.DeleteFunc(r.Links, func(l VirtualLink) bool { return l.Chain != "" })
	r.Fill()
	if orders := r.Orders(Request{}); len(orders) != 1 {
		t.Errorf("%d orders of a chain whose balancer is last", len(orders))
	}
}

// What no chain leads through books the least that there is.
func TestUnusedFunctions(t *testing.T) {
	r := twoChains()
	r.Chains[0].Via = []string{"fw"}
	r.Fill()
	if n, _ := r.Node("ids"); n.CPU != MinCPU {
		t.Errorf("a function of no chain books %s cores", n.CPU)
	}
}

// A chain has another generation if its hops change, and else the one it had.
func TestGenerationsOfChains(t *testing.T) {
	was := twoChains()
	was.Fill()
	numbers := was.Numbering()
	for i, via := range [][]string{{"fw", "ids"}, {"fw"}, {"fw"}, {"fw", "ids"}} {
		is := twoChains()
		is.Chains[0].Via = via
		is.Fill()
		numbers = is.Renumbered(numbers, was.Topology)
		if got := numbers.Chains["web"]; got != []int{0, 1, 1, 2}[i] {
			t.Errorf("via %v: generation %d", via, got)
		}
		was = is
	}
}

// Answers that pass several functions in the same order have a chain of their own, which
// takes what answers the other one. Filling in once more changes nothing.
func TestAnswersHaveAChainOfTheirOwn(t *testing.T) {
	r := twoChains()
	r.Chains[0].Reverse, r.Chains[0].Match = ReverseSame, Packets{Protocol: ProtocolTCP, DstPort: PortRange{First: 80, Last: 80}}
	r.Fill()
	r.Fill()
	if len(r.Chains) != 2 {
		t.Fatalf("chains %+v", r.Chains)
	}
	back := r.Chains[1]
	if back.Name != "web-back" || back.From != "b" || back.To != "a" || !slices.Equal(back.Via, []string{"fw", "ids"}) || back.Rate != 50*Mbit ||
		back.Match.SrcPort != (PortRange{First: 80, Last: 80}) || back.Match.DstPort != (PortRange{}) {
		t.Errorf("answers have %+v", back)
	}
	if len(r.ChainLinks("web")) != 3 || len(r.ChainLinks("web-back")) != 3 {
		t.Errorf("links %+v", r.Links)
	}
}
