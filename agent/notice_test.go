package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// What does not carry is told when it is known, not at the next audit; leases
// that are changed are told of once a pass; repairs are kept until the server
// has heard of them.
func TestAgentTellsWhatDoesNotCarryAndWhatItRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newFake(), &fakeServer{plan: host(7, "a", "b")}
		var mu sync.Mutex
		var cuts report.Errors
		var touched []vnet.LeaseID
		news := make(chan struct{}, 1)
		a := &Agent{
			Host: "h1", Source: s, Parts: []Part{k}, Copy: filepath.Join(t.TempDir(), "plan.json"),
			Log: slog.New(slog.DiscardHandler), Workers: 1, News: news,
			Cuts:    func() report.Errors { mu.Lock(); defer mu.Unlock(); return slices.Clone(cuts) },
			Touched: func(id vnet.LeaseID) { touched = append(touched, id) },
		}
		go a.Run(t.Context())
		sleep(t.Context(), auditEvery/2)
		if !slices.Equal(touched, []vnet.LeaseID{lease}) {
			t.Errorf("told of %v", touched)
		}
		last := func() report.Report {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.reports[len(s.reports)-1]
		}
		cut := report.ItemError{Kind: plan.KindReach, Key: "alice.net", Lease: lease, Op: plan.Carry, Text: "b does not answer a"}
		for _, now := range []report.Errors{{cut}, nil} {
			mu.Lock()
			cuts = now
			mu.Unlock()
			news <- struct{}{}
			synctest.Wait()
			if r := last(); !slices.Equal(r.Errors, now) || len(r.Repairs) != 0 {
				t.Errorf("reported %+v, want %v", r, now)
			}
		}
		s.set(true)
		k.forget(plan.KindVNode, "alice.net.a")
		sleep(t.Context(), 2*auditEvery)
		k.forget(plan.KindVNode, "alice.net.b")
		sleep(t.Context(), 2*auditEvery)
		s.set(false)
		sleep(t.Context(), 2*heartbeat)
		s.mu.Lock()
		var heard []report.Repair
		for _, r := range s.reports {
			heard = append(heard, r.Repairs...)
		}
		s.mu.Unlock()
		want := report.Repair{Lease: lease, Count: 2, Text: "node b was gone, is there again: devices, rules, filters and settings that were made in it by hand are lost, make them again"}
		if !slices.Equal(heard, []report.Repair{want}) {
			t.Errorf("heard of %+v, want %+v once", heard, want)
		}
	})
}

// mender is a part that puts things right by itself.
type mender struct {
	*fakeKernel
	done []plan.Step
}

func (m *mender) Mended() []plan.Step {
	done := m.done
	m.done = nil
	return done
}

// What a part puts right by itself is a repair, and what passes do for it is none.
func TestPartsThatMendTellOfRepairs(t *testing.T) {
	m := &mender{fakeKernel: newFake()}
	item := host(7, "a").Items()[0]
	a := &Agent{Parts: []Part{m}, Log: slog.New(slog.DiscardHandler)}
	if a.note(plan.Host{}, Result{Done: []plan.Step{{Op: plan.Add, Item: item}}, Steps: 1}, false); a.drift != 0 {
		t.Errorf("a step for such a part is %d repairs", a.drift)
	}
	m.done = []plan.Step{{Op: plan.Add, Item: item}}
	if again := a.note(plan.Host{}, Result{}, false); !again || a.drift != 1 || len(a.repairs) != 1 || a.repairs[0].Lease != lease {
		t.Errorf("%v, %d: %+v", again, a.drift, a.repairs)
	}
}

// What a new plan brings late has repaired nothing, be it for an error or because a look
// came before it showed. What was in place and was lost has.
func TestLateBuildingIsNoRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = "alice.net.b"
		k, s := newFake(), &fakeServer{plan: host(7, "a", "b")}
		tries := 0
		k.fail = func(s plan.Step) error {
			if s.Item.Key() == "alice.net.c" { // what it does to others of its lease is of building it
				delete(k.items, fmt.Sprint(plan.KindVNode, "alice.net.a"))
			}
			if s.Item.Key() == late {
				if tries++; tries == passes {
					delete(k.items, fmt.Sprint(plan.KindVNode, "alice.net.a")) // it does not show yet
				}
				if tries <= passes+1 {
					return errors.New("not yet")
				}
			}
			return nil
		}
		defer start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))()
		sleep(t.Context(), 4*auditEvery)
		drift := func() uint64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.reports[len(s.reports)-1].Drift
		}
		if k.has() != host(7, "a", "b").String() || tries != passes+2 || drift() != 0 {
			t.Errorf("after %d tries %d repairs are told, of a host with %q", tries, drift(), k.has())
		}
		k.forget(plan.KindVNode, late)
		sleep(t.Context(), 2*auditEvery)
		if k.has() != host(7, "a", "b").String() || drift() != 1 {
			t.Errorf("%d repairs are told, want 1, of a host with %q", drift(), k.has())
		}
		s.mu.Lock()
		s.plan = host(8, "a", "b", "c")
		s.mu.Unlock()
		sleep(t.Context(), 4*auditEvery)
		if k.has() != host(8, "a", "b", "c").String() || drift() != 1 {
			t.Errorf("after another plan %d repairs are told, want 1, of a host with %q", drift(), k.has())
		}
	})
}
