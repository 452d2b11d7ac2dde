package clab

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"strings"

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
	User   string            `yaml:"user,omitempty"`
	Mode   string            `yaml:"network-mode,omitempty"`

	Entrypoint string `yaml:"entrypoint,omitempty"`
	Cmd        string `yaml:"cmd,omitempty"`
	Restart    string `yaml:"restart-policy,omitempty"`

	Binds   []string          `yaml:"binds,omitempty"`
	Sysctls map[string]string `yaml:"sysctls,omitempty"`
	Exec    []string          `yaml:"exec,omitempty"`
	Labels  map[string]string `yaml:"labels,omitempty"`
}

type linkForm struct {
	Endpoints [2]string         `yaml:"endpoints,flow"`
	Labels    map[string]string `yaml:"labels,omitempty"`
}

// Format writes the first stage of a request as a topology, and notes what
// containerlab has no words for. Nodes are of kind linux, which
// containerlab wants an image of, without its management network, which would
// be their eth0. Files of nodes are binds of those that it returns, below a directory
// beside the topology; without one they are left out.
func Format(r vnet.Request, beside string) ([]byte, []vnet.File, []vnet.Note) {
	w := writer{beside: beside, links: r.Links, interfaces: r.Interfaces()}
	w.file.Name = string(r.Network)
	w.file.Topology.Nodes = make(map[string]nodeForm)
	w.head(r)
	for _, n := range r.Nodes {
		w.node("node "+n.Name, n, "0")
		if n.Device != "" {
			w.lose("node "+n.Name, "its device")
		}
		if n.Join != "" {
			w.lose("node "+n.Name, "that a machine joins as it")
		}
	}
	for _, n := range r.Routers {
		w.node("router "+n.Name, n, "1")
		if n.Protocol != vnet.ProtocolNone {
			w.lose("router "+n.Name, "protocol %s", n.Protocol)
		}
		if n.FRR != "" {
			w.lose("router "+n.Name, "its configuration of FRR")
		}
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
	return text.Bytes(), w.files, w.notes
}

// noNetwork is the mode of a node that has no interfaces but those of its links.
const noNetwork = "none"

type writer struct {
	file       topologyFile
	links      []vnet.VirtualLink
	interfaces map[string][2]string // of links
	beside     string               // directory of files
	files      []vnet.File
	notes      []vnet.Note
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
		"movable": r.Movable, "negotiable": len(r.Negotiable) > 0, "objective": r.Objective != "", "labels": len(r.Labels) > 0,
		"colocate": r.Apart(), "tenant": r.Tenant != "", "chains": len(r.Chains) > 0, "classes": len(r.Classes) > 0, "chosen addresses of IPv6": r.IPv6,
	}, "tenant", "window", "stages", "chains", "classes", "chosen addresses of IPv6", "labels", "movable", "negotiable", "objective", "colocate")
}

// node writes one that forwards ("1") or not ("0"), which containers there do by
// themselves.
func (w *writer) node(where string, n vnet.VirtualNode, forwards string) {
	f := form("linux", n.CPU, n.Memory, n.Labels)
	f.Image, f.Env, f.User, f.Mode = n.Image, n.Env, n.User, noNetwork
	f.Sysctls = map[string]string{ipForward: forwards}
	maps.Copy(f.Sysctls, n.Sysctls)
	if f.Sysctls[ipForward] != forwards {
		w.lose(where, "that it forwards by a setting only, without being a router")
	}
	for _, l := range w.links {
		for end, name := range l.Ends {
			if name == n.Name {
				f.Exec = append(f.Exec, addresses(l.Addresses[end], w.interfaces[l.Name][end])...)
			}
		}
	}
	w.loseIf(where, map[string]bool{"site": n.Site != "", "host": n.Host != "", "exclusive": n.Exclusive, "movable": n.Movable != "", "address": n.Address.IsValid(), "function": n.IsFunction()},
		"site", "host", "exclusive", "movable", "address", "function")
	rest := n.Setup
	if f.programs(n.Setup) {
		rest.Run = nil
	}
	rest.Image, rest.Env, rest.User, rest.Sysctls = "", nil, "", nil // which the topology has
	for _, file := range rest.Files {
		w.bind(where, n.Name, &f, file)
	}
	rest.Files = nil
	for _, field := range rest.Stated() {
		w.lose(where, "%s", field)
	}
	w.file.Topology.Nodes[n.Name] = f
}

