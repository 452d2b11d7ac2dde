package topology

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sublet/vnet"
)

// ParseGraphMLRequest reads a topology as ParseGraphML does, but as a network
// that is asked for. Every node becomes a router, a hyperedge node a switch; a
// link whose speed is stated gets it as its rate, any other is best effort.
// What else the file says of nodes and edges becomes labels. Notes tell changed
// names and what is left out. The error is a *vnet.InputError.
func ParseGraphMLRequest(name string, text []byte) (vnet.Request, []vnet.Note, error) {
	r, err := readGraphML(name, text)
	if err != nil {
		return vnet.Request{}, nil, err
	}
	w := wish{reader: r, seen: make(map[[2]int][]int)}
	w.request.Network = vnet.VNetID(FirstLegible(r.graph.data["Network"], r.graph.data["label"], r.graph.id, NameOfFile(name)))
	w.tellGraph()
	w.nodes()
	for _, e := range r.edges {
		w.edge(e)
	}
	w.request.Fill()
	for _, problem := range w.request.Problems(1) {
		return vnet.Request{}, w.notes, &vnet.InputError{File: name, Line: r.graph.line, Column: r.graph.column, Problem: problem.Error()}
	}
	return w.request, w.notes, nil
}

// NameOfFile is the name of a file without its folder and what stands behind
// its first dot.
func NameOfFile(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".")
	return base
}

// wish makes a request of what a reader has read.
type wish struct {
	*reader
	request vnet.Request
	names   []string // of the nodes
	notes   []vnet.Note
	seen    map[[2]int][]int // directed edges without their opposite yet: their links
}

func (w *wish) note(at item, lost bool, format string, args ...any) {
	w.notes = append(w.notes, vnet.Note{Line: at.line, Column: at.column, Where: strings.TrimSpace(at.kind + " " + at.called()), Text: fmt.Sprintf(format, args...), Lost: lost})
}

// called is what people call a node, an edge or the graph.
func (i item) called() string {
	if i.kind == "edge" {
		return brief(i.from) + "-" + brief(i.to)
	}
	return brief(i.id)
}

// tellGraph tells what is left out of what is said of the graph: it describes
// the file and is no part of a network.
func (w *wish) tellGraph() {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(w.graph.data)) {
		if Legible(w.graph.data[word]) != string(w.request.Network) {
			words = append(words, brief(word))
		}
	}
	if len(words) > 0 {
		w.note(w.graph, false, "what is said of the file is left out: %s", strings.Join(words[:min(len(words), 40)], ", "))
	}
}

func (w *wish) nodes() {
	taken := make(Names)
	for _, n := range w.reader.nodes {
		name := taken.Take(nodeName(n))
		if label := n.data["label"]; label != "" && label != name {
			w.note(n, false, "%q is %s", brief(label), name)
		}
		w.names = append(w.names, name)
		if n.data["hyperedge"] == "1" {
			w.request.Switches = append(w.request.Switches, vnet.VirtualSwitch{Name: name, Labels: w.labels(n)})
		} else {
			w.request.Routers = append(w.request.Routers, vnet.VirtualNode{Name: name, Labels: w.labels(n)})
		}
	}
}

// labels keeps the data of a node or edge.
func (w *wish) labels(from item) map[string]string {
	kept := make(map[string]string)
	for _, word := range slices.Sorted(maps.Keys(from.data)) {
		value := strings.TrimSpace(from.data[word])
		switch {
		case value == "":
		case len(kept) == vnet.MaxLabels, vnet.CheckLabel(word, value) != nil:
			w.note(from, true, "%q can be no label and is left out", brief(word))
		default:
			kept[word] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func (w *wish) edge(e item) {
	a, known := w.index[e.from]
	b, too := w.index[e.to]
	if !known || !too || a == b {
		w.note(e, true, "a link needs two nodes that are there, so it is left out")
		return
	}
	var wanted vnet.Bandwidth
	if low, high := speeds(e, &notes{}); low > 0 {
		if wanted = vnet.Static(low); high > low {
			wanted.Max = high
		}
	} else {
		w.note(e, false, "its speed is not stated: best effort")
	}
	back := [2]int{b, a}
	if links := w.seen[back]; w.directed && len(links) > 0 {
		w.request.Links[links[0]].Bandwidth[vnet.Reverse] = wanted
		w.seen[back] = links[1:]
		w.tellReverse(e)
		return
	}
	w.seen[[2]int{a, b}] = append(w.seen[[2]int{a, b}], len(w.request.Links))
	w.request.Links = append(w.request.Links, vnet.VirtualLink{
		Ends: [2]string{w.names[a], w.names[b]}, Bandwidth: [2]vnet.Bandwidth{wanted, wanted}, Labels: w.labels(e),
	})
}

// tellReverse tells what is lost of an edge that is the way back of another.
func (w *wish) tellReverse(e item) {
	for _, word := range slices.Sorted(maps.Keys(e.data)) {
		if !slices.Contains(speedWords, word) {
			w.note(e, true, "it is the way back of a link that has labels already: %q is left out", brief(word))
		}
	}
}
