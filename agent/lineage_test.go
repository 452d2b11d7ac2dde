package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// of makes a plan one of a store: as handed out by a server of that term.
func of(store, term string, h plan.Host) plan.Host {
	h.Store, h.Term, h.Terms = store, term, []plan.Term{{ID: term, From: 1}}
	return h
}

// lived is a host whose agent had a plan and was stopped.
func lived(t *testing.T, p plan.Host) (k *fakeKernel, file string) {
	t.Helper()
	k, file = newFake(), filepath.Join(t.TempDir(), "plan.json")
	stop := start(t, k, &fakeServer{plan: p}, file)
	sleep(t.Context(), auditEvery)
	stop()
	if k.has() != p.String() {
		t.Fatalf("host has %q", k.has())
	}
	k.log = nil
	return k, file
}

// logged starts an agent that writes a log.
func logged(t *testing.T, k *fakeKernel, s *fakeServer, file string) (log *bytes.Buffer, stop func()) {
	log = new(bytes.Buffer)
	ctx, cancel := context.WithCancel(t.Context())
	a := &Agent{Host: "h1", Source: s, Parts: []Part{k}, Copy: file, Log: slog.New(slog.NewTextHandler(log, nil)), Workers: 1}
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	return log, func() { cancel(); <-done }
}

func (s *fakeServer) give(p plan.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = p
}

func (s *fakeServer) last() report.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reports) == 0 {
		return report.Report{}
	}
	return s.reports[len(s.reports)-1]
}

// TestAgentKeepsWhatRuns: a plan that does not go on from the host's is not
// done, and it is said why, until the operator says that it shall be.
func TestAgentKeepsWhatRuns(t *testing.T) {
	had := of("one", "t1", host(7, "a", "b"))
	older := of("one", "t2", host(900, "a"))
	older.Terms = []plan.Term{{ID: "t1", From: 1}, {ID: "t2", From: 5}}
	foreign := of("one", "t1", host(8))
	foreign.Host = "h2"
	for name, c := range map[string]struct {
		plan plan.Host
		why  string
	}{
		"another store":     {of("two", "x1", host(3, "a")), "another store"},
		"a store without":   {of("two", "x1", host(7)), "another store"},
		"an older copy":     {older, "an older copy"},
		"a lower revision":  {of("one", "t1", host(6, "a")), "an older copy"},
		"another host":      {foreign, `host "h2"`},
		"a former server's": {host(9, "a"), "another store"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, file := lived(t, had)
				s := &fakeServer{plan: c.plan}
				log, stop := logged(t, k, s, file)
				defer stop()
				sleep(t.Context(), 10*heartbeat)
				if len(k.log) != 0 {
					t.Errorf("did %q", k.log)
				}
				r := s.last()
				if r.Held == nil || !strings.Contains(r.Held.Why, c.why) || r.Held.Origin != had.Origin() || r.Held.Store != "one" {
					t.Errorf("reported %+v", r)
				}
				if n := strings.Count(log.String(), "is not followed"); n != 1 {
					t.Errorf("said so %d times:\n%s", n, log)
				}
				k.forget(plan.KindVNode, "alice.net.b")
				sleep(t.Context(), 2*auditEvery)
				if k.has() != had.String() {
					t.Errorf("what runs is not kept: %s", k.has())
				}
				if name == "another host" {
					return
				}
				origin := had.Origin()
				c.plan.Adopt, c.plan.Revision = &origin, c.plan.Revision+1000
				s.give(c.plan)
				sleep(t.Context(), 2*auditEvery)
				if r := s.last(); k.has() != c.plan.String() || r.Held != nil || r.Tried != c.plan.Revision || r.Revision != c.plan.Revision {
					t.Errorf("not adopted: has %sreported %+v", k.has(), r)
				}
			})
		})
	}
}

// TestAgentDoesHalfAPlan: what comes waits until the server says so.
func TestAgentDoesHalfAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		had, next := of("one", "t1", host(7, "a", "b")), of("two", "x1", host(8, "b", "c"))
		k, file := lived(t, had)
		origin := had.Origin()
		next.Adopt, next.Half = &origin, true
		s := &fakeServer{plan: next}
		defer start(t, k, s, file)()
		sleep(t.Context(), auditEvery)
		if k.has() != host(0, "b").String() || s.last().Tried != 8 {
			t.Errorf("half done: has %sreported %+v", k.has(), s.last())
		}
		next.Revision, next.Adopt, next.Half = 9, nil, false
		s.give(next)
		sleep(t.Context(), 2*auditEvery)
		if k.has() != next.String() || s.last().Tried != 9 {
			t.Errorf("done: has %sreported %+v", k.has(), s.last())
		}
	})
}