// bind writes a file of a node beside the topology. Its path there is that in the node,
// which a colon would end, and it belongs to whoever unpacks it.
func (w *writer) bind(where, node string, f *nodeForm, file vnet.File) {
	if w.beside == "" || strings.Contains(file.Path, ":") || strings.Contains(w.beside, ":") {
		w.lose(where, "file %s", file.Path)
		return
	}
	if file.Owner != "" {
		w.lose(where, "owner %s of file %s", file.Owner, file.Path)
	}
	at := path.Join(w.beside, node, file.Path)
	f.Binds = append(f.Binds, at+":"+file.Path)
	w.files = append(w.files, vnet.File{Path: at, Text: file.Text, Mode: file.Mode})
}

// programs writes what a node runs, if that is one program of which the topology can
// say all, or none, and then programs that Parse made of exec.
func (f *nodeForm) programs(s vnet.Setup) bool {
	run := s.Run
	var exec []string
	for len(run) > 0 {
		commands, ok := commandsOf(run[len(run)-1])
		if !ok {
			break
		}
		exec, run = append(commands, exec...), run[:len(run)-1]
	}
	if len(run) > 1 || len(run) == 1 && !f.program(s.Image, run[0]) {
		return false
	}
	f.Exec = append(f.Exec, exec...)
	return true
}

// program writes the first one. That of an image without arguments is there without a
// word.
func (f *nodeForm) program(image string, p vnet.Program) bool {
	if len(p.Cmd) == 0 && !p.Entrypoint || p.User != "" || !startsAtOnce(p.Ready) {
		return false
	}
	line := strings.TrimSpace(quoted(p.Cmd))
	if image != "" && !p.Entrypoint {
		f.Entrypoint = line
	} else {
		f.Cmd = line
	}
	if p.Restart != vnet.RestartNo {
		f.Restart = string(p.Restart)
	}
	return true
}

// startsAtOnce says that a program is ready as soon as it is started.
func startsAtOnce(r vnet.Ready) bool { return r.Port == 0 && r.Cmd == nil && r.Line == "" }

// addresses are commands that give them to an interface.
func addresses(list []netip.Prefix, device string) (commands []string) {
	for _, p := range list {
		commands = append(commands, fmt.Sprintf("ip address add %s dev %s", p, device))
	}
	return commands
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
	kind := fmt.Sprintf("kind %s, with what only that has", s.Kind)
	w.loseIf("switch "+s.Name, map[string]bool{
		"site": s.Site != "", "host": s.Host != "", "ageing": s.Ageing != 0, "options of ports": len(s.Ports) > 0,
		kind:                    s.Kind != vnet.SwitchKernel && s.Kind != "",
		"its access to an exit": s.Access != "",
	}, "site", "host", "ageing", "options of ports", kind, "its access to an exit")
}

func (w *writer) link(l vnet.VirtualLink) {
	f := linkForm{Labels: l.Labels}
	for i, node := range l.Ends {
		f.Endpoints[i] = node + ":" + w.interfaces[l.Name][i]
	}
	w.file.Topology.Links = append(w.file.Topology.Links, f)
	w.loseIf("link "+l.Name, map[string]bool{"rates": !l.BestEffort(), "latency": l.Latency != 0, "paths": l.Paths > 1, "impairments": l.Impair != [2]vnet.Impairment{}, "failures": l.Down, "control": l.Control, "areas and costs": l.Area != 0 || l.Cost != 0, "class": l.Class != ""},
		"rates", "latency", "paths", "impairments", "failures", "control", "areas and costs", "class")
}
