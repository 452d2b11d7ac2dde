package file

import (
	"slices"

	"sublet/vnet"
)

// internet is the short word for a router with a way out, and its links.
type internet struct {
	NAT       name `yaml:"nat,omitempty" jsonschema_description:"Way out of the substrate. Default: one that has room."`
	bandwidth `yaml:",inline"`
	Publish   []publish `yaml:"publish,omitempty" jsonschema_description:"Ports outside that lead to ports of nodes, such as 8080:web:80." jsonschema:"maxItems=32"`
	To        []name    `yaml:"to,omitempty" jsonschema_description:"Nodes, routers and switches that are linked to it. Default: the only switch, else the only router, else the nodes whose ports are published, else the only node."`
}

// internetRouter names the router that internet stands for.
const internetRouter = "internet"

// into adds the router and its links to a topology.
func (f *internet) into(top *vnet.Topology) error {
	if f == nil {
		return nil
	}
	if f.bandwidth == (bandwidth{}) {
		return &vnet.FieldError{Path: "internet.rate", Problem: "is missing: state a rate such as 50Mbit"}
	}
	rate, err := f.bandwidth.bandwidth("internet")
	if err != nil {
		return err
	}
	to := words(f.To)
	if len(to) == 0 {
		to = f.linked(*top)
	}
	if len(to) == 0 {
		return &vnet.FieldError{Path: "internet.to", Problem: "is missing: name the nodes, routers or switches that are linked to it"}
	}
	router := vnet.VirtualNode{Name: internetRouter, NAT: string(f.NAT), Publish: f.Publish}
	if router.NAT == "" {
		router.NAT = vnet.AnyNAT
	}
	top.Routers = append(top.Routers, router)
	for _, end := range to {
		top.Links = append(top.Links, vnet.VirtualLink{Ends: [2]string{end, internetRouter}, Bandwidth: [2]vnet.Bandwidth{rate, rate}})
	}
	return nil
}

// linked are the ends of its links where none are stated.
func (f *internet) linked(top vnet.Topology) (names []string) {
	switch {
	case len(top.Switches) == 1:
		return []string{top.Switches[0].Name}
	case len(top.Routers) == 1:
		return []string{top.Routers[0].Name}
	}
	for _, p := range f.Publish {
		if !slices.Contains(names, p.Node) {
			names = append(names, p.Node)
		}
	}
	if len(names) == 0 && len(top.Nodes) == 1 {
		return []string{top.Nodes[0].Name}
	}
	return names
}
