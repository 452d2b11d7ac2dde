package clab

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// topologyFile is what the writer makes.
type topologyFile struct {
	Name     string `yaml:"name"`
	Topology struct {
		Nodes map[string]nodeForm `yaml:"nodes"`
		Links []linkForm          `yaml:"links,omitempty"`
	} `yaml:"topology"`
}

type nodeForm struct {
	Kind   string            `yaml:"kind"`
	CPU    float64           `yaml:"cpu,omitempty"`
	Memory string            `yaml:"memory,omitempty"`
	Image  string            `yaml:"image,omitempty"`
	Env    map[string]string `yaml:"env,omitempty"`
	Labels map[string]string `yaml:"labels,omitempty"`
}

type linkForm struct {
	Endpoints [2]string         `yaml:"endpoints,flow"`
	Labels    map[string]string `yaml:"labels,omitempty"`
}

// Format writes the first stage of a request as a topology, and notes what
// containerlab has no words for. Nodes are of kind linux, which
// containerlab wants an image of.
func Format(r vnet.Request) ([]byte, []vnet.Note) {
	w := writer{next: make(map[string]int)}
	w.file.Name = string(r.Network)
	w.file.Topology.Nodes = make(map[string]nodeForm)
	w.head(r)
	for _, n := range r.Nodes {
		w.node("node "+n.Name, n)
	}
	for _, n := range r.Routers {
		w.node("router "+n.Name, n)
		w.lose("router "+n.Name, "forwarding and protocol %s", n.Protocol)
		if n.NAT != "" {
			w.lose("router "+n.Name, "its way out %s", n.NAT)
		}
	}
	for _, s := range r.Switches {
		w.bridge(s)
	}
	for _, l := range r.Links {
		w.link(l)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	_ = encoder.Encode(w.file) // of strings and numbers, into memory: it cannot fail
	return text.Bytes(), w.notes
}

type writer struct {
	file  topologyFile
	next  map[string]int // number of a node's next interface
	notes []vnet.Note
}

func (w *writer) lose(where, format string, args ...any) {
	w.notes = append(w.notes, vnet.Note{Where: where, Text: fmt.Sprintf(format, args...) + ": left out", Lost: true})
}

// loseIf notes each thing that is there.
func (w *writer) loseIf(where string, there map[string]bool, order ...string) {
	for _, what := range order {
		if there[what] {
			w.lose(where, "%s", what)
		}
	}
}

func (w *writer) head(r vnet.Request) {
	w.loseIf("network "+string(r.Network), map[string]bool{
		"window": !r.Start.IsZero() || !r.Before.IsZero() || r.For != 0, "stages": len(r.Stages) > 0,
		"movable": r.Movable, "negotiable": len(r.Negotiable) > 0, "objective": r.Objective != "",
		"colocate": r.Apart(), "tenant": r.Tenant != "",
	}, "tenant", "window", "stages", "movable", "negotiable", "objective", "colocate")
}

func (w *writer) node(where string, n vnet.VirtualNode) {
	f := form("linux", n.CPU, n.Memory, n.Labels)
	f.Image, f.Env = n.Image, n.Env
	w.file.Topology.Nodes[n.Name] = f
	w.next[n.Name] = 1 // eth0 is containerlab's own
	w.loseIf(where, map[string]bool{"site": n.Site != "", "host": n.Host != "", "exclusive": n.Exclusive, "address": n.Address.IsValid()},
		"site", "host", "exclusive", "address")
	rest := n.Setup
	rest.Image, rest.Env = "", nil // which the topology has
	for _, field := range rest.Stated() {
		w.lose(where, "%s", field)
	}
}

func form(kind string, cpu vnet.CPU, memory vnet.Bytes, labels map[string]string) nodeForm {
	f := nodeForm{Kind: kind, CPU: float64(cpu) / float64(vnet.Core), Labels: labels}
	if memory > 0 {
		f.Memory = fmt.Sprintf("%db", memory)
	}
	return f
}

func (w *writer) bridge(s vnet.VirtualSwitch) {
	w.file.Topology.Nodes[s.Name] = form("bridge", s.CPU, 0, s.Labels)
	w.loseIf("switch "+s.Name, map[string]bool{
		"site": s.Site != "", "host": s.Host != "", "ageing": s.Ageing != 0, "options of ports": len(s.Ports) > 0,
		"kind vxswitch, with its buffers and schedulers": s.Kind != vnet.SwitchKernel && s.Kind != "",
	}, "site", "host", "ageing", "options of ports", "kind vxswitch, with its buffers and schedulers")
}

func (w *writer) link(l vnet.VirtualLink) {
	f := linkForm{Labels: l.Labels}
	for i, node := range l.Ends {
		f.Endpoints[i] = fmt.Sprintf("%s:eth%d", node, w.next[node])
		w.next[node]++
	}
	w.file.Topology.Links = append(w.file.Topology.Links, f)
	w.loseIf("link "+l.Name, map[string]bool{"rates": !l.BestEffort(), "latency": l.Latency != 0, "paths": l.Paths > 1, "impairments": l.Impair != [2]vnet.Impairment{}, "addresses": !l.Addresses.IsZero()},
		"rates", "latency", "paths", "impairments", "addresses")
}
