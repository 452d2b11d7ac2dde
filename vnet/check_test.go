package vnet

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestCheckAccepts(t *testing.T) {
	r := staged()
	r.Fill()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	router := Request{Network: "n", Topology: Topology{Routers: []VirtualNode{{Name: "r"}}}}
	router.Fill()
	if err := router.Check(); err != nil {
		t.Errorf("a router alone: %v", err)
	}
}

// Every rule: a change to a good request, the path it is found at, and a word
// of the problem.
func TestCheckRefuses(t *testing.T) {
	address := netip.MustParseAddr
	for _, c := range []struct {
		name   string
		change func(*Request)
		path   string
		word   string
	}{
		{"no network", func(r *Request) { r.Network = "" }, "network", "missing"},
		{"odd network", func(r *Request) { r.Network = "../x" }, "network", "not a name"},
		{"odd tenant", func(r *Request) { r.Tenant = "a b" }, "tenant", "not a name"},
		{"past", func(r *Request) { r.Start = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) }, "window.start", "year"},
		{"backwards", func(r *Request) { r.For = -1 }, "window.for", "between"},
		{"eternal", func(r *Request) { r.For = MaxDuration + 1 }, "window.for", "ten years"},
		{"nothing", func(r *Request) { r.Topology, r.Stages = Topology{}, nil }, "nodes", "at least one"},
		{"odd node", func(r *Request) { r.Nodes[1].Name = "-" }, "nodes[1].name", "not a name"},
		{"same names", func(r *Request) { r.Nodes[1].Name = "n1" }, "nodes[1].name", "already"},
		{"node as router", func(r *Request) { r.Routers[0].Name = "n1" }, "routers[0].name", "already"},
		{"link as node", func(r *Request) { r.Links[0].Name = "n1" }, "links[0].name", "already"},
		{"same links", func(r *Request) { r.Links[1].Name = "a" }, "links[1].name", "already"},
		{"little CPU", func(r *Request) { r.Nodes[0].CPU = 9 }, "nodes[0].cpu", "between"},
		{"negative CPU", func(r *Request) { r.Nodes[0].CPU = -1 }, "nodes[0].cpu", "between"},
		{"little memory", func(r *Request) { r.Nodes[0].Memory = 4096 }, "nodes[0].memory", "between"},
		{"odd site", func(r *Request) { r.Nodes[0].Site = "a/b" }, "nodes[0].site", "not a name"},
		{"odd host", func(r *Request) { r.Nodes[0].Host = "a.b" }, "nodes[0].host", "not a name"},
		{"node with protocol", func(r *Request) { r.Nodes[0].Protocol = ProtocolOSPF }, "nodes[0].protocol", "only routers"},
		{"odd protocol", func(r *Request) { r.Routers[0].Protocol = "rip" }, "routers[0].protocol", "static, ospf, ospf6, bgp, isis or none"},
		{"IPv6", func(r *Request) { r.Nodes[0].Address = address("fd00::1") }, "nodes[0].address", "not an IPv4"},
		{"mapped", func(r *Request) { r.Nodes[0].Address = address("::ffff:10.0.0.1") }, "nodes[0].address", "not an IPv4"},
		{"multicast", func(r *Request) { r.Nodes[0].Address = address("224.0.0.1") }, "nodes[0].address", "unicast"},
		{"loopback", func(r *Request) { r.Nodes[0].Address = address("127.0.0.1") }, "nodes[0].address", "unicast"},
		{"broadcast", func(r *Request) { r.Nodes[0].Address = address("255.255.255.255") }, "nodes[0].address", "unicast"},
		{"zero", func(r *Request) { r.Nodes[0].Address = address("0.0.0.0") }, "nodes[0].address", "unicast"},
		{"class E", func(r *Request) { r.Nodes[0].Address = address("240.0.0.1") }, "nodes[0].address", "unicast"},
		{"same address", func(r *Request) {
			r.Nodes[0].Address, r.Routers[0].Address = address("10.0.0.1"), address("10.0.0.1")
		}, "routers[0].address", "already"},
		{"escape in label", func(r *Request) { r.Nodes[0].Labels = map[string]string{"k": "\x1b[31m"} }, "nodes[0].labels.k", "printable"},
		{"odd label key", func(r *Request) { r.Nodes[0].Labels = map[string]string{"a.b\u202e": ""} }, `nodes[0].labels["a.b\u202e"]`, "printable"},
		{"long label", func(r *Request) { r.Links[0].Labels = map[string]string{"k": strings.Repeat("x", 256)} }, "links[0].labels.k", "255"},
		{"unknown end", func(r *Request) { r.Links[0].Ends[1] = "r" }, "links[0].ends[1]", `did you mean "r1"?`},
		{"link as end", func(r *Request) { r.Links[1].Ends[1] = "a" }, "links[1].ends[1]", "no node, router or switch"},
		{"loop", func(r *Request) { r.Links[0].Ends[1] = "n1" }, "links[0].ends[1]", "two different"},
		{"min above max", func(r *Request) { r.Links[0].Bandwidth[Forward].Min = 2 * Mbit }, "links[0].min", "above max"},
		{"reverse", func(r *Request) { r.Links[0].Bandwidth[Reverse].Min = 2 * Mbit }, "links[0].reverse.min", "above max"},
		{"min without max", func(r *Request) { r.Links[0].Bandwidth[Forward].Max = 0 }, "links[0].max", "too little"},
		{"negative", func(r *Request) { r.Links[0].Bandwidth[Forward].Min = -1 }, "links[0].min", "too little"},
		{"trickle", func(r *Request) { r.Links[0].Bandwidth = [2]Bandwidth{Static(7999), Static(7999)} }, "links[0].min", "too little"},
		{"flood", func(r *Request) { r.Links[0].Bandwidth[Forward].Max = MaxRate + 1 }, "links[0].max", "more than"},
		{"negative latency", func(r *Request) { r.Links[0].Latency = -1 }, "links[0].latency", "between"},
		{"slow", func(r *Request) { r.Links[0].Latency = 2 * time.Hour }, "links[0].latency", "between"},
		{"stage without name", func(r *Request) { r.Stages[1].Name = "" }, "stages[1].name", "missing"},
		{"same stage names", func(r *Request) { r.Stages[1].Name = "one" }, "stages[1].name", "already"},
		{"stages at once", func(r *Request) { r.Stages[1].After = time.Hour }, "stages[1].after", "not after"},
		{"stage before start", func(r *Request) { r.Stages[0].After = -1 }, "stages[0].after", "between"},
		{"stage after end", func(r *Request) { r.For = 3 * time.Hour }, "stages[2].after", "before the window ends"},
		{"stage of no link", func(r *Request) { r.Stages[1].Links = map[string][2]Bandwidth{"x": {}} }, "stages[1].links.x", "no link"},
		{"rate of what goes", func(r *Request) { r.Stages[1].Links = map[string][2]Bandwidth{"a": {}} }, "stages[1].links.a", "no link"},
		{"bad rate in stage", func(r *Request) { r.Stages[0].Links["a"] = [2]Bandwidth{{Min: 5}, {Min: 5}} }, "stages[0].links.a.min", "too little"},
		{"remove nothing", func(r *Request) { r.Stages[1].Remove = []string{"n9"} }, "stages[1].remove[0]", "nothing"},
		{"remove twice", func(r *Request) { r.Stages[1].Remove = []string{"r1", "r1"} }, "stages[1].remove[1]", "once"},
		{"remove again", func(r *Request) { r.Stages[2].Remove = []string{"b"} }, "stages[2].remove[0]", "nothing"},
		{"add what is there", func(r *Request) { r.Stages[0].Add.Nodes[0].Name = "n1" }, "stages[0].add.nodes[0].name", "already"},
		{"add as another kind", func(r *Request) { r.Stages[2].Add.Routers[0].Name = "b" }, "stages[2].add.routers[0].name", "before"},
		{"come back changed", func(r *Request) { r.Stages[2].Add.Routers[0].Site = "x" }, "stages[2].add.routers[0]", "changed"},
		{"come back elsewhere", func(r *Request) { r.Stages[2].Add.Links[0].Ends[0] = "n2" }, "stages[2].add.links[0]", "other ends"},
		{"end that is gone", func(r *Request) { r.Stages[1].Add.Links = []VirtualLink{{Name: "d", Ends: [2]string{"n1", "r1"}}} }, "stages[1].add.links[0].ends[1]", "not there in this stage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := staged()
			c.change(&r)
			r.Fill()
			wantField(t, r.Check(), c.path, c.word)
		})
	}
}

