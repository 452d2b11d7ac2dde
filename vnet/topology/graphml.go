package topology

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sublet/vnet"
)

// MaxGraphML bounds a GraphML text, in bytes. The largest of the Topology Zoo
// has 0.5 MB.
const MaxGraphML = 8 << 20

// maxValue is how much of a value is kept, in bytes: labels are shorter.
const maxValue = 1024

// maxDepth is how deep the elements that are understood can lie, and some.
const maxDepth = 16

// IsGraphML says whether a text looks like GraphML: XML whose root is graphml.
func IsGraphML(text []byte) bool {
	head := text[:min(len(text), 4096)]
	return bytes.HasPrefix(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("<")) && bytes.Contains(head, []byte("<graphml"))
}

// ParseGraphML reads a topology as the Internet Topology Zoo publishes them
// (Knight et al., JSAC 2011). Every node becomes a host, a hyperedge node a
// switch, named after its label; Country becomes the site. LinkSpeedRaw (bit/s),
// or what LinkSpeed or LinkLabel say, is a link's capacity, its length by Latitude and Longitude its latency.
// Parallel links stay parallel; a loop is left out. Notes say what was missing
// and what was taken instead. The error is a *vnet.InputError.
func ParseGraphML(name string, text []byte) (vnet.Substrate, []string, error) {
	r, err := readGraphML(name, text)
	if err != nil {
		return vnet.Substrate{}, nil, err
	}
	sub, notes := r.substrate()
	sub.Fill()
	if err := sub.Check(); err != nil {
		return vnet.Substrate{}, nil, r.fail("%v", err)
	}
	return sub, notes, nil
}

// readGraphML reads the nodes and edges of a text.
func readGraphML(name string, text []byte) (*reader, error) {
	if len(text) > MaxGraphML {
		return nil, &vnet.InputError{File: name, Line: 1, Column: 1, Problem: fmt.Sprintf("file has %d bytes, more than %d: split it", len(text), MaxGraphML)}
	}
	r := &reader{file: name, decoder: xml.NewDecoder(bytes.NewReader(text)), keys: map[string]string{}, index: map[string]int{}}
	return r, r.read()
}

// item is the graph, a node or an edge with its data, by attribute name.
type item struct {
	kind     string // graph, node or edge
	line     int    // where it begins
	column   int
	id       string
	from, to string // of an edge
	data     map[string]string
}

type reader struct {
	file     string
	decoder  *xml.Decoder
	keys     map[string]string // attribute names, by "KIND ID"
	graph    item
	nodes    []item
	edges    []item
	index    map[string]int // of nodes
	directed bool
	graphs   int

	line, column int // where the token begins that is read
}

func (r *reader) fail(format string, args ...any) error {
	line, column := r.decoder.InputPos()
	return &vnet.InputError{File: r.file, Line: line, Column: column, Problem: fmt.Sprintf(format, args...)}
}

// read goes through the elements; those it does not know are passed over.
func (r *reader) read() error {
	r.decoder.Strict = true
	var open []string
	var at *item // the node or edge that is open
	var key string
	for {
		r.line, r.column = r.decoder.InputPos()
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.syntax(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if open = append(open, t.Name.Local); len(open) > maxDepth {
				return r.fail("elements lie more than %d deep: this is no topology", maxDepth)
			}
			if len(open) == 1 && t.Name.Local != "graphml" {
				return r.fail("the root is <%s>: a GraphML file begins with <graphml>", brief(t.Name.Local))
			}
			if at, key, err = r.begin(t, at, key); err != nil {
				return err
			}
		case xml.EndElement:
			open = open[:len(open)-1]
			at, key = r.end(t.Name.Local, at, key)
		case xml.CharData:
			if at != nil && key != "" && len(at.data[key]) < maxValue {
				at.data[key] += string(t[:min(len(t), maxValue)])
			}
		case xml.Directive:
			return r.fail("a document type is not read: remove the <!...> line")
		}
	}
	if r.graphs == 0 || len(r.nodes) == 0 {
		return r.fail("there is no graph with nodes in it")
	}
	return nil
}

// syntax gives an XML error its place, which the decoder knows.
func (r *reader) syntax(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return r.fail("%s", syntax.Msg)
	}
	return r.fail("%v", err)
}

// begin takes in an element; at is the node or edge it stands in and key the
// data it stands in.
func (r *reader) begin(t xml.StartElement, at *item, key string) (*item, string, error) {
	switch t.Name.Local {
	case "key":
		r.keys[attribute(t, "for")+" "+attribute(t, "id")] = attribute(t, "attr.name")
	case "graph":
		if r.graphs++; r.graphs > 1 {
			return nil, "", r.fail("a second graph begins here: keep one graph in a file")
		}
		r.directed = attribute(t, "edgedefault") == "directed"
		r.graph = r.item("graph", attribute(t, "id"))
		return &r.graph, "", nil
	case "node":
		return r.node(t)
	case "edge":
		return r.edge(t)
	case "hyperedge":
		return nil, "", r.fail("a <hyperedge> is not read: write a node in the middle and edges to it")
	case "data":
		if at == nil {
			return nil, "", nil
		}
		id := attribute(t, "key")
		if name := r.keys[at.kind+" "+id]; name != "" {
			return at, name, nil
		}
		return at, r.keys["all "+id], nil
	}
	return at, key, nil
}

// end leaves an element.
func (r *reader) end(name string, at *item, key string) (*item, string) {
	switch name {
	case "data":
		return at, ""
	case "node", "edge":
		return &r.graph, ""
	}
	return at, key
}

// item begins one with the element that is read.
func (r *reader) item(kind, id string) item {
	return item{kind: kind, line: r.line, column: max(r.column, 1), id: id, data: map[string]string{}}
}

func (r *reader) node(t xml.StartElement) (*item, string, error) {
	id := attribute(t, "id")
	if _, twice := r.index[id]; twice || id == "" {
		return nil, "", r.fail("a node needs an id of its own, and %q is none", brief(id))
	}
	if len(r.nodes) == vnet.MaxHosts {
		return nil, "", r.fail("more than %d nodes: split the file", vnet.MaxHosts)
	}
	r.index[id] = len(r.nodes)
	r.nodes = append(r.nodes, r.item("node", id))
	return &r.nodes[len(r.nodes)-1], "", nil
}

func (r *reader) edge(t xml.StartElement) (*item, string, error) {
	e := r.item("edge", attribute(t, "id"))
	e.from, e.to = attribute(t, "source"), attribute(t, "target")
	if e.from == "" || e.to == "" {
		return nil, "", r.fail("an edge needs a source and a target")
	}
	if len(r.edges) == vnet.MaxWires {
		return nil, "", r.fail("more than %d edges: split the file", vnet.MaxWires)
	}
	r.edges = append(r.edges, e)
	return &r.edges[len(r.edges)-1], "", nil
}

func attribute(t xml.StartElement, name string) string {
	i := slices.IndexFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(t.Attr[i].Value)
}

// brief cuts a stranger's word for a line of text.
func brief(s string) string { return s[:min(len(s), vnet.MaxName)] }
