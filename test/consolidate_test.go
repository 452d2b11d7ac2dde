package test

import (
	"strings"
	"testing"
	"time"
)

// TestConsolidate: a router is taken off the most loaded host, and back onto the fewest,
// while its network carries; a dry run changes nothing.
func TestConsolidate(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, meshOf(4))
	fixed := parseRequest(t, "network: fixed\ntenant: root\nnodes: [{name: p, host: h3, cpu: 1}]\n")
	s.admit(fixed)
	s.ready(idOf(fixed))
	request := parseRequest(t, `network: live
tenant: root
colocate: forbidden
nodes: [{name: a, host: h1, cpu: 1}, {name: b, host: h2, cpu: 1}]
routers: [{name: r, cpu: 1}]
links:
  - {name: ar, ends: [a, r], rate: 50Mbit}
  - {name: rb, ends: [r, b], rate: 50Mbit}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	flow := s.flowOf(node{"h1", id, "a"}, node{"h2", id, "b"}, 10*time.Millisecond)
	at := func() string { return string(got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["r"]) }
	s.must("consolidate")
	s.moved(id)
	if r := at(); r != "h3" {
		t.Fatalf("r is on %s, beside nothing", r)
	}
	if out := s.must("consolidate", "--aim", "least-loaded", "--dry-run"); !strings.Contains(out, "root/live would go elsewhere") || at() != "h3" {
		t.Errorf("dry run: r is on %s: %s", at(), out)
	}
	s.must("consolidate", "--aim", "least-loaded")
	s.moved(id)
	if r := at(); r != "h4" {
		t.Errorf("least loaded: r is on %s", r)
	}
	if out := s.must("consolidate"); !strings.Contains(out, "h4 is emptied") || !strings.Contains(out, "h1 stays in use: root/live: a is there") {
		t.Errorf("fewest hosts: %s", out)
	}
	s.moved(id)
	if r := at(); r != "h3" {
		t.Errorf("fewest hosts: r is on %s", r)
	}
	if sent, lost := flow.end(); lost > sent/2 {
		t.Errorf("%d of %d packets were lost", lost, sent)
	}
	if r := s.sublet("consolidate", "--aim", "most"); r.code != 2 || strings.Count(r.err, "\n") != 1 {
		t.Errorf("a wrong aim: exit code %d, %s", r.code, r.err)
	}
	s.settled()
}
