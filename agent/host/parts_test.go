package host

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"sublet/agent/iplbd"
	"sublet/agent/session"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// open makes the parts of a host that has nothing yet, in this namespace.
func open(t *testing.T) *Host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	log := slog.New(slog.DiscardHandler)
	h, err := Open(t.Context(), Config{Host: "h1", Run: t.TempDir(), Data: t.TempDir(), Cgroup: "sublet-host-test", Log: log, Spread: iplbd.Options{Log: log}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// Every kind of item is done by one part, and no part does what no plan has.
func TestEveryKindHasOnePart(t *testing.T) {
	done := make(map[plan.Kind]int)
	for _, part := range open(t).parts {
		for _, kind := range part.Kinds() {
			done[kind]++
		}
	}
	for _, kind := range plan.Kinds {
		if kind == plan.KindFlow { // of switches, which are no hosts: agent/forwarding
			continue
		}
		if done[kind] != 1 {
			t.Errorf("%d parts do %s", done[kind], kind)
		}
		delete(done, kind)
	}
	for kind := range done {
		t.Errorf("a part does %s, which no plan has", kind)
	}
}

// What the routes read of parts is there.
func TestRoutesHaveTheirParts(t *testing.T) {
	h := open(t)
	answers := h.answers()
	if samples, err := answers.Samples(t.Context(), report.Scope{}); err != nil {
		t.Errorf("a host without networks has %v, %v", samples, err)
	}
	id := vnet.LeaseID{Tenant: "alice", Network: "net"}
	if missing := answers.Reach(t.Context(), id, 0); missing != "" {
		t.Errorf("a lease that is not here misses %q", missing)
	}
	if _, err := answers.Command("alice.net.a", session.Spec{Argv: []string{"true"}}); err == nil {
		t.Error("a command in a node that is not here")
	}
	if list, err := h.agent.Interfaces(); err != nil || len(list) == 0 {
		t.Errorf("interfaces %v, %v", list, err)
	}
	if problems := h.problems(); len(problems) > 0 {
		t.Errorf("problems of a host without networks: %v", problems)
	}
	h.touched(id)
}

// What the parts hold goes with Close: another agent can have it.
func TestPartsAreMadeAgain(t *testing.T) {
	h := open(t)
	config := Config{Host: "h1", Run: h.kernel.Run, Data: t.TempDir(), Cgroup: "sublet-host-test", Log: h.log, Spread: iplbd.Options{Log: h.log}}
	h.Close()
	again, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
