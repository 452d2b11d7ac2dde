package clab

import (
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// layers are the places from which a node has what it does not state itself.
type layers struct{ defaults, kinds, groups *yaml.Node }

// kept are the words of a node that a request has. Those of its life are kept of
// plain nodes, and of other kinds whose image is stated.
var kept = []string{"kind", "group", "cpu", "memory", "labels", "image", "env", "network-mode", "cmd", "entrypoint", "restart-policy", "exec", "binds", "sysctls", "mgmt-ipv4", "mgmt_ipv4", "env-files", "startup-config", "extras", "user"}

// layers notes what of the layers is left out, once, where it stands.
func (r *reader) layers(topology *yaml.Node) error {
	r.groups = layers{value(topology, "defaults"), value(topology, "kinds"), value(topology, "groups")}
	r.leaveOut(r.groups.defaults, "defaults", kept...)
	for layer, n := range map[string]*yaml.Node{"kind": r.groups.kinds, "group": r.groups.groups} {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := r.mapping(n.Content[i+1], layer+" "+short(n.Content[i].Value)); err != nil {
				return err
			}
			r.leaveOut(n.Content[i+1], layer+" "+short(n.Content[i].Value), kept...)
		}
	}
	return r.mapping(r.groups.defaults, "defaults")
}

// mapping refuses what is no mapping; nothing at all is one without fields.
func (r *reader) mapping(n *yaml.Node, where string) error {
	if n.Kind != 0 && n.Kind != yaml.MappingNode && n.ShortTag() != "!!null" {
		return r.fail(n, "%s has no fields: write them as word: value", where)
	}
	return nil
}

// of lists where a node's words are looked for, the node itself first.
func (l layers) of(node *yaml.Node) []*yaml.Node {
	group := first("group", node, l.defaults)
	named := value(l.groups, group.Value)
	kind := first("kind", node, named, l.defaults)
	return []*yaml.Node{node, named, value(l.kinds, kind.Value), l.defaults}
}

// first is the value of a word in the first place that has it.
func first(word string, places ...*yaml.Node) *yaml.Node {
	found := &yaml.Node{}
	for _, p := range places {
		if found = value(p, word); found.Kind != 0 {
			return found
		}
	}
	return found
}

