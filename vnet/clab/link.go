package clab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// end is one end of a link: an interface of a node.
type end struct{ node, iface string }

func (r *reader) links(n *yaml.Node) error {
	if n.Kind != 0 && n.Kind != yaml.SequenceNode && n.ShortTag() != "!!null" {
		return r.fail(n, "links is no list: write each link as - endpoints: [a:eth1, b:eth1]")
	}
	for i, link := range n.Content {
		if err := r.link(link, fmt.Sprintf("link %d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

// link reads one in either form: endpoints as words, or a type with endpoints
// as mappings. Only types that are joining join two nodes.
func (r *reader) link(n *yaml.Node, where string) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, "%s has no fields: write endpoints: [a:eth1, b:eth1]", where)
	}
	if kind := value(n, "type"); kind.Kind != 0 && !slices.Contains(joining, kind.Value) {
		r.lost(n, where, "a link of type %s is left out%s", short(kind.Value), noOutside)
		return nil
	}
	list := value(n, "endpoints")
	if list.Kind != yaml.SequenceNode || len(list.Content) != 2 {
		return r.fail(n, "%s: endpoints are two, as in [a:eth1, b:eth1]", where)
	}
	var ends [2]end
	for i, e := range list.Content {
		var err error
		if ends[i], err = r.end(e, where); err != nil {
			return err
		}
	}
	for _, e := range ends {
		if r.kind[e.node] == leftOut || r.kind[e.node] == absent {
			r.lost(n, where, "its end at %s is outside, so it is left out%s", short(e.node), noOutside)
			return nil
		}
	}
	r.leaveOut(n, where, "type", "endpoints", "labels")
	return r.join(n, ends)
}

// joining are the types of links between two nodes; that of veth-stitch has
// bridges in between, for containers that share a network.
var joining = []string{"veth", "veth-stitch"}

// outside are names of endpoints that are no nodes.
var outside = []string{"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}

func (r *reader) end(n *yaml.Node, where string) (end, error) {
	var e end
	if n.Kind == yaml.MappingNode {
		e.node, e.iface = value(n, "node").Value, value(n, "interface").Value
	} else {
		e.node, e.iface, _ = strings.Cut(n.Value, ":")
	}
	if e.node == "" || e.iface == "" {
		return e, r.fail(n, "%s: an endpoint is a node and its interface, as in a:eth1", where)
	}
	if r.kind[e.node] == absent && !slices.Contains(outside, e.node) {
		return e, r.fail(n, "%s: there is no node %s: write it under nodes", where, short(e.node))
	}
	r.leaveOut(n, where+", "+short(e.node), "node", "interface")
	return e, nil
}

// join adds the link.
func (r *reader) join(n *yaml.Node, ends [2]end) error {
	named, err := r.words("labels", "label", n)
	if err != nil {
		return err
	}
	r.at[fmt.Sprintf("links[%d]", len(r.request.Links))] = n
	r.request.Links = append(r.request.Links, vnet.VirtualLink{Ends: [2]string{ends[0].node, ends[1].node}, Labels: named})
	for _, e := range ends {
		r.interfaces[e.node] = append(r.interfaces[e.node], e.iface)
	}
	return nil
}

// tellInterfaces notes which interfaces have other names in the network: there
// a node's are eth0, eth1 and so on, in the order of its links.
func (r *reader) tellInterfaces() {
	for _, node := range slices.Sorted(maps.Keys(r.interfaces)) {
		if r.kind[node] == bridge {
			continue
		}
		var renamed []string
		for i, name := range r.interfaces[node] {
			if now := fmt.Sprint("eth", i); name != now {
				renamed = append(renamed, short(name)+" is "+now)
			}
		}
		if len(renamed) > 0 {
			r.notes = append(r.notes, vnet.Note{Where: "node " + short(node), Text: "interface " + strings.Join(renamed, ", ")})
		}
	}
}
