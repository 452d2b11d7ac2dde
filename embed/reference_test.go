package embed

import (
	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
)

// reference decides by trying everything whether a request has an embedding: every
// host for every node, every simple path for every link, judged by
// verify.Mapping alone. It is exact, slow, and shares nothing with the search.
type reference struct {
	sub     vnet.Substrate
	cal     *calendar.Calendar
	request vnet.Request
	window  vnet.Window
	union   vnet.Topology
	mapping vnet.Mapping
}

func feasible(sub vnet.Substrate, cal *calendar.Calendar, request vnet.Request, window vnet.Window) bool {
	t := &reference{sub: sub, cal: cal, request: request, window: window, union: request.Union()}
	t.mapping = vnet.Mapping{Nodes: map[string]vnet.HostID{}, Links: map[string]vnet.Path{}}
	return t.nodes(t.union.Placed())
}

// nodes tries every host for each node, then every path for each link.
func (t *reference) nodes(left []vnet.VirtualNode) bool {
	if len(left) == 0 {
		return t.links(t.union.Links)
	}
	for _, h := range t.sub.Hosts {
		t.mapping.Nodes[left[0].Name] = h.Name
		if t.soFar() && t.nodes(left[1:]) {
			return true
		}
	}
	delete(t.mapping.Nodes, left[0].Name)
	return false
}

func (t *reference) links(left []vnet.VirtualLink) bool {
	if len(left) == 0 {
		return verify.Mapping(t.sub, t.cal, t.request, t.window, t.mapping) == nil
	}
	from, to := t.mapping.Nodes[left[0].Ends[0]], t.mapping.Nodes[left[0].Ends[1]]
	for _, path := range t.paths(string(from), string(to), map[string]bool{string(from): true}) {
		t.mapping.Links[left[0].Name] = path
		if t.soFar() && t.links(left[1:]) {
			return true
		}
	}
	delete(t.mapping.Links, left[0].Name)
	return false
}

// paths lists every walk that takes no link twice and passes no host twice;
// verify.Mapping refuses those that leave the fabric's fixed paths.
func (t *reference) paths(from, to string, visited map[string]bool) []vnet.Path {
	return t.walks(from, to, visited, map[string]bool{})
}

func (t *reference) walks(from, to string, visited, used map[string]bool) []vnet.Path {
	if from == to {
		return []vnet.Path{{}}
	}
	var paths []vnet.Path
	for _, l := range t.sub.Links {
		for dir, end := range l.Ends {
			next := l.Ends[1-dir]
			if end != from || used[l.Name] || visited[next] {
				continue
			}
			_, host := t.sub.HostOf(next)
			used[l.Name], visited[next] = true, host
			for _, rest := range t.walks(next, to, visited, used) {
				paths = append(paths, append(vnet.Path{l.Name}, rest...))
			}
			used[l.Name], visited[next] = false, false
		}
	}
	return paths
}

// soFar checks the part of the request that is mapped, to prune: what does not
// fit in part does not fit whole.
func (t *reference) soFar() bool {
	part := t.request
	part.Topology = t.mapped(part.Topology)
	part.Stages = nil
	for _, s := range t.request.Stages {
		s.Add = t.mapped(s.Add)
		part.Stages = append(part.Stages, s)
	}
	return verify.Mapping(t.sub, t.cal, part, t.window, t.mapping) == nil
}

// mapped is the part of a topology that has a place.
func (t *reference) mapped(top vnet.Topology) vnet.Topology {
	var part vnet.Topology
	for _, n := range top.Nodes {
		if _, ok := t.mapping.Nodes[n.Name]; ok {
			part.Nodes = append(part.Nodes, n)
		}
	}
	for _, n := range top.Routers {
		if _, ok := t.mapping.Nodes[n.Name]; ok {
			part.Routers = append(part.Routers, n)
		}
	}
	for _, s := range top.Switches {
		if _, ok := t.mapping.Nodes[s.Name]; ok {
			part.Switches = append(part.Switches, s)
		}
	}
	for _, l := range top.Links {
		if _, ok := t.mapping.Links[l.Name]; ok {
			part.Links = append(part.Links, l)
		}
	}
	return part
}
