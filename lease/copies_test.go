package lease

import (
	"errors"
	"slices"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// keepBook is coldBook with an x that keeps what it writes.
func keepBook(t *testing.T) (*Book, vnet.LeaseID, func()) {
	t.Helper()
	b, id, report := coldBook(t, vnet.MoveCold, "")
	e := b.entries[id]
	e.Request = rewrite(e.Request)
	e.Request.Nodes[0].State = vnet.StateKeep
	e.parts, b.stale = nil, true
	b.markDirty(e)
	must(b.Tick(noon))
	for range 3 {
		report()
	}
	return b, id, report
}

// setups are what hosts are to give x, by host.
func setups(b *Book) map[vnet.HostID]plan.Setup {
	found := make(map[vnet.HostID]plan.Setup)
	for host, p := range b.Plans() {
		for _, item := range p.Items() {
			if s, ok := item.(plan.Setup); ok && s.Node == "x" {
				found[host] = s
			}
		}
	}
	return found
}

// TestKeptFilesGoWithTheirNodes: what keeps its files is stopped, copied, and begins
// where its files came to; nothing of it runs twice, and its links stay meanwhile.
func TestKeptFilesGoWithTheirNodes(t *testing.T) {
	b, id, report := keepBook(t)
	list, err := b.SetHostDrained(noon, "A", true)
	if err != nil || len(list) != 1 || len(list[0].Stays) > 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := b.Copies(); len(got) > 0 {
		t.Errorf("it is copied before its hosts are ready: %v", got)
	}
	for range 3 {
		report()
	}
	is := setups(b)
	if !is["A"].Carried || !is["B"].Carried || len(is) != 2 {
		t.Fatalf("it is not stopped everywhere: %v", is)
	}
	for host, links := range map[vnet.HostID]bool{"A": true, "B": false} {
		p, _ := b.Plan(host)
		if has := slices.ContainsFunc(p.Items(), func(i plan.Item) bool { return i.Kind() == plan.KindVxLink }); has != links {
			t.Errorf("%s: links %t: %s", host, has, p)
		}
	}
	want := Copy{id, b.entries[id].Serial, "x", "A", "B", CopyFiles}
	if got := b.Copies(); !slices.Equal(got, []Copy{want}) {
		t.Fatalf("copies: %v", got)
	}
	wrong := want
	wrong.To = "C"
	if err := b.Copied(noon, wrong); !errors.Is(err, ErrConflict) {
		t.Errorf("a copy to another host: %v", err)
	}
	must(b.Copied(noon, want))
	for range 4 {
		report()
		if is := setups(b); len(is) == 2 && (!is["A"].Carried || !is["B"].Carried) {
			t.Errorf("it runs on one of two hosts: %v", is)
		}
	}
	l, _ := b.Lease(id)
	if is := setups(b); l.State != vnet.Running || l.Move != nil || l.Mapping.Nodes["x"] != "B" || len(is) != 1 || is["B"].Carried {
		t.Errorf("it is %s on %v, moving %+v, given %v: %s", l.State, l.Mapping.Nodes, l.Move, is, l.Message)
	}
}

// TestKeptFilesThatCannotBeCopied: the node begins again where it was, be it that the
// copy is refused, that nothing comes, or that the other host fails. A copy that goes on
// is waited for.
func TestKeptFilesThatCannotBeCopied(t *testing.T) {
	for name, fails := range map[string]func(b *Book, c Copy, report func()){
		"refused": func(b *Book, c Copy, _ func()) { must(b.CopyFailed(noon, c)) },
		"silent": func(b *Book, c Copy, _ func()) {
			must(b.CopyGoesOn(noon.Add(b.FailAfter), c))
			must(b.Tick(noon.Add(b.FailAfter + 1)))
			if len(b.Copies()) == 0 {
				t.Error("a copy that goes on is given up")
			}
			must(b.Tick(noon.Add(2*b.FailAfter + 1)))
		},
		"host": func(b *Book, c Copy, _ func()) {
			must(b.SetHostDown(noon, "B", true))
		},
	} {
		b, id, report := keepBook(t)
		_, err := b.SetHostDrained(noon, "A", true)
		must(err)
		for range 3 {
			report()
		}
		copies := b.Copies()
		if len(copies) != 1 {
			t.Fatalf("%s: copies: %v", name, copies)
		}
		fails(b, copies[0], report)
		for range 4 {
			report()
		}
		l, _ := b.Lease(id)
		if is := setups(b); l.State != vnet.Running || l.Move != nil || l.Mapping.Nodes["x"] != "A" || len(is) != 1 || is["A"].Carried {
			t.Errorf("%s: it is %s on %v, moving %+v, given %v: %s", name, l.State, l.Mapping.Nodes, l.Move, is, l.Message)
		}
		if err := b.Copied(noon, copies[0]); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: what comes too late: %v", name, err)
		}
	}
}

// TestKeptFilesLeaveWhatIsCutOff: a host that works and whose links do not is left, with
// the files; when that fails the node waits there, as it does for a host that is down.
func TestKeptFilesLeaveWhatIsCutOff(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b, id, report := keepBook(t)
		for _, l := range b.Substrate().Links {
			if l.Ends[0] == "A" || l.Ends[1] == "A" {
				must(b.SetLinkDown(noon, l.Name, true))
			}
		}
		for range 3 {
			report()
		}
		copies := b.Copies()
		if len(copies) != 1 {
			t.Fatalf("copies: %v, %+v", copies, b.entries[id].Lease)
		}
		if fails {
			must(b.CopyFailed(noon, copies[0]))
		} else {
			must(b.Copied(noon, copies[0]))
		}
		for range 4 {
			report()
		}
		l, _ := b.Lease(id)
		if (l.Lost != nil) != fails || (l.Mapping.Nodes["x"] == "A") != fails || l.Move != nil {
			t.Errorf("fails %t: it is %s on %v, lost %v, moving %+v", fails, l.State, l.Mapping.Nodes, l.Lost, l.Move)
		}
	}
	b, id, report := keepBook(t)
	must(b.SetHostDown(noon, "A", true))
	report()
	if l, _ := b.Lease(id); l.Lost == nil || l.Mapping.Nodes["x"] != "A" {
		t.Errorf("its host is down: it is %s on %v", l.State, l.Mapping.Nodes)
	}
}
