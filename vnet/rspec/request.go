package rspec

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// Parse reads a request or manifest and makes a request of it, filled and
// checked, named after its file. Errors are *vnet.InputError.
func Parse(name string, text []byte) (vnet.Request, []vnet.Note, error) {
	doc, err := parse(name, text)
	if err != nil {
		return vnet.Request{}, nil, err
	}
	if doc.Type == "advertisement" {
		return vnet.Request{}, nil, failAt(name, place{1, 1}, "this is an advertisement: it is a substrate, for sublet create substrate and --substrate")
	}
	r := &reader{file: name, names: make(topology.Names), at: make(map[string]place)}
	r.request.Network = vnet.VNetID(topology.FirstLegible(topology.NameOfFile(name), "rspec"))
	if err := r.read(doc); err != nil {
		return vnet.Request{}, r.notes, err
	}
	r.request.Fill()
	for _, problem := range r.request.Problems(1) {
		path, _, _ := strings.Cut(problem.Path, ".")
		return vnet.Request{}, r.notes, failAt(name, r.at[path], "%v", problem)
	}
	return r.request, r.notes, nil
}

// reader makes a request of a document.
type reader struct {
	file    string
	request vnet.Request
	notes   []vnet.Note
	names   topology.Names
	at      map[string]place // of what a path of the request begins with
	members members
	// addresses are those of links' ends, by interface, where a node has several.
	addresses map[string][]netip.Prefix
}

// members know to which node an interface belongs, by its id.
type members map[string]string

// add enters a node's interfaces.
func (m members) add(file, node string, list []iface) error {
	for _, i := range list {
		if _, twice := m[i.id()]; twice || i.id() == "" {
			return failAt(file, i.at, "an interface needs an id of its own, and %q is none", short(i.id()))
		}
		m[i.id()] = node
	}
	return nil
}

