// Package mininet reads topologies of Mininet (mininet.org) as tools/mininet
// writes them, in Mininet's words as JSON: what of them a request can hold.
//
// Hosts become nodes, those of a class with router in its name routers, and
// switches switches. A link's bw (Mbit/s) is its rate in both directions, its
// delay, jitter and loss (%) are impairments of both; params1 and params2 are of
// the direction that begins at that end, and state the address there. What else
// is stated is returned as a Note, never silently.
package mininet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vnet/topology"
)

// Is says whether a document is such a topology.
func Is(root *yaml.Node) bool { return value(root, "mininet") != nil }

// Parse makes a request of a topology, filled and checked. The name is used in
// errors only, which are *vnet.InputError.
func Parse(name string, text []byte) (vnet.Request, []vnet.Note, error) {
	root, err := file.Tree(name, text)
	if err != nil {
		return vnet.Request{}, nil, err
	}
	r := &reader{file: name, names: make(topology.Names), named: make(map[string]string), at: make(map[string]*yaml.Node), ports: make(map[string][]string), prefix: make(map[string]netip.Prefix)}
	if err := r.document(root); err != nil {
		return vnet.Request{}, r.notes, err
	}
	r.addresses()
	r.request.Fill()
	if problems := r.request.Problems(1); len(problems) > 0 {
		path, _, _ := strings.Cut(problems[0].Path, ".")
		at := r.at[path]
		if at == nil {
			at = root
		}
		return vnet.Request{}, r.notes, r.fail(at, "%v", problems[0])
	}
	return r.request, r.notes, nil
}

// reader makes a request of a document.
type reader struct {
	file    string
	request vnet.Request
	notes   []vnet.Note
	names   topology.Names
	named   map[string]string       // the name of a node, by Mininet's
	at      map[string]*yaml.Node   // of what a path of the request begins with
	ports   map[string][]string     // interfaces of a host, in the order of its links
	prefix  map[string]netip.Prefix // that a node states of its first interface
	routes  []route
}

func (r *reader) fail(at *yaml.Node, format string, args ...any) error {
	return &vnet.InputError{File: r.file, Line: max(at.Line, 1), Column: max(at.Column, 1), Problem: fmt.Sprintf(format, args...)}
}

func (r *reader) note(at *yaml.Node, lost bool, where, format string, args ...any) {
	r.notes = append(r.notes, vnet.Note{Line: at.Line, Column: at.Column, Where: where, Text: fmt.Sprintf(format, args...), Lost: lost})
}

// document reads the outermost fields.
func (r *reader) document(root *yaml.Node) error {
	if version := value(root, "mininet"); version == nil || version.Value != "1" {
		return r.fail(root, "this is no topology that tools/mininet/export.py wrote, of version 1")
	}
	r.request.Network = vnet.VNetID(topology.FirstLegible(word(root, "name"), "mininet"))
	for _, list := range []struct {
		word string
		read func(*yaml.Node) error
	}{{"nodes", r.node}, {"links", r.link}} {
		all := value(root, list.word)
		if all == nil || all.Kind != yaml.SequenceNode {
			return r.fail(root, "%s is no list: write the topology again with tools/mininet/export.py", list.word)
		}
		for _, n := range all.Content {
			if n.Kind != yaml.MappingNode {
				return r.fail(n, "one of %s has no fields: write the topology again with tools/mininet/export.py", list.word)
			}
			if err := list.read(n); err != nil {
				return err
			}
		}
	}
	r.tellInterfaces()
	return nil
}

// options are how Mininet does what a request asks for, which is not told.
var options = []string{"use_htb", "use_hfsc", "use_tbf", "speedup", "gro", "txo", "rxo", "disable_gro", "failMode", "stp", "inNamespace"}

// leaveOut notes the fields of a mapping but those that are known.
func (r *reader) leaveOut(n *yaml.Node, where string, known ...string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := n.Content[i], n.Content[i+1]
		if slices.Contains(known, key.Value) || at.ShortTag() == "!!null" {
			continue
		}
		r.note(key, !slices.Contains(options, key.Value), where, "%s is left out", short(key.Value))
	}
}

// tellInterfaces notes which interfaces have other names in the network: there
// a node's are eth0, eth1 and so on, in the order of its links.
func (r *reader) tellInterfaces() {
	for _, n := range r.request.All() {
		var renamed []string
		for i, port := range r.ports[n.Name] {
			if port != strconv.Itoa(i) && port != "" {
				renamed = append(renamed, fmt.Sprintf("%s-eth%s is eth%d", n.Name, port, i))
			}
		}
		if len(renamed) > 0 {
			r.note(&yaml.Node{}, false, "node "+n.Name, "interface %s", strings.Join(renamed, ", "))
		}
	}
}

// value is that of a mapping's field, nil if there is none.
func value(n *yaml.Node, word string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == word {
			return n.Content[i+1]
		}
	}
	return nil
}

// word is the text of a field; "": there is none.
func word(n *yaml.Node, name string) string {
	if v := value(n, name); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
		return v.Value
	}
	return ""
}

// short bounds what a message quotes of a document.
func short(word string) string {
	if vnet.CheckName(word) == nil {
		return word
	}
	return fmt.Sprintf("%.40q", word)
}
