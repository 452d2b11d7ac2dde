package rspec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// What hosts and links have that a document does not size.
const (
	unknownCPU      = 4 * vnet.Core
	unknownMemory   = 4 * vnet.GiB
	unknownCapacity = vnet.Gbit
)

// ParseSubstrate reads an advertisement, or a request as if it were one, and
// makes a substrate of it, filled and checked. Hosts are sized as
// topology.Named does; links have the capacity and latency (ms) of their
// properties. Errors are *vnet.InputError.
func ParseSubstrate(name string, text []byte) (vnet.Substrate, []vnet.Note, error) {
	doc, err := parse(name, text)
	if err != nil {
		return vnet.Substrate{}, nil, err
	}
	b := &builder{file: name, names: topology.Names{vnet.OperatorName: 1}, members: make(members)}
	for _, n := range doc.Nodes {
		if err := b.node(n); err != nil {
			return vnet.Substrate{}, b.notes, err
		}
	}
	for _, l := range doc.Links {
		if err := b.link(l); err != nil {
			return vnet.Substrate{}, b.notes, err
		}
	}
	b.sub.Fill()
	if err := b.sub.Check(); err != nil {
		return vnet.Substrate{}, b.notes, failAt(name, place{1, 1}, "%v", err)
	}
	return b.sub, b.notes, nil
}

// builder makes a substrate of a document.
type builder struct {
	file    string
	sub     vnet.Substrate
	notes   []vnet.Note
	names   topology.Names
	members members
}

func (b *builder) note(at place, lost bool, where, format string, args ...any) {
	b.notes = append(b.notes, vnet.Note{Line: at.line, Column: max(at.column, 1), Where: where, Text: fmt.Sprintf(format, args...), Lost: lost})
}

// node adds a host, or a switch if its hardware is one.
func (b *builder) node(n node) error {
	id := last(n.ID)
	name := b.names.Take(topology.FirstLegible(n.Name, n.ClientID, id, "node"))
	if err := b.members.add(b.file, name, n.Interfaces); err != nil {
		return err
	}
	if n.Available != nil && n.Available.Now == "false" {
		b.note(n.at, false, "node "+name, "is not available now, and taken as if it were")
	}
	if slices.ContainsFunc(n.Hardware, func(h hardware) bool { return h.Name == "switch" }) {
		b.sub.Switches = append(b.sub.Switches, name)
		return nil
	}
	b.sub.Hosts = append(b.sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name), Site: authority(n.Manager), CPU: unknownCPU, Memory: unknownMemory})
	return nil
}

// last is what stands behind the last + of a URN.
func last(urn string) string { return urn[strings.LastIndexByte(urn, '+')+1:] }

// authority is the name of the authority in a URN such as
// urn:publicid:IDN+emulab.net+authority+cm.
func authority(urn string) string {
	if parts := strings.Split(urn, "+"); len(parts) > 1 {
		return topology.Legible(parts[1])
	}
	return ""
}

// link adds one, or a switch with a link to each of more than two members.
func (b *builder) link(l link) error {
	where := "link " + short(last(l.ID)+l.ClientID)
	ends, err := b.members.of(b.file, l)
	if err != nil {
		return err
	}
	if len(ends) < 2 || len(ends) == 2 && ends[0] == ends[1] {
		b.note(l.at, true, where, "is left out: a link joins two nodes")
		return nil
	}
	if len(ends) == 2 {
		return b.join(l, where, [2]string{ends[0], ends[1]}, l.Refs[0].id())
	}
	hub := b.names.Take(topology.FirstLegible(l.ClientID, last(l.ID), "lan"))
	b.sub.Switches = append(b.sub.Switches, hub)
	for i, member := range ends {
		if err := b.join(l, where, [2]string{member, hub}, l.Refs[i].id()); err != nil {
			return err
		}
	}
	return nil
}

// join adds a link that begins at an interface.
func (b *builder) join(l link, where string, ends [2]string, from string) error {
	rate, err := capacity(b.file, l, from, "")
	if err != nil {
		return err
	}
	if rate == 0 {
		b.note(l.at, false, where, "its capacity is not stated, taken for %s", unknownCapacity)
		rate = unknownCapacity
	}
	latency, err := b.latency(l)
	if err != nil {
		return err
	}
	b.sub.Links = append(b.sub.Links, vnet.SubstrateLink{Ends: ends, Capacity: rate, Latency: latency})
	return nil
}

// latency is the longest that a link's properties state.
func (b *builder) latency(l link) (time.Duration, error) {
	var most time.Duration
	for _, p := range l.Properties {
		latency, err := milliseconds(b.file, p)
		if err != nil {
			return 0, err
		}
		most = max(most, latency)
	}
	return most, nil
}
