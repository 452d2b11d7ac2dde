// Package clab reads and writes topologies of containerlab
// (containerlab.dev/manual/topo-def-file): what of them a request can hold.
//
// Nodes of kind linux and of kinds that are machines become nodes, those of kind
// bridge and ovs-bridge switches, and those of a kind that is a router's or switch's software (such
// as nokia_srlinux) routers. Links have no rates there and are best effort.
// Images, variables, commands, binds and settings are those of nodes of kind
// linux, and of other kinds whose image is stated. Nodes of kind linux with
// several links are routers, since they forward there. Links out of the topology
// lead to exits of the operator's where Options say so. The management network and
// other links to the host have nothing like them in a request: each is returned as
// a Note, never silently.
package clab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vnet/topology"
)

// kinds of nodes that are no network software.
var (
	plain    = []string{"", "linux"}
	machines = []string{"ext-container", "generic_vm", "k8s-kind", "keysight_ixia-c-one", "ixiac-one", "freebsd", "openbsd"}
	switches = []string{"bridge", "ovs-bridge"}
)

// Options are what a topology does not say by itself.
type Options struct {
	Files Files // reads what it names; nil: nothing is read
	// Access are exits of the operator's, by what leads there in the topology: an
	// interface of the host, a node of kind host, or a bridge.
	Access map[string]Exit
	Set    map[string]string // values of its variables
	// NoImages lets nodes have the files of their host.
	NoImages bool
}

// Exit is one of the operator's, and the rate of each link that leads to it.
type Exit struct {
	Name string
	Rate vnet.Rate
}

// Parse reads a topology and makes a request of it, filled and checked. The
// name is used in errors only, which are *vnet.InputError.
func Parse(name string, text []byte, opt Options) (vnet.Request, []vnet.Note, error) {
	text, unset := fillIn(text, opt.Set)
	root, err := file.Tree(name, text)
	if at := bytes.Index(text, []byte("{{")); err != nil && at >= 0 {
		return vnet.Request{}, nil, &vnet.InputError{File: name, Line: 1 + bytes.Count(text[:at], []byte("\n")), Column: 1, Problem: "this is a template of a topology: fill it in first"}
	}
	if err != nil {
		return vnet.Request{}, nil, err
	}
	r := &reader{file: name, Options: opt, names: make(topology.Names), renamed: make(map[string]string), led: make(map[string]string), rates: make(map[string]vnet.Bandwidth), lives: make(map[string]life), nodeAt: make(map[string]*yaml.Node), at: make(map[string]*yaml.Node), kind: make(map[string]kind), interfaces: make(map[string][]port)}
	if !file.IsContainerlab(root) {
		return vnet.Request{}, nil, r.fail(root, "this is no topology of containerlab: it needs name, and topology with nodes")
	}
	if err := r.document(root); err != nil {
		return vnet.Request{}, r.notes, err
	}
	for _, variable := range unset {
		r.notes = append(r.notes, vnet.Note{Where: "topology", Text: fmt.Sprintf("${%s} is taken as it stands: give its value with --set %s=VALUE where it matters", variable, variable)})
	}
	err = r.complete()
	return r.request, r.notes, err
}

// reader makes a request of a document.
type reader struct {
	file       string
	request    vnet.Request
	notes      []vnet.Note
	at         map[string]*yaml.Node // where a path of the request comes from
	kind       map[string]kind       // by name of a node
	interfaces map[string][]port     // of a node, in the order of its links
	groups     layers
	lives      map[string]life       // by name of a node
	nodeAt     map[string]*yaml.Node // likewise
	bytes      int                   // of files so far

	Options
	names   topology.Names
	renamed map[string]string         // names of nodes, by what the topology calls them
	led     map[string]string         // bridges and switches with access, by what leads there
	rates   map[string]vnet.Bandwidth // of links at a switch with access
}

// kind is what becomes of a node.
type kind int

const (
	absent kind = iota // there is none of that name
	host
	router
	bridge
	leftOut
)