func wantField(t *testing.T, err error, path, word string) {
	t.Helper()
	var field *FieldError
	if !errors.As(err, &field) {
		t.Fatalf("got %v, want a FieldError at %s", err, path)
	}
	if field.Path != path || !strings.Contains(field.Problem, word) {
		t.Errorf("got %q: %q, want %q with %q", field.Path, field.Problem, path, word)
	}
}

func TestCheckBounds(t *testing.T) {
	many := func(n int) []VirtualNode {
		nodes := make([]VirtualNode, n)
		for i := range nodes {
			nodes[i].Name = fmt.Sprintf("n%d", i)
		}
		return nodes
	}
	r := Request{Network: "n", Topology: Topology{Nodes: many(MaxNodes)}}
	for range MaxLinks {
		r.Links = append(r.Links, VirtualLink{Ends: [2]string{"n0", "n1"}})
	}
	r.Fill()
	if err := r.Check(); err != nil {
		t.Errorf("the largest request: %v", err)
	}
	big := r
	big.Nodes = many(MaxNodes + 1)
	wantField(t, big.Check(), "nodes", "more than")
	big = r
	big.Links = append(big.Links, VirtualLink{Name: "x", Ends: [2]string{"n0", "n1"}})
	wantField(t, big.Check(), "links", "more than")
	big = r
	big.Stages = make([]Stage, MaxStages+1)
	wantField(t, big.Check(), "stages", "more than")
}

