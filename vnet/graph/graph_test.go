package graph

import (
	"net/netip"
	"strings"
	"testing"

	"sublet/vnet"
)

// lease is a node and a router on two hosts, with everything a drawing shows.
func lease() vnet.Lease {
	return vnet.Lease{
		Request: vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{
			Nodes:   []vnet.VirtualNode{{Name: "n1"}, {Name: "n2"}},
			Routers: []vnet.VirtualNode{{Name: "r1"}},
			Links: []vnet.VirtualLink{
				{Name: "up", Ends: [2]string{"n1", "r1"}, Bandwidth: [2]vnet.Bandwidth{{Min: 100 * vnet.Mbit, Max: 500 * vnet.Mbit}, {Max: 50 * vnet.Mbit}}, Latency: 1e7},
				{Name: "in", Ends: [2]string{"n2", "r1"}},
			},
		}},
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h2", "r1": "h2"},
			Links: map[string]vnet.Path{"up": {"h1-s1", "h2-s1"}, "in": {}},
		},
		Addresses: map[string]netip.Addr{"n1": netip.MustParseAddr("10.1.0.1")},
		Rates:     map[string][2]vnet.Rate{"up": {300 * vnet.Mbit, 50 * vnet.Mbit}, "in": {0, 0}},
		Stage:     -1,
	}
}

func TestDOT(t *testing.T) {
	want := `graph "alice/net" {
  compound=true;
  subgraph cluster_network {
    label="alice/net";
    n0 [label="n1\n10.1.0.1", shape=ellipse];
    n1 [label="n2", shape=ellipse];
    n2 [label="r1", shape=box];
    n0 -- n2 [label="up\n100Mbit to 500Mbit (now 300Mbit)\nback up to 50Mbit (now 50Mbit)\nwithin 10ms"];
    n1 -- n2 [label="in\nbest effort"];
  }
  subgraph cluster_hosts {
    label="hosts";
    h0 [label="h1", shape=box3d];
    h1 [label="h2", shape=box3d];
    h0 -- h1 [label="up\nvia h1-s1, h2-s1"];
  }
  n0 -- h0 [style=dashed];
  n1 -- h1 [style=dashed];
  n2 -- h1 [style=dashed];
}
`
	if got := DOT(lease()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMermaid(t *testing.T) {
	want := `flowchart LR
  subgraph network["alice/net"]
    n0("n1<br/>10.1.0.1")
    n1("n2")
    n2["r1"]
    n0 ---|"up<br/>100Mbit to 500Mbit (now 300Mbit)<br/>back up to 50Mbit (now 50Mbit)<br/>within 10ms"| n2
    n1 ---|"in<br/>best effort"| n2
  end
  subgraph hosts["hosts"]
    h0[["h1"]]
    h1[["h2"]]
    h0 ---|"up<br/>via h1-s1, h2-s1"| h1
  end
  n0 -.- h0
  n1 -.- h1
  n2 -.- h1
`
	if got := Mermaid(lease()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A lease without a mapping is drawn alone, and no name escapes its quotes.
func TestHostile(t *testing.T) {
	l := lease()
	l.Mapping = vnet.Mapping{}
	l.Request.Nodes[0].Name = `"];<b>&#1\` + "\n"
	l.Request.Links[0].Ends[0] = l.Request.Nodes[0].Name
	dot, mermaid := DOT(l), Mermaid(l)
	if strings.Contains(dot, "hosts") || strings.Contains(mermaid, "hosts") {
		t.Error("hosts are drawn without a mapping")
	}
	if !strings.Contains(dot, `[label="\"];<b>&#1\\\n", shape=ellipse]`) {
		t.Errorf("DOT lets a name escape:\n%s", dot)
	}
	if !strings.Contains(mermaid, `("#quot;];#lt;b#gt;#amp;#35;1\<br/>")`) {
		t.Errorf("Mermaid lets a name escape:\n%s", mermaid)
	}
}

// Functions are hexagons, and segments of chains lead one way.
func TestChainsAreDrawn(t *testing.T) {
	l := lease()
	l.Request.Nodes = append(l.Request.Nodes, vnet.VirtualNode{Name: "fw", Function: &vnet.Function{Kind: vnet.FunctionFirewall}})
	l.Request.Chains = []vnet.Chain{{Name: "web", From: "n1", To: "n2", Via: []string{"fw"}, Rate: 20 * vnet.Mbit}}
	l.Mapping.Nodes["fw"] = "h2"
	l.Request.Fill()
	for drawn, want := range map[string][]string{
		Mermaid(l): {"{{", "==>", "chain web"},
		DOT(l):     {"hexagon", "chain web"},
	} {
		for _, w := range want {
			if !strings.Contains(drawn, w) {
				t.Errorf("nothing of %q in\n%s", w, drawn)
			}
		}
	}
}