// of lists the nodes of a link's interfaces.
func (m members) of(file string, l link) ([]string, error) {
	var nodes []string
	for _, ref := range l.Refs {
		node, known := m[ref.id()]
		if !known {
			return nil, failAt(file, ref.at, "link %s: there is no interface %s: write it in its node", short(l.ClientID), short(ref.id()))
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func (r *reader) read(doc document) error {
	r.members = make(members)
	r.leaveOut(place{1, 1}, "rspec", doc.Others)
	r.addresses = make(map[string][]netip.Prefix)
	several := slices.ContainsFunc(doc.Nodes, func(n node) bool { return len(stated(n)) > 1 })
	for _, n := range doc.Nodes {
		name := r.name(n.at, "node", n.ClientID)
		if err := r.members.add(r.file, name, n.Interfaces); err != nil {
			return err
		}
		if err := r.node(name, n, several); err != nil {
			return err
		}
	}
	for _, l := range doc.Links {
		if err := r.link(l); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.addresses)) {
		r.note(place{1, 1}, true, "interface "+short(id), "its addresses are left out: it is at no link")
	}
	return nil
}

func (r *reader) note(at place, lost bool, where, format string, args ...any) {
	r.notes = append(r.notes, vnet.Note{Line: at.line, Column: max(at.column, 1), Where: where, Text: fmt.Sprintf(format, args...), Lost: lost})
}

// name makes a name of an id and tells if it is another.
func (r *reader) name(at place, kind, id string) string {
	name := r.names.Take(topology.FirstLegible(id, kind))
	if name != id {
		r.note(at, false, kind+" "+short(id), "is named %s", name)
	}
	return name
}

// drawn are elements that say how editors draw a document, or who made it.
var drawn = []string{"icon", "location", "rspec_tour", "client_info", "flack_info", "slice_info", "description", "position", "nodes", "host"}

// leaveOut notes elements that are not understood.
func (r *reader) leaveOut(at place, where string, list []other) {
	for _, o := range list {
		r.note(at, !slices.Contains(drawn, o.XMLName.Local), where, "%s is left out", short(o.XMLName.Local))
	}
}

func (r *reader) node(name string, n node, several bool) error {
	where := "node " + name
	made := vnet.VirtualNode{Name: name, Exclusive: n.Exclusive == "true" || n.Exclusive == "1"}
	if n.Site != nil && vnet.CheckLabel("site", n.Site.ID) == nil {
		made.Labels = map[string]string{"site": n.Site.ID}
		r.note(n.at, false, where, "site %s is kept as a label", short(n.Site.ID))
	}
	for _, has := range []struct{ word, value string }{{"component_manager_id", n.Manager}, {"component_id", n.ID}} {
		if has.value != "" {
			r.note(n.at, true, where, "%s is left out: state site or host of the substrate", has.word)
		}
	}
	for _, h := range n.Hardware {
		r.note(n.at, true, where, "hardware_type %s is left out", short(h.Name))
	}
	for _, s := range n.Services {
		r.run(n.at, where, s.Executes, &made)
		r.leaveOut(n.at, where+", services", s.Inside)
	}
	r.leaveOut(n.at, where, n.Others)
	for _, t := range n.Types {
		if err := r.sliver(n.at, where, t, &made); err != nil {
			return err
		}
	}
	if several {
		r.endAddresses(n, where)
	} else {
		r.address(n, where, &made)
	}
	r.at[fmt.Sprintf("nodes[%d]", len(r.request.Nodes))] = n.at
	r.request.Nodes = append(r.request.Nodes, made)
	return nil
}

// sliver reads what a node is made of.
func (r *reader) sliver(at place, where string, t sliverType, made *vnet.VirtualNode) error {
	if t.Name != "" && t.Name != "default-vm" {
		r.note(at, true, where, "sliver_type %s is left out: nodes are network namespaces", short(t.Name))
	}
	r.leaveOut(at, where, t.Others)
	if t.Xen == nil {
		return nil
	}
	if t.Xen.Disk != "" {
		r.note(at, true, where, "disk is left out: nodes use the files of their host")
	}
	var err error
	if t.Xen.Cores != "" {
		if made.CPU, err = vnet.ParseCPU(t.Xen.Cores); err != nil {
			return failAt(r.file, at, "%s: cores: %v", where, err)
		}
	}
	if t.Xen.RAM != "" {
		if made.Memory, err = vnet.ParseBytes(t.Xen.RAM + "MiB"); err != nil {
			return failAt(r.file, at, "%s: ram: %s is no number of MiB", where, short(t.Xen.RAM))
		}
	}
	return nil
}

// run has a node run what is executed there, one after the other.
func (r *reader) run(at place, where string, list []execute, made *vnet.VirtualNode) {
	for _, e := range list {
		shell := e.Shell
		if shell == "" {
			shell = "sh"
		}
		if !slices.Contains([]string{"sh", "/bin/sh", "bash", "/bin/bash"}, shell) {
			r.note(at, true, where, "execute by %s is left out: sh and bash are known", short(shell))
			continue
		}
		const done = "execute: done"
		script := shell + ` -c "$0"; echo '` + done + `'` // however the command ends
		made.Run = append(made.Run, vnet.Program{Cmd: []string{"sh", "-c", script, e.Command}, Ready: vnet.Ready{Line: done}})
	}
}

// stated lists the addresses of a node's interfaces.
func stated(n node) (list []address) {
	for _, i := range n.Interfaces {
		list = append(list, i.IPs...)
	}
	return list
}

// endAddresses notes the addresses of a node's interfaces for their links.
func (r *reader) endAddresses(n node, where string) {
	for _, i := range n.Interfaces {
		for _, a := range i.IPs {
			if p, ok := a.prefix(); ok {
				r.addresses[i.id()] = append(r.addresses[i.id()], p)
			} else {
				r.note(n.at, true, where, "address %s is left out: it needs a netmask, such as 255.255.255.0", short(a.Address))
			}
		}
	}
}

// prefix is an address with its subnet. The mask is of IPv4, or a number of bits.
func (a address) prefix() (netip.Prefix, bool) {
	address, err := netip.ParseAddr(a.Address)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	length, err := strconv.Atoi(a.Netmask)
	if mask, of4 := netip.ParseAddr(a.Netmask); of4 == nil && mask.Is4() && address.Is4() {
		m := mask.As4()
		ones := bits.LeadingZeros32(^binary.BigEndian.Uint32(m[:]))
		if netip.PrefixFrom(mask, ones).Masked().Addr() != mask { // there are ones behind zeros
			return netip.Prefix{}, false
		}
		length, err = ones, nil
	}
	p := netip.PrefixFrom(address, length)
	return p, err == nil && p.IsValid() && length > 0 && !p.IsSingleIP()
}

// address keeps the address of a node that has one.
func (r *reader) address(n node, where string, made *vnet.VirtualNode) {
	for _, one := range stated(n) {
		if a, err := netip.ParseAddr(one.Address); err == nil && a.Is4() {
			made.Address = a
		} else {
			r.note(n.at, true, where, "address %s is left out: a node has one of IPv4", short(one.Address))
		}
	}
}

// kbit reads a capacity; 0: none is stated.
func kbit(file string, p property) (vnet.Rate, error) {
	if p.Capacity == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(p.Capacity, 64)
	if rate := topology.Speed(p.Capacity); err != nil && rate > 0 {
		return rate, nil
	}
	if err != nil || !(n >= 0 && n <= float64(vnet.MaxRate/vnet.Kbit)) {
		return 0, failAt(file, p.at, "capacity %s is no number of kbit/s, up to %d", short(p.Capacity), vnet.MaxRate/vnet.Kbit)
	}
	return vnet.Rate(n * float64(vnet.Kbit)), nil
}