func (r *reader) fail(at *yaml.Node, format string, args ...any) error {
	return &vnet.InputError{File: r.file, Line: max(at.Line, 1), Column: max(at.Column, 1), Problem: fmt.Sprintf(format, args...)}
}

// lost notes what the request cannot hold.
func (r *reader) lost(at *yaml.Node, where, format string, args ...any) {
	r.notes = append(r.notes, vnet.Note{Line: at.Line, Column: at.Column, Where: where, Text: fmt.Sprintf(format, args...), Lost: true})
}

// document reads the outermost fields.
func (r *reader) document(root *yaml.Node) error {
	name, topology := value(root, "name"), value(root, "topology")
	if name.Kind != yaml.ScalarNode || topology.Kind != yaml.MappingNode {
		return r.fail(root, "name is a word, and topology has nodes and links: write them so")
	}
	r.request.Network, r.at["network"] = vnet.VNetID(r.legible(name, "topology")), name
	r.leaveOut(root, "topology "+name.Value, "name", "topology")
	if err := r.layers(topology); err != nil {
		return err
	}
	r.leaveOut(topology, "topology "+name.Value, "nodes", "links", "defaults", "kinds", "groups")
	if err := r.nodes(value(topology, "nodes")); err != nil {
		return err
	}
	if err := r.links(value(topology, "links")); err != nil {
		return err
	}
	r.nameInterfaces()
	return r.checkAccess(root)
}

// legible is a name that a request can have, and tells if it is another one than
// the topology's.
func (r *reader) legible(at *yaml.Node, what string) string {
	if vnet.CheckName(at.Value) == nil {
		return at.Value
	}
	name := topology.FirstLegible(at.Value)
	r.notes = append(r.notes, vnet.Note{Line: at.Line, Column: at.Column, Where: what + " " + short(at.Value), Text: "is named " + name})
	return name
}

// check gives what is wrong with the request its place in the topology.
func (r *reader) check() error {
	problems := r.request.Problems(vnet.MostProblems)
	if len(problems) == 0 {
		return nil
	}
	var first *vnet.InputError
	for _, p := range problems {
		at := &vnet.InputError{File: r.file, Line: 1, Column: 1, Problem: p.Error()}
		if n := r.place(p.Path); n != nil {
			at.Line, at.Column = n.Line, n.Column
		}
		if first == nil {
			first = at
		} else {
			first.More = append(first.More, at)
		}
	}
	return first
}

// place is where the object comes from that a path of the request is in.
func (r *reader) place(path string) *yaml.Node {
	for path != "" {
		if n := r.at[path]; n != nil {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return nil
}

// leaveOut notes each field of a mapping but those that are kept.
func (r *reader) leaveOut(n *yaml.Node, where string, kept ...string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if word := n.Content[i]; !slices.Contains(kept, word.Value) {
			r.lost(word, where, "%s is left out%s", short(word.Value), reasons[word.Value])
		}
	}
}

// short bounds what a note quotes of a document.
func short(word string) string {
	if len(word) > 40 {
		return fmt.Sprintf("%q...", word[:40])
	}
	if vnet.CheckName(word) != nil {
		return fmt.Sprintf("%q", word)
	}
	return word
}

const (
	noFiles      = ": bring the file by binds, or with sublet cp"
	noManagement = ": there is no management network, sublet exec reaches nodes"
	noOutside    = ": state a switch with access:, or a router with nat: and publish:, if your operator offers that"
	noAccess     = ": say --access %s=EXIT:RATE, with an exit that your operator offers"
)

var reasons = map[string]string{
	"config": noFiles, "license": noFiles,
	"ports": noOutside, "publish": noOutside, "network-mode": noOutside,
	"mgmt": noManagement, "mgmt_ipv6": noManagement, "mgmt-ipv6": noManagement,
	"mtu": ": the substrate decides",
}

// value is that of a mapping's field, an empty node if there is none.
func value(n *yaml.Node, word string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == word {
				return n.Content[i+1]
			}
		}
	}
	return &yaml.Node{Line: n.Line, Column: n.Column}
}
