package clab

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// end is one end of a link: an interface of a node.
type end struct {
	node, iface string
	addresses   []netip.Prefix
}

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
		return r.leadOut(n, where, kind.Value)
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
		for _, word := range families {
			if both := value(n, word); both.Kind == yaml.SequenceNode && i < len(both.Content) {
				r.address(both.Content[i], where, &ends[i])
			}
		}
	}
	for i, e := range ends {
		if r.kind[e.node] != leftOut && r.kind[e.node] != absent {
			continue
		}
		if ends[i] = r.outside(e, list.Content[i]); ends[i].node == "" {
			r.lost(n, where, "its end at %s is outside, so it is left out%s", short(e.node), r.hint(e))
			return nil
		}
	}
	r.leaveOut(n, where, "type", "endpoints", "labels", families[0], families[1])
	return r.join(n, ends)
}

// joining are the types of links between two nodes; that of veth-stitch has
// bridges in between, for containers that share a network.
var joining = []string{"veth", "veth-stitch"}

// outside are names of endpoints that are no nodes.
var outside = []string{"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy", "container"}

// leading are the types of links to an interface of the host.
var leading = []string{"macvlan", "host", "mgmt-net"}

// leadOut reads a link with one end in the topology.
func (r *reader) leadOut(n *yaml.Node, where, kind string) error {
	if !slices.Contains(leading, kind) {
		r.lost(n, where, "a link of type %s is left out", short(kind))
		return nil
	}
	device, endpoint := value(n, "host-interface"), value(n, "endpoint")
	way := r.port(device.Value, device)
	if way.node == "" {
		r.lost(n, where, "a link of type %s is left out%s", kind, r.hint(end{node: kind, iface: device.Value}))
		return nil
	}
	inner, err := r.end(endpoint, where)
	if err != nil {
		return err
	}
	if r.kind[inner.node] == absent || r.kind[inner.node] == leftOut {
		return r.fail(endpoint, "%s: %s is no node that is kept: write one", where, short(inner.node))
	}
	r.leaveOut(n, where, "type", "endpoint", "host-interface", "labels", "mode")
	return r.join(n, [2]end{inner, way})
}

// keyOf is what --access calls the place outside where an end leads; "": that is
// nothing that an exit can stand for.
func (r *reader) keyOf(e end) string {
	switch {
	case r.kind[e.node] == leftOut:
		return e.node
	case slices.Contains(leading, e.node):
		return e.iface
	}
	return ""
}

func (r *reader) hint(e end) string {
	if key := r.keyOf(e); key != "" {
		return fmt.Sprintf(noAccess, short(key))
	}
	return ""
}

// outside is the end to which one outside of the topology leads; without a node:
// nothing is known of it.
func (r *reader) outside(e end, at *yaml.Node) end {
	if key := r.keyOf(e); key != "" {
		return r.port(key, at)
	}
	return end{}
}

// port is one of the switch with access to the exit that Options name for an
// interface of the host; without a node: they name none.
func (r *reader) port(key string, at *yaml.Node) end {
	if r.Access[key].Name == "" {
		return end{}
	}
	if r.led[key] == "" {
		name, isNode := r.renamed[key] // of kind host
		if !isNode {
			name = r.names.Take(topology.FirstLegible(key))
		}
		r.kind[name] = bridge
		r.at[fmt.Sprintf("switches[%d]", len(r.request.Switches))] = at
		r.request.Switches = append(r.request.Switches, vnet.VirtualSwitch{Name: name, Access: r.exit(key, name)})
	}
	return end{node: r.led[key], iface: key}
}

// exit is the name of the one to which a switch has access; "": to none.
func (r *reader) exit(key, name string) string {
	x := r.Access[key]
	if r.led[key] = name; x.Name != "" {
		r.rates[name] = vnet.Static(x.Rate)
	}
	return x.Name
}

// checkAccess refuses an exit for what the topology does not have.
func (r *reader) checkAccess(root *yaml.Node) error {
	for _, key := range slices.Sorted(maps.Keys(r.Access)) {
		if r.led[key] == "" {
			return r.fail(root, "--access %s: no link leads to an interface %s of the host, and no bridge is called so: write one of the topology's", short(key), short(key))
		}
	}
	return nil
}

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
	if name, is := r.renamed[e.node]; is {
		e.node = name
	}
	if r.kind[e.node] == absent && !slices.Contains(outside, e.node) {
		return e, r.fail(n, "%s: there is no node %s: write it under nodes", where, short(e.node))
	}
	for _, word := range families {
		if stated := value(n, word); stated.Kind != 0 {
			r.address(stated, where, &e)
		}
	}
	r.leaveOut(n, where+", "+short(e.node), "node", "interface", families[0], families[1])
	return e, nil
}

// families are the words of an end's addresses.
var families = []string{"ipv4", "ipv6"}

// address gives an end the one that is stated.
func (r *reader) address(n *yaml.Node, where string, e *end) {
	if n.Value == "" {
		return
	}
	p, err := netip.ParsePrefix(n.Value)
	switch {
	case err != nil || !liftable(p):
		r.lost(n, where+", "+short(e.node), "address %s is left out: it is none with a prefix, such as 10.0.0.1/24", short(n.Value))
	case r.kind[e.node] == bridge:
		r.lost(n, where+", "+short(e.node), "address %s is left out: a bridge has none", short(n.Value))
	default:
		e.addresses = append(e.addresses, p)
	}
}

// join adds the link.
func (r *reader) join(n *yaml.Node, ends [2]end) error {
	named, err := r.words("labels", "label", n)
	if err != nil {
		return err
	}
	r.at[fmt.Sprintf("links[%d]", len(r.request.Links))] = n
	made := vnet.VirtualLink{Ends: [2]string{ends[0].node, ends[1].node}, Labels: named}
	for i, e := range ends {
		made.Addresses[i] = e.addresses
		if rate, leads := r.rates[e.node]; leads {
			made.Bandwidth = [2]vnet.Bandwidth{rate, rate}
		}
	}
	r.request.Links = append(r.request.Links, made)
	for i, e := range ends {
		if r.kind[e.node] != bridge {
			r.interfaces[e.node] = append(r.interfaces[e.node], port{link: len(r.request.Links) - 1, end: i, name: e.iface})
		}
	}
	return nil
}

// port is an interface of a node: one end of a link, by the link's number.
type port struct {
	link, end int
	name      string
}

// nameInterfaces lets the nodes' interfaces have the names that they have in the
// topology. Those that Linux does not take are eth and a number, and noted.
func (r *reader) nameInterfaces() {
	for _, node := range slices.Sorted(maps.Keys(r.interfaces)) {
		ports := r.interfaces[node]
		taken := make(map[string]bool)
		for _, p := range ports {
			taken[p.name] = true
		}
		var renamed []string
		for i, p := range ports {
			name := p.name
			if !vnet.ValidInterface(name) {
				name = free(taken, i)
				renamed = append(renamed, short(p.name)+" is "+name)
			}
			if name != fmt.Sprint("eth", i) {
				r.request.Links[p.link].Interfaces[p.end] = name
			}
		}
		if len(renamed) > 0 {
			r.notes = append(r.notes, vnet.Note{Where: "node " + short(node), Text: "interface " + strings.Join(renamed, ", ")})
		}
	}
}

// free is the first of ethI and those after it that nobody has, who asks has it then.
func free(taken map[string]bool, i int) string {
	name := fmt.Sprint("eth", i)
	for taken[name] {
		i++
		name = fmt.Sprint("eth", i)
	}
	taken[name] = true
	return name
}