func (r *reader) nodes(n *yaml.Node) error {
	if err := r.mapping(n, "nodes"); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := r.node(n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) node(name, n *yaml.Node) error {
	where := "node " + short(name.Value)
	called := r.named(name)
	if err := r.mapping(n, where); err != nil {
		return err
	}
	places := r.groups.of(n)
	kindOf := first("kind", places...)
	if kindOf.Kind != 0 && kindOf.Kind != yaml.ScalarNode {
		return r.fail(kindOf, "kind is no word: write one such as linux")
	}
	made := vnet.VirtualNode{Name: called}
	var err error
	if made.Labels, err = r.words("labels", "label", places...); err != nil {
		return err
	}
	isPlain := slices.Contains(plain, kindOf.Value)
	if isPlain || runsImage(kindOf.Value, places...) {
		if made.Setup, err = r.setup(where, places...); err != nil {
			return err
		}
		l, err := r.live(name.Value, &made.Setup, places...)
		if err != nil {
			return err
		}
		l.plain = isPlain
		r.lives[called] = l
	} else {
		r.loseWords(where, living, places...)
	}
	if made.CPU, err = r.cores(first("cpu", places...)); err != nil {
		return err
	}
	if made.Memory, err = r.memory(first("memory", places...)); err != nil {
		return err
	}
	r.leaveOut(n, where, kept...)
	r.configure(name.Value, kindOf.Value, &made.Setup, places...)
	if l, is := r.lives[called]; is && r.NoImages {
		r.withoutImage(first("image", places...), where, kindOf.Value, &made, &l)
		r.lives[called] = l
	}
	r.manage(where, &made, places...)
	if mode := first("network-mode", places...); mode.Kind != 0 && mode.Value != noNetwork {
		r.lost(mode, where, "network-mode %s is left out%s", short(mode.Value), noOutside)
	}
	r.add(name, where, kindOf.Value, made)
	return nil
}

// add puts a node where its kind belongs.
func (r *reader) add(at *yaml.Node, where, kindOf string, n vnet.VirtualNode) {
	req := &r.request
	r.nodeAt[n.Name] = at
	switch {
	case slices.Contains(switches, kindOf):
		r.kind[n.Name] = bridge
		r.at[fmt.Sprintf("switches[%d]", len(req.Switches))] = at
		req.Switches = append(req.Switches, vnet.VirtualSwitch{Name: n.Name, CPU: n.CPU, Labels: n.Labels, Access: r.exit(at.Value, n.Name)})
	case kindOf == "host":
		if r.kind[n.Name] = leftOut; r.Access[at.Value].Name == "" {
			r.lost(at, where, "kind host is left out"+noAccess, short(at.Value))
		}
	case slices.Contains(plain, kindOf), slices.Contains(machines, kindOf):
		if slices.Contains(machines, kindOf) {
			r.lost(at, where, "what is special of kind %s is left out: it is a plain node", kindOf)
		}
		r.kind[n.Name] = host
		req.Nodes = append(req.Nodes, n)
	default:
		r.kind[n.Name] = router
		req.Routers = append(req.Routers, n)
		if kindOf == "frr" && (n.Image != "" || n.FRR != "") {
			return // whose configuration comes over
		}
		if n.Image != "" {
			r.lost(at, where, "what containerlab does for kind %s beside starting its image is left out, its configuration above all", short(kindOf))
		} else {
			r.lost(at, where, "software and configuration of kind %s are left out: it is a router with static routes", short(kindOf))
		}
	}
}

// runsImage says whether a kind that is none of Sublet's runs an image that the
// topology states, which whoever leases has to bring.
func runsImage(kindOf string, places ...*yaml.Node) bool {
	if kindOf == "host" || slices.Contains(switches, kindOf) || slices.Contains(machines, kindOf) {
		return false
	}
	image := first("image", places...)
	return image.Kind == yaml.ScalarNode && vnet.ValidImage(image.Value)
}

// named is what a node is called in the request.
func (r *reader) named(at *yaml.Node) string {
	name := r.names.Take(r.legible(at, "node"))
	r.renamed[at.Value] = name
	return name
}

// loseWords notes those of a list that any place has.
func (r *reader) loseWords(where string, list []string, places ...*yaml.Node) {
	for _, word := range list {
		if n := first(word, places...); n.Kind != 0 {
			r.lost(n, where, "%s is left out: a node of this kind has none", word)
		}
	}
}

// manage gives a node the address that it has in the management network, by which
// others know it there. There is no such network.
func (r *reader) manage(where string, made *vnet.VirtualNode, places ...*yaml.Node) {
	for _, word := range []string{"mgmt-ipv4", "mgmt_ipv4"} {
		n := first(word, places...)
		if n.Kind == 0 {
			continue
		}
		a, err := netip.ParseAddr(n.Value)
		if err != nil || !a.Is4() {
			r.lost(n, where, "%s %s is left out: it is no address of IPv4", word, short(n.Value))
			continue
		}
		made.Address = a
		r.notes = append(r.notes, vnet.Note{Line: n.Line, Column: n.Column, Where: where, Text: fmt.Sprintf("%s %s is its address on its links%s", word, a, noManagement)})
	}
}

// importVariables stands among variables for all that containerlab itself has.
const importVariables = "__IMPORT_ENV"

// setup is the image and the variables of a plain node.
func (r *reader) setup(where string, places ...*yaml.Node) (s vnet.Setup, err error) {
	if s.Env, err = r.words("env", "variable", places...); err != nil {
		return s, err
	}
	s.Env = r.envFiles(where, s.Env, places...)
	if _, all := s.Env[importVariables]; all {
		r.lost(first("env", places...), where, "%s is left out: no variables of this machine go into nodes", importVariables)
		delete(s.Env, importVariables)
	}
	s.User = r.valid(where, "user", "it is none", vnet.ValidUser, places...)
	s.Image = r.valid(where, "image", "it is no name of one", vnet.ValidImage, places...)
	return s, nil
}

// valid is a word's value, if it has a valid one; another one is told to be lost.
func (r *reader) valid(where, word, why string, valid func(string) bool, places ...*yaml.Node) string {
	value := first(word, places...)
	switch {
	case value.Kind == 0:
	case value.Kind == yaml.ScalarNode && valid(value.Value):
		return value.Value
	default:
		r.lost(value, where, "%s %s is left out: %s", word, short(value.Value), why)
	}
	return ""
}

// words are the pairs of a mapping in all places, those of the node itself before
// others.
func (r *reader) words(name, one string, places ...*yaml.Node) (map[string]string, error) {
	var all map[string]string
	for _, p := range slices.Backward(places) {
		n := value(p, name)
		if err := r.mapping(n, name); err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return nil, r.fail(n.Content[i+1], "%s %s is no word: write one", one, short(n.Content[i].Value))
			}
			if all == nil {
				all = make(map[string]string)
			}
			all[n.Content[i].Value] = n.Content[i+1].Value
		}
	}
	return all, nil
}
