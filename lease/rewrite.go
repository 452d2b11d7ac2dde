package lease

import (
	"maps"
	"slices"

	"sublet/vnet"
)

// rewrite copies a request so that its nodes, links and rates can be changed.
func rewrite(r vnet.Request) vnet.Request {
	r.Topology = copyTopology(r.Topology)
	r.Stages = slices.Clone(r.Stages)
	for i := range r.Stages {
		r.Stages[i].Add = copyTopology(r.Stages[i].Add)
		r.Stages[i].Links = maps.Clone(r.Stages[i].Links)
	}
	return r
}

func copyTopology(t vnet.Topology) vnet.Topology {
	return vnet.Topology{
		Nodes: slices.Clone(t.Nodes), Routers: slices.Clone(t.Routers),
		Switches: slices.Clone(t.Switches), Links: slices.Clone(t.Links),
	}
}

// topologies lists where a rewritten request writes nodes and links.
func topologies(r *vnet.Request) []*vnet.Topology {
	all := []*vnet.Topology{&r.Topology}
	for i := range r.Stages {
		all = append(all, &r.Stages[i].Add)
	}
	return all
}

// eachPlace calls f for every place where it is written where a node, router
// or switch shall be.
func eachPlace(r *vnet.Request, f func(name string, site *string, host *vnet.HostID)) {
	for _, t := range topologies(r) {
		for _, list := range [][]vnet.VirtualNode{t.Nodes, t.Routers} {
			for i := range list {
				f(list[i].Name, &list[i].Site, &list[i].Host)
			}
		}
		for i := range t.Switches {
			f(t.Switches[i].Name, &t.Switches[i].Site, &t.Switches[i].Host)
		}
	}
}

// eachLink calls f for every place where a link is written.
func eachLink(r *vnet.Request, f func(*vnet.VirtualLink)) {
	for _, t := range topologies(r) {
		for i := range t.Links {
			f(&t.Links[i])
		}
	}
}

// eachBandwidth calls f for every place where a link's bandwidth is written,
// with the stage that writes it ("" at the start).
func eachBandwidth(r *vnet.Request, f func(link, stage string, b *[2]vnet.Bandwidth)) {
	for i, t := range topologies(r) {
		stage := ""
		if i > 0 {
			stage = r.Stages[i-1].Name
		}
		for j := range t.Links {
			f(t.Links[j].Name, stage, &t.Links[j].Bandwidth)
		}
	}
	for _, stage := range r.Stages {
		for _, name := range slices.Sorted(maps.Keys(stage.Links)) {
			b := stage.Links[name]
			f(name, stage.Name, &b)
			stage.Links[name] = b
		}
	}
}
