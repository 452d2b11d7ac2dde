package plan

import (
	"fmt"
	"slices"
	"testing"

	"sublet/vnet"
)

// neighboursIn lists who is entered where, "a knows b at 10.0.0.2", and holds each
// address of a link against the port that has it.
func neighboursIn(t *testing.T, l vnet.Lease) (list []string) {
	t.Helper()
	hosts, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	ports := make(map[Hardware]string)
	for _, h := range hosts {
		for _, link := range Of[VxLink](h) {
			for _, end := range link.Ends {
				if end.Port != nil {
					_, node, _ := ParseNamespace(end.Port.Namespace)
					ports[end.Port.Hardware()] = node
				}
			}
		}
	}
	for _, h := range hosts {
		for _, r := range Of[VxRouter](h) {
			for _, st := range r.Neighbours {
				list = append(list, fmt.Sprintf("%s knows %s at %s", r.Node, ports[st.Hardware], st.Address))
			}
		}
	}
	slices.Sort(list)
	return list
}

// Nodes and routers are told of who is on their own links, as far as the plan knows it.
func TestNodesKnowTheirNeighbours(t *testing.T) {
	l := lan()
	all := neighboursIn(t, l)
	for _, want := range []string{"a knows b at " + l.Addresses["b"].String(), "b knows a at " + l.Addresses["a"].String()} {
		if !slices.Contains(all, want) {
			t.Errorf("told are %q, not %q", all, want)
		}
	}
	for i := range l.Request.Nodes {
		if l.Request.Nodes[i].Name == "b" {
			l.Request.Nodes[i].Device = "eth5"
		}
	}
	n, err := newNetwork(substrate, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range n.router("a").Neighbours {
		if st.Address == l.Addresses["b"] {
			t.Errorf("a is told that %s answers for a device of the operator's", st)
		}
	}
	for i := range l.Request.Switches {
		l.Request.Switches[i].Kind = vnet.SwitchOpenFlow
	}
	if n, err = newNetwork(substrate, l); err != nil {
		t.Fatal(err)
	}
	if list := n.router("a").Neighbours; len(list) > 0 {
		t.Errorf("behind a switch whose controller says who answers a is told %v", list)
	}
}

// In a large segment each node is told of some.
func TestNodesKnowSomeOfManyNeighbours(t *testing.T) {
	l := lan()
	for i := range 3 * mostNeighbours {
		name := fmt.Sprint("x", i)
		l.Request.Nodes = append(l.Request.Nodes, vnet.VirtualNode{Name: name})
		l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: name, Ends: [2]string{name, l.Request.Switches[0].Name}})
	}
	n, err := newNetwork(substrate, l)
	if err != nil {
		t.Fatal(err)
	}
	if list := n.router("x0").Neighbours; len(list) != mostNeighbours {
		t.Errorf("told are %d", len(list))
	}
}
