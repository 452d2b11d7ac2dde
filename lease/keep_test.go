package lease

import (
	"testing"

	"sublet/vnet"
)

// TestWhatKeepsItsFilesWaitsForItsHost: a host that is down takes a node elsewhere,
// unless it keeps what it writes, which is there only.
func TestWhatKeepsItsFilesWaitsForItsHost(t *testing.T) {
	for _, state := range []vnet.NodeState{"", vnet.StateKeep} {
		book := New(line())
		r := transfer{mbit: 1}.request(0)
		for i := range r.Nodes {
			r.Nodes[i].Host, r.Nodes[i].Site, r.Nodes[i].State = "", "", state
		}
		l, err := book.Admit(noon, r, 0)
		must(err)
		must(book.Tick(l.Window.Start))
		name := r.Nodes[0].Name
		was := l.Mapping.Nodes[name]
		must(book.SetHostDown(l.Window.Start, was, true))
		e := book.entries[l.ID()]
		if moved := e.Mapping.Nodes[name] != was; moved == (state == vnet.StateKeep) || (e.Lost != nil) == moved {
			t.Errorf("state %q: moved: %t, lost: %v", state, moved, e.Lost)
		}
		must(book.SetHostDown(l.Window.Start, was, false))
		if e := book.entries[l.ID()]; e.Lost != nil || state == vnet.StateKeep && e.Mapping.Nodes[name] != was {
			t.Errorf("state %q: its host is back: on %s, lost: %v", state, e.Mapping.Nodes[name], e.Lost)
		}
	}
}
