package vnet

import (
	"slices"
	"time"
)

// At returns the topology of stage i; -1 is the one before the first stage.
func (r Request) At(stage int) Topology {
	top := r.Topology
	for _, s := range r.Stages[:stage+1] {
		top = top.apply(s)
	}
	return top.withoutAbsent()
}

// StageAt returns the index of the stage running `since` after the start, or -1.
func (r Request) StageAt(since time.Duration) int {
	stage := -1
	for i, s := range r.Stages {
		if s.Timed() && s.After <= since {
			stage = i
		}
	}
	return stage
}

// Timed says whether it is known when a stage begins.
func (s Stage) Timed() bool { return !s.OnCommand || s.After > 0 }

// NextTimed is the first stage after one of which it is known when it begins;
// len(r.Stages): there is none.
func (r Request) NextTimed(stage int) int {
	for stage++; stage < len(r.Stages) && !r.Stages[stage].Timed(); {
		stage++
	}
	return stage
}

// LastTimed is when the last stage begins of which that is known; 0: there is none.
func (r Request) LastTimed() time.Duration { return r.LastBegun(len(r.Stages)) }

// LastBegun is LastTimed of the stages before one.
func (r Request) LastBegun(before int) (after time.Duration) {
	for _, s := range r.Stages[:before] {
		if s.Timed() {
			after = s.After
		}
	}
	return after
}

// MayRun is the part of the window in which a stage may be the one that runs.
func (r Request) MayRun(stage int, window Window) Window {
	w := window
	for _, later := range r.Stages[stage+1:] {
		if end := window.Start.Add(later.After); later.Timed() && (w.End.IsZero() || end.Before(w.End)) {
			w.End = end
		}
	}
	for ; stage >= 0; stage-- {
		if s := r.Stages[stage]; s.Timed() {
			w.Start = window.Start.Add(s.After)
			break
		}
	}
	return w
}

// Union returns everything that exists in any stage, in order of appearance:
// the order from which stable indexes (interface names, addresses, VNIs) come.
// A link that comes back under its name is listed once, as it was first written.
func (r Request) Union() Topology {
	union := r.Topology
	union.Nodes, union.Routers, union.Switches, union.Links = slices.Clone(union.Nodes), slices.Clone(union.Routers), slices.Clone(union.Switches), slices.Clone(union.Links)
	for _, s := range r.Stages {
		union.Nodes = appendNew(union.Nodes, s.Add.Nodes, nodeName)
		union.Routers = appendNew(union.Routers, s.Add.Routers, nodeName)
		union.Switches = appendNew(union.Switches, s.Add.Switches, switchName)
		union.Links = appendNew(union.Links, s.Add.Links, linkName)
	}
	return union
}

// All returns end nodes, then routers.
func (t Topology) All() []VirtualNode {
	return slices.Concat(t.Nodes, t.Routers)
}

// Link finds a link by name.
func (t Topology) Link(name string) (VirtualLink, bool) {
	for _, l := range t.Links {
		if l.Name == name {
			return l, true
		}
	}
	return VirtualLink{}, false
}

func nodeName(n VirtualNode) string { return n.Name }
func linkName(l VirtualLink) string { return l.Name }

func switchName(s VirtualSwitch) string { return s.Name }

// apply returns the topology after a stage's removals, additions, rates, impairments and
// failures, and with the functions that it brings or takes away.
func (t Topology) apply(s Stage) Topology {
	gone := make(map[string]bool, len(s.Remove))
	for _, name := range s.Remove {
		gone[name] = true
	}
	next := Topology{
		Nodes:    without(t.Nodes, func(n VirtualNode) bool { return gone[n.Name] }),
		Routers:  without(t.Routers, func(n VirtualNode) bool { return gone[n.Name] }),
		Switches: without(t.Switches, func(s VirtualSwitch) bool { return gone[s.Name] }),
		Links:    without(t.Links, func(l VirtualLink) bool { return gone[l.Name] || gone[l.Ends[0]] || gone[l.Ends[1]] }),
	}
	next.Nodes = append(next.Nodes, s.Add.Nodes...)
	next.Routers = append(next.Routers, s.Add.Routers...)
	next.Switches = append(next.Switches, s.Add.Switches...)
	next.Links = append(next.Links, s.Add.Links...)
	for i, l := range next.Links {
		if b, ok := s.Links[l.Name]; ok {
			next.Links[i].Bandwidth = b
		}
		if impair, ok := s.Impair[l.Name]; ok {
			next.Links[i].Impair = impair
		}
		if down, ok := s.Down[l.Name]; ok {
			next.Links[i].Down = down
		}
	}
	return next.withPresence(s.Functions)
}

// without copies list less the elements that drop names.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

// appendNew appends the elements of more whose name is not in list yet.
func appendNew[T any](list, more []T, name func(T) string) []T {
	seen := make(map[string]bool, len(list))
	for _, x := range list {
		seen[name(x)] = true
	}
	for _, x := range more {
		if !seen[name(x)] {
			list = append(list, x)
			seen[name(x)] = true
		}
	}
	return list
}

// Node finds an end node by name.
func (t Topology) Node(name string) (VirtualNode, bool) {
	i := slices.IndexFunc(t.Nodes, func(n VirtualNode) bool { return n.Name == name })
	if i < 0 {
		return VirtualNode{}, false
	}
	return t.Nodes[i], true
}