func TestFillShortensNamesOfLongEnds(t *testing.T) {
	long := strings.Repeat("x", MaxName-1)
	r := Request{Network: "n", Topology: Topology{
		Nodes: []VirtualNode{{Name: long + "1"}, {Name: long + "2"}, {Name: "a"}},
		Links: []VirtualLink{
			{Ends: [2]string{long + "1", long + "2"}}, {Ends: [2]string{long + "2", long + "1"}}, {Ends: [2]string{"a", long + "1"}},
		},
	}}
	r.Fill()
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// A name of full length has no room for the number of a duplicate.
func TestFillShortensNumberedNames(t *testing.T) {
	for length := MaxName/2 - 5; length < MaxName/2; length++ {
		s := Substrate{Hosts: []SubstrateNode{{Name: HostID(strings.Repeat("a", length))}, {Name: HostID(strings.Repeat("b", length))}}}
		for range 12 {
			s.Links = append(s.Links, SubstrateLink{Ends: [2]string{string(s.Hosts[0].Name), string(s.Hosts[1].Name)}, Capacity: Gbit})
		}
		s.Fill()
		if err := s.Check(); err != nil {
			t.Errorf("ends of %d letters: %v", length, err)
		}
	}
}

func TestFill(t *testing.T) {
	r := Request{Network: "n", Topology: Topology{
		Nodes:   []VirtualNode{{Name: "a"}, {Name: "b"}},
		Routers: []VirtualNode{{Name: "r"}, {Name: "q", Protocol: ProtocolOSPF}},
		Links: []VirtualLink{
			{Ends: [2]string{"a", "b"}}, {Ends: [2]string{"a", "b"}}, {Name: "a-b-2", Ends: [2]string{"a", "b"}}, {Ends: [2]string{"a", "b"}},
		},
	}, Stages: []Stage{{Name: "s", Add: Topology{Links: []VirtualLink{{Ends: [2]string{"a", "b"}}}}}}}
	shared := r.Links
	r.Fill()
	var names []string
	for _, l := range append(r.Links, r.Stages[0].Add.Links...) {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "a-b a-b-3 a-b-2 a-b-4 a-b-5" {
		t.Errorf("links are named %s", got)
	}
	if r.Routers[0].Protocol != ProtocolStatic || r.Routers[1].Protocol != ProtocolOSPF {
		t.Errorf("protocols are %v", r.Routers)
	}
	if shared[0].Name != "" {
		t.Error("Fill wrote into the caller's links")
	}
	before := fmt.Sprint(r)
	if r.Fill(); fmt.Sprint(r) != before {
		t.Error("filling twice differs")
	}
}