// TestAgentFollowsAStrangerThatRemovesNothing: without a copy of its plan, a
// host with nothing has nothing to lose, nor has one whose networks the
// server's plan has.
func TestAgentFollowsAStrangerThatRemovesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		there   plan.Host
		follows bool
	}{
		"nothing there":   {host(0), true},
		"all in the plan": {host(0, "a"), true},
		"one is not":      {host(0, "a", "b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, next := newFake(), of("two", "x1", host(1, "a", "z"))
				for _, item := range c.there.Items() {
					_ = k.Do(t.Context(), plan.Step{Op: plan.Add, Item: item})
				}
				s := &fakeServer{plan: next, down: true}
				defer start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))()
				sleep(t.Context(), auditEvery)
				if k.has() != c.there.String() {
					t.Errorf("without a plan it made %s", k.has())
				}
				s.set(false)
				sleep(t.Context(), 2*heartbeat)
				r, want := s.last(), c.there
				if c.follows {
					want = next
				}
				if k.has() != want.String() || (r.Held == nil) != c.follows || (r.Tried == 1) != c.follows {
					t.Errorf("has %sreported %+v", k.has(), r)
				}
			})
		})
	}
}

// TestAgentUsesNoWrongCopy: what is in it is not done, whatever it is.
func TestAgentUsesNoWrongCopy(t *testing.T) {
	good, err := plan.Seal(of("one", "t1", host(7, "a")).Kept())
	if err != nil {
		t.Fatal(err)
	}
	other := of("one", "t1", host(7, "a"))
	other.Host = "h2"
	foreign, err := plan.Seal(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"another host's": string(foreign),
		"altered":        strings.Replace(string(good), `"node":"a"`, `"node":"b"`, 1),
		"unsealed":       `{"host":"h1","revision":7,"term":"t1","nodes":[{"lease":{"tenant":"alice","network":"net"},"node":"a","owner_uid":0}]}`,
		"of nobody":      `{"nodes":[{"lease":{"tenant":"alice","network":"net"},"node":"a","owner_uid":0}]}`,
		"cut":            string(good[:len(good)/2]),
		"empty":          "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, file := lived(t, of("one", "t1", host(5, "x")))
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				log, stop := logged(t, k, &fakeServer{down: true}, file)
				sleep(t.Context(), 3*heartbeat)
				stop()
				if len(k.log) != 0 || !strings.Contains(log.String(), "is not used") {
					t.Errorf("did %q, said %s", k.log, log)
				}
			})
		})
	}
}

// TestAgentTakesOverACopyOfAFormerVersion: it has neither terms nor checksum.
func TestAgentTakesOverACopyOfAFormerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, file := lived(t, of("one", "t1", host(7, "a", "b")))
		former := `{"host":"h1","revision":7,"nodes":[{"lease":{"tenant":"alice","network":"net"},"node":"a","owner_uid":0}]}`
		if err := os.WriteFile(file, []byte(former), 0o600); err != nil {
			t.Fatal(err)
		}
		next := of("one", "t1", host(8))
		next.Terms = []plan.Term{{}, {ID: "t1", From: 8}}
		s := &fakeServer{plan: next, down: true}
		defer start(t, k, s, file)()
		sleep(t.Context(), auditEvery)
		if k.has() != host(7, "a").String() {
			t.Errorf("by the copy it has %s", k.has())
		}
		s.set(false)
		sleep(t.Context(), 2*auditEvery)
		if k.has() != "" || s.last().Tried != 8 {
			t.Errorf("has %s, reported %+v", k.has(), s.last())
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"sum"`) {
			t.Errorf("its copy is %s, %v", text, err)
		}
	})
}

// unreadable is a kernel that cannot be read.
type unreadable struct{ *fakeKernel }

func (unreadable) Observe(context.Context, *plan.Host) error { return errors.New("permission denied") }

// TestAgentThatCannotReadRemovesNothing: who does not know what is there, does
// not know that nothing is.
func TestAgentThatCannotReadRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := &fakeServer{plan: of("two", "x1", host(1))}, newFake()
		ctx, cancel := context.WithCancel(t.Context())
		a := &Agent{Host: vnet.HostID("h1"), Source: s, Parts: []Part{unreadable{k}}, Copy: filepath.Join(t.TempDir(), "plan.json"), Log: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		go func() { a.Run(ctx); close(done) }()
		sleep(t.Context(), heartbeat)
		cancel()
		<-done
		if r := s.last(); r.Held == nil || !strings.Contains(r.Held.Why, "permission denied") {
			t.Errorf("reported %+v", r)
		}
	})
}
