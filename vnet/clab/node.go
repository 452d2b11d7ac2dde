package clab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// layers are the places from which a node has what it does not state itself.
type layers struct{ defaults, kinds, groups *yaml.Node }

// kept are the words of a node that a request has. Images and variables are those
// of plain nodes; what other kinds have of them is part of their software.
var kept = []string{"kind", "group", "cpu", "memory", "labels", "image", "env"}

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
	if err := r.mapping(n, where); err != nil {
		return err
	}
	places := r.groups.of(n)
	kindOf := first("kind", places...)
	if kindOf.Kind != 0 && kindOf.Kind != yaml.ScalarNode {
		return r.fail(kindOf, "kind is no word: write one such as linux")
	}
	made := vnet.VirtualNode{Name: name.Value}
	var err error
	if made.Labels, err = r.words("labels", "label", places...); err != nil {
		return err
	}
	if slices.Contains(plain, kindOf.Value) {
		if made.Setup, err = r.setup(where, places...); err != nil {
			return err
		}
	}
	if made.CPU, err = r.cores(first("cpu", places...)); err != nil {
		return err
	}
	if made.Memory, err = r.memory(first("memory", places...)); err != nil {
		return err
	}
	r.leaveOut(n, where, kept...)
	r.add(name, where, kindOf.Value, made)
	return nil
}

// add puts a node where its kind belongs.
func (r *reader) add(at *yaml.Node, where, kindOf string, n vnet.VirtualNode) {
	req := &r.request
	switch {
	case slices.Contains(switches, kindOf):
		r.kind[n.Name] = bridge
		r.at[fmt.Sprintf("switches[%d]", len(req.Switches))] = at
		req.Switches = append(req.Switches, vnet.VirtualSwitch{Name: n.Name, CPU: n.CPU, Labels: n.Labels})
	case kindOf == "host":
		r.kind[n.Name] = leftOut
		r.lost(at, where, "kind host is left out%s", noOutside)
	case slices.Contains(plain, kindOf), slices.Contains(machines, kindOf):
		if slices.Contains(machines, kindOf) {
			r.lost(at, where, "what is special of kind %s is left out: it is a plain node", kindOf)
		}
		r.kind[n.Name] = host
		r.at[fmt.Sprintf("nodes[%d]", len(req.Nodes))] = at
		req.Nodes = append(req.Nodes, n)
	default:
		r.kind[n.Name] = router
		r.at[fmt.Sprintf("routers[%d]", len(req.Routers))] = at
		req.Routers = append(req.Routers, n)
		r.lost(at, where, "software and configuration of kind %s are left out: it is a router with static routes", short(kindOf))
	}
}

// importVariables stands among variables for all that containerlab itself has.
const importVariables = "__IMPORT_ENV"

// setup is the image and the variables of a plain node.
func (r *reader) setup(where string, places ...*yaml.Node) (s vnet.Setup, err error) {
	if s.Env, err = r.words("env", "variable", places...); err != nil {
		return s, err
	}
	if _, all := s.Env[importVariables]; all {
		r.lost(first("env", places...), where, "%s is left out: no variables of this machine go into nodes", importVariables)
		delete(s.Env, importVariables)
	}
	image := first("image", places...)
	switch {
	case image.Kind == 0:
	case image.Kind == yaml.ScalarNode && vnet.ValidImage(image.Value):
		s.Image = image.Value
	default:
		r.lost(image, where, "image %s is left out: it is no name of one", short(image.Value))
	}
	return s, nil
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

func (r *reader) cores(n *yaml.Node) (vnet.CPU, error) {
	if n.Kind == 0 {
		return 0, nil
	}
	cores, err := vnet.ParseCPU(n.Value)
	if err != nil {
		return 0, r.fail(n, "cpu: %v", err)
	}
	return cores, nil
}

// memory is written as Docker does: a number and a unit of powers of 1024, of
// which b and ib may be left out; without a unit it is bytes.
func (r *reader) memory(n *yaml.Node) (vnet.Bytes, error) {
	if n.Kind == 0 {
		return 0, nil
	}
	text := strings.ToLower(strings.ReplaceAll(n.Value, " ", ""))
	unit := strings.TrimLeft(text, "0123456789.")
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
	power := strings.Index("kmgt", strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i"))
	if bytes := unit == "" || unit == "b"; bytes {
		power = -1
	} else if power < 0 || len(strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")) != 1 {
		err = strconv.ErrSyntax
	}
	size := number * math.Pow(1024, float64(power+1))
	if err != nil || n.Kind != yaml.ScalarNode || !(size >= 0 && size < 1<<62) {
		return 0, r.fail(n, "memory: %s is not a size such as 256MiB or 4GB", short(n.Value))
	}
	return vnet.Bytes(size), nil
}
