package vnet

import (
	"fmt"
	"slices"
	"strings"
)

// Fill states the defaults a reader may leave out: the links of chains, link names "a-b" ("a-b-2"
// when taken, long ends cut short), static routing for routers, the kind of
// switches, and chains for answers that pass functions in the same order. It changes nothing
// else that is stated, and once done changes nothing.
func (r *Request) Fill() {
	r.Start, r.Before = r.Start.UTC(), r.Before.UTC()
	taken := make(names)
	for _, top := range r.topologies() {
		for _, l := range top.Links {
			taken[l.Name] = 1
		}
		for _, n := range top.Placed() {
			taken[n.Name] = 1
		}
	}
	for _, top := range r.topologies() {
		top.fill(taken)
	}
	r.fillBack()
	r.fillChains(taken)
	r.fillFunctions(taken)
	r.fillChainStages()
	r.bookFunctions()
}

// topologies lists the initial topology, then what each stage adds.
func (r *Request) topologies() []*Topology {
	list := []*Topology{&r.Topology}
	for i := range r.Stages {
		list = append(list, &r.Stages[i].Add)
	}
	return list
}

// fill gives unnamed links a name that is not taken, routers a protocol and
// switches a kind.
// The lists are copied first: a caller may share them.
func (t *Topology) fill(taken names) {
	t.Links, t.Routers, t.Switches = slices.Clone(t.Links), slices.Clone(t.Routers), slices.Clone(t.Switches)
	for i := range t.Switches {
		if t.Switches[i].Kind == "" {
			t.Switches[i].Kind = SwitchKernel
		}
	}
	for i := range t.Links {
		if t.Links[i].Name == "" {
			t.Links[i].Name = taken.free(t.Links[i].Ends)
		}
	}
	for i := range t.Routers {
		if t.Routers[i].Protocol == "" {
			t.Routers[i].Protocol = ProtocolStatic
		}
	}
}

// Fill states the default names of links, as Request.Fill does.
func (s *Substrate) Fill() {
	taken := make(names)
	for _, l := range s.Links {
		taken[l.Name] = 1
	}
	s.Links = slices.Clone(s.Links)
	for i := range s.Links {
		if s.Links[i].Name == "" {
			s.Links[i].Name = taken.free(s.Links[i].Ends)
		}
	}
}

// names that are taken, each with the number of its last duplicate, so that
// thousands of parallel links do not try every number again.
type names map[string]int

// numberLength is the length that a default link name leaves for the number of a
// duplicate.
const numberLength = len("-200000") // MaxWires

// free makes a name of two ends and takes it.
func (taken names) free(ends [2]string) string {
	name := taken.next(ends[0] + "-" + ends[1])
	if len(name) > MaxName {
		most := (MaxName - numberLength - 1) / 2
		name = taken.next(shorten(ends[0], most) + "-" + shorten(ends[1], most))
	}
	taken[name] = max(taken[name], 1)
	return name
}

// next is a name, or the first of its numbered variants that is not taken.
func (taken names) next(base string) string {
	name := base
	for i := taken[base]; taken[name] > 0; {
		i++
		taken[base] = i
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

// shorten cuts a name to most bytes; what is left is a name too.
func shorten(name string, most int) string {
	return strings.TrimRight(name[:min(len(name), most)], "-_")
}
