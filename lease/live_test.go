package lease

import (
	"errors"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// liveBook is keepBook with an x that is a machine and is copied while it runs.
func liveBook(t *testing.T) (*Book, vnet.LeaseID, func()) {
	t.Helper()
	b, id, report := keepBook(t)
	e := b.entries[id]
	e.Request = rewrite(e.Request)
	x := &e.Request.Nodes[0]
	x.Movable, x.Kind, x.Image, x.Memory = vnet.MoveLive, vnet.KindVM, "small.raw", vnet.MinMachineMemory
	e.parts, b.stale = nil, true
	b.markDirty(e)
	must(b.Tick(noon))
	for range 3 {
		report()
	}
	return b, id, report
}

// leavesLive drains A, where x is, and returns the copy that is to be made.
func leavesLive(t *testing.T, b *Book, report func()) Copy {
	t.Helper()
	_, err := b.SetHostDrained(noon, "A", true)
	must(err)
	for range 3 {
		report()
	}
	is, copies := setups(b), b.Copies()
	if a, o := is["A"], is["B"]; a.Carried || a.Live != plan.LiveLeaves || !o.Carried || o.Live != plan.LiveComes {
		t.Fatalf("it does not run while it is copied: %v", is)
	}
	if len(copies) != 1 || copies[0].What != CopyMachine {
		t.Fatalf("copies: %v", copies)
	}
	return copies[0]
}

// TestMachinesMoveLive: a machine runs at its host until all of it has come to the other
// one, and from then on there only, with links that were there before.
func TestMachinesMoveLive(t *testing.T) {
	b, id, report := liveBook(t)
	links := func(host vnet.HostID) (n int) {
		p, _ := b.Plan(host)
		for _, i := range p.Items() {
			if i.Kind() == plan.KindVxLink {
				n++
			}
		}
		return n
	}
	c := leavesLive(t, b, report)
	if links("A") == 0 || links("B") == 0 {
		t.Errorf("links: %d and %d", links("A"), links("B"))
	}
	if list := b.Arrived(id); len(list) > 0 {
		t.Errorf("it goes on before it has come: %v", list)
	}
	must(b.Copied(noon, c))
	if list := b.Arrived(id); len(list) != 1 || list[0] != c {
		t.Errorf("it has come, and does not go on: %v", list)
	}
	must(b.Tick(noon.Add(b.FailAfter + 1))) // a host is slow: it is not taken back
	for range 4 {
		if is := setups(b); len(is) == 2 && is["A"].Carried == is["B"].Carried {
			t.Errorf("it is on both or on none: %v", is)
		}
		report()
	}
	l, _ := b.Lease(id)
	if is := setups(b); l.State != vnet.Running || l.Move != nil || l.Mapping.Nodes["x"] != "B" || len(is) != 1 || is["B"].Carried || is["B"].Live != "" {
		t.Errorf("it is %s on %v, moving %+v, given %v: %s", l.State, l.Mapping.Nodes, l.Move, is, l.Message)
	}
}

// TestMachinesThatCannotMoveLive: one that cannot be copied while it runs is copied while
// it does not; when its new host fails it runs where it was.
func TestMachinesThatCannotMoveLive(t *testing.T) {
	b, id, report := liveBook(t)
	c := leavesLive(t, b, report)
	must(b.CopyFailed(noon, c))
	for range 3 {
		report()
	}
	if is := setups(b); !is["A"].Carried || !is["B"].Carried || is["A"].Live != "" || is["B"].Live != "" {
		t.Errorf("it is not stopped everywhere: %v", is)
	}
	if err := b.Copied(noon, c); !errors.Is(err, ErrConflict) {
		t.Errorf("what comes too late: %v", err)
	}
	list := b.Copies()
	if len(list) != 1 || list[0].What != CopyFiles {
		t.Fatalf("copies: %v", list)
	}
	must(b.Copied(noon, list[0]))
	for range 4 {
		report()
	}
	if l, _ := b.Lease(id); l.State != vnet.Running || l.Mapping.Nodes["x"] != "B" {
		t.Errorf("it is %s on %v", l.State, l.Mapping.Nodes)
	}

	b, id, report = liveBook(t)
	leavesLive(t, b, report)
	must(b.SetHostDown(noon, "B", true))
	for range 4 {
		report()
	}
	l, _ := b.Lease(id)
	if is := setups(b); l.State != vnet.Running || l.Move != nil || l.Mapping.Nodes["x"] != "A" || is["A"].Live != "" || is["A"].Carried {
		t.Errorf("it is %s on %v, moving %+v, given %v", l.State, l.Mapping.Nodes, l.Move, is)
	}
}
