package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sublet/report/metrics"
	"sublet/vnet"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A promise that breaks is a line of the log, a metric, and a concern of its lease's,
// until it is kept again, or not wanted for long.
func TestBrokenPromisesAreSaid(t *testing.T) {
	s, l := provingOf(t, 1)
	var lines bytes.Buffer
	s.log, s.notices = slog.New(slog.NewTextHandler(&lines, nil)), DefaultNotices
	now := time.Now().Truncate(time.Minute)
	var sent, arrived [2]uint64 // packets by now, of each direction
	at := uint64(0)
	offered := uint64(20)
	second := func(carried uint64) {
		at++
		for host, first := range map[string]bool{"h1": true, "h2": false} {
			c := counting(l, first, now, at, 0)
			for i, w := range c.Links {
				count := &arrived
				if w.Enters {
					count = &sent
					count[w.Direction] += offered
				} else {
					count[w.Direction] += carried
				}
				c.Values[i][0], c.Values[i][1] = count[w.Direction], 100*count[w.Direction]
			}
			s.counted(vnet.HostID(host), c)
		}
	}
	said := func() (kept, broken int, text string) {
		var list metrics.List
		addPromises(&list, l, s.proving.promises(), true)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(&list)
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		text = w.Body.String()
		return strings.Count(text, `state="kept"`), strings.Count(text, `state="broken"`), text
	}
	for range 10 {
		second(20)
	}
	if kept, broken, text := said(); kept != 2 || broken != 0 || !strings.Contains(text, `sublet_lease_broken_promises{network="net",tenant="alice"} 0`) {
		t.Errorf("of kept promises is said:\n%s", text)
	}
	for range 10 {
		second(2)
	}
	if _, broken, text := said(); broken != 2 || !strings.Contains(text, `sublet_lease_broken_promises{network="net",tenant="alice"} 2`) {
		t.Errorf("of broken promises is said:\n%s", text)
	}
	c := concerns{server: s, now: now, promises: s.proving.promises()}
	if list := c.of(l); len(list) != 1 || list[0] != (vnet.Concern{Kind: "promise", Why: "broken: l0 a to b, l0 b to a"}) {
		t.Errorf("it concerns the owner that %v", list)
	}
	if n := strings.Count(lines.String(), "msg=event"); n != 2 || strings.Count(lines.String(), "lease=alice/net kind=promise") != 2 {
		t.Errorf("the log says\n%s", lines.String())
	}
	for range 2 * restored {
		second(20)
	}
	if kept, _, text := said(); kept != 2 {
		t.Errorf("of promises that are kept again is said:\n%s", text)
	}
	for range 10 {
		second(2)
	}
	offered = 0
	for range forgotten + 5 {
		second(0)
	}
	if _, broken, text := said(); broken != 0 {
		t.Errorf("of broken promises that nobody wants any more is said:\n%s", text)
	}
	if !strings.Contains(lines.String(), `state="not tested"`) {
		t.Errorf("the log says\n%s", lines.String())
	}
}

// What concerns an owner is said while it does.
func TestConcernsOfALease(t *testing.T) {
	now := time.Now()
	l := vnet.Lease{State: vnet.Degraded, Stage: -1, Message: "slow", Window: vnet.Window{Start: now.Add(-48 * time.Hour), End: now.Add(30 * time.Minute)},
		Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1"}}, Move: &vnet.Move{Phase: "prepares"}}
	c := concerns{server: &Server{notices: DefaultNotices}, now: now, planned: []vnet.Maintenance{
		{ID: "1", Host: "h1", Start: now, End: now.Add(time.Hour)}, {ID: "2", Host: "h2", Start: now, End: now.Add(time.Hour)}}}
	var kinds []string
	for _, one := range c.of(l) {
		kinds = append(kinds, one.Kind)
	}
	if got := fmt.Sprint(kinds); got != "[degraded move maintenance end]" {
		t.Errorf("it concerns the owner: %s", got)
	}
	if l.State = vnet.Ended; len(c.of(l)) != 0 {
		t.Error("an ended lease concerns its owner")
	}
}

// Of a chain with a rate the metrics say whether it is there, in each direction that is
// tested, by the chain's name.
func TestPromisesOfChainsAreMetrics(t *testing.T) {
	firewall := &vnet.Function{Kind: vnet.FunctionFirewall, Rules: []vnet.FunctionRule{{Flow: vnet.Packets{Protocol: vnet.ProtocolTCP}}}}
	r := vnet.Request{
		Tenant: "alice", Network: "net",
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "fw", Function: firewall}},
			Links: []vnet.VirtualLink{{Ends: [2]string{"a", "b"}}},
		},
		Chains: []vnet.Chain{{Name: "web", From: "a", To: "b", Via: []string{"fw"}, Rate: vnet.Mbit}, {Name: "rest", From: "b", To: "a", Via: []string{"fw"}}},
	}
	r.Fill()
	l := vnet.Lease{Request: r, Stage: -1}
	var list metrics.List
	addPromises(&list, l, map[ofLink]vnet.Outcome{
		{l.ID(), vnet.ChainWay("web"), vnet.Forward}: vnet.Broken, {l.ID(), vnet.ChainWay("rest"), vnet.Forward}: vnet.Kept,
	}, true)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&list)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	want := `sublet_chain_promise_state{chain="web",direction="0",network="net",state="broken",tenant="alice"} 1`
	if text := w.Body.String(); !strings.Contains(text, want) || strings.Count(text, "sublet_chain_promise_state{") != 1 {
		t.Errorf("of chains is said:\n%s", text)
	}
}
