package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/agent/session"
	"sublet/internal/problem"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

var lease = vnet.LeaseID{Tenant: "alice", Network: "net"}

// serve runs the routes of a host on a socket, and returns its path.
func serve(t *testing.T, h *Host) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(Serve(t.Context(), l, h.Handler()))
	return path
}

// get asks for a path and reads the JSON of an answer of 200 into result.
func get(t *testing.T, h *Host, method, path string, result any) (status int, text string) {
	t.Helper()
	socket := serve(t, h)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, result); err != nil {
			t.Errorf("%s %s answers %s: %v", method, path, body, err)
		}
		return response.StatusCode, strings.TrimSpace(string(body))
	}
	var p problem.Problem
	if err := json.Unmarshal(body, &p); err != nil || !problem.Is(response.Header) || p.Status != response.StatusCode {
		t.Errorf("%s %s answers no problem: %v %s", method, path, response.Header, body)
	}
	return response.StatusCode, p.Detail
}

func TestDiff(t *testing.T) {
	node := plan.VNode{Lease: lease, Node: "a"}
	h := &Host{Diff: func(context.Context) ([]plan.Step, error) { return []plan.Step{{Op: plan.Add, Item: node}}, nil }}
	var lines []string
	if status, _ := get(t, h, "GET", "/v1/diff", &lines); status != 200 || len(lines) != 1 || !strings.Contains(lines[0], node.Key()) {
		t.Errorf("%d %q", status, lines)
	}
	h.Diff = func(context.Context) ([]plan.Step, error) { return nil, nil }
	if _, text := get(t, h, "GET", "/v1/diff", &lines); text != "[]" {
		t.Errorf("nothing to do is %s", text)
	}
	h.Diff = func(context.Context) ([]plan.Step, error) { return nil, errors.New("no server") }
	if status, text := get(t, h, "GET", "/v1/diff", nil); status != 500 || text != "no server" {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get(t, h, "POST", "/v1/diff", nil); status < 400 {
		t.Errorf("POST is answered with %d", status)
	}
}

// saying is a host whose parts say the given samples, or fail.
func saying(samples []report.Sample, err error) *Host {
	return &Host{Samples: func(_ context.Context, of report.Scope, kinds ...plan.Kind) ([]report.Sample, error) {
		list := of.Filter(slices.Clone(samples))
		return slices.DeleteFunc(list, func(s report.Sample) bool { return !slices.Contains(kinds, s.Kind) }), err
	}}
}

// What several parts forward is one list, in their order; one that cannot be
// read makes the answer an error and not a shorter list.
func TestPathsOfAllParts(t *testing.T) {
	samples := []report.Sample{
		report.Forwarding{Kind: plan.KindVxRouter, Of: "a"}.Sample(lease), report.Forwarding{Kind: plan.KindSwitchPort, Of: "b"}.Sample(lease),
		{Kind: plan.KindVxLink}, report.Forwarding{Kind: plan.KindSwitchPort, Of: "c"}.Sample(lease),
	}
	var list []report.Forwarding
	if status, _ := get(t, saying(samples, nil), "GET", "/v1/paths", &list); status != 200 || len(list) != 3 || list[2].Of != "c" {
		t.Errorf("%d %+v", status, list)
	}
	if status, text := get(t, saying(samples, errors.New("unreadable")), "GET", "/v1/paths", &list); status != 500 || text != "unreadable" {
		t.Errorf("%d %s", status, text)
	}
}

// What a tunnel could not send is dropped by the link that begins here, and by
// none of another lease.
func TestTunnelDropsAreTheLinks(t *testing.T) {
	tunnel := func(of vnet.LeaseID, drops map[string]uint64) report.Sample {
		return report.TunnelState{Overlay: plan.Overlay{Lease: of, Link: "ab"}, State: report.TunnelValid, Drops: drops}.Sample([]string{"too-big"})
	}
	samples := []report.Sample{
		tunnel(lease, map[string]uint64{"too-big": 3, "not-a-cause-of-sending": 9}),
		tunnel(vnet.LeaseID{Tenant: "bob", Network: "net"}, map[string]uint64{"too-big": 100}),
		report.Traffic{Link: "ab", First: true, Drops: map[string]uint64{"queue": 1, "too-big": 1}}.Sample(plan.VxLink{Lease: lease}),
		report.Traffic{Link: "ab", First: true}.Sample(plan.VxLink{Lease: vnet.LeaseID{Tenant: "bob", Network: "net"}}),
	}
	var list []report.Traffic
	if status, text := get(t, saying(samples, nil), "GET", "/v1/links/alice.net/traffic", &list); status != 200 || len(list) != 1 {
		t.Fatalf("%d %s", status, text)
	}
	if d := list[0].Drops; d["queue"] != 1 || d["too-big"] != 4 || len(d) != 2 {
		t.Errorf("the link that begins here dropped %v", d)
	}
	for _, path := range []string{"/v1/links/alice.net/traffic", "/v1/overlay"} {
		if status, _ := get(t, saying(nil, errors.New("no map")), "GET", path, nil); status != 500 {
			t.Errorf("%s of what cannot be read gives %d", path, status)
		}
	}
}

func TestSamplesOfAScope(t *testing.T) {
	h := &Host{Rounds: func(_ context.Context, after uint64, of report.Scope) []report.Round {
		if after == 7 && of == (report.Scope{Tenant: "alice", Network: "net"}) {
			return []report.Round{{Number: 8}}
		}
		return nil
	}}
	var rounds []report.Round
	if status, text := get(t, h, "GET", "/v1/samples?after=7&tenant=alice&network=net", &rounds); status != 200 || len(rounds) != 1 || rounds[0].Number != 8 {
		t.Errorf("%d %s", status, text)
	}
	if _, text := get(t, h, "GET", "/v1/samples", &rounds); text != "[]" {
		t.Errorf("no reading is %s", text)
	}
	if status, _ := get(t, h, "GET", "/v1/samples?after=-1", nil); status != 400 {
		t.Errorf("a reading -1 gives %d", status)
	}
}

func TestSamplesInTheShortForm(t *testing.T) {
	h := &Host{Packed: func(_ context.Context, after uint64, of report.Scope, era uint64, heads int) report.Packed {
		return report.Packed{Era: era + 1, From: heads, Heads: []report.Sample{{Key: fmt.Sprint(after, of.Tenant)}}}
	}}
	var ignored any
	_, text := get(t, h, "GET", "/v1/samples?form=packed&after=7&tenant=alice&era=18446744073709551614&heads=3", &ignored)
	if p, err := report.DecodePacked([]byte(text + "\n")); err != nil || p.Era != 1<<64-1 || p.From != 3 || p.Heads[0].Key != "7alice" {
		t.Errorf("%q: %+v, %v", text, p, err)
	}
	for _, query := range []string{"form=other", "form=packed&era=x", "form=packed&heads=-1"} {
		if status, _ := get(t, h, "GET", "/v1/samples?"+query, nil); status != 400 {
			t.Errorf("%s gives %d", query, status)
		}
	}
}

func TestReach(t *testing.T) {
	problem := ""
	h := &Host{Reach: func(_ context.Context, id vnet.LeaseID, most time.Duration) string {
		if id != lease || most <= 0 {
			return "asked for " + id.String()
		}
		return problem
	}}
	var missing []string
	if _, text := get(t, h, "GET", "/v1/links/alice.net/reach", &missing); text != "[]" {
		t.Errorf("all that reach each other are %s", text)
	}
	problem = "a does not reach b"
	if get(t, h, "GET", "/v1/links/alice.net/reach", &missing); len(missing) != 1 || missing[0] != problem {
		t.Errorf("missing %q", missing)
	}
}

// A capture is of a link's end in its node; ends elsewhere are not found.
func TestPortIn(t *testing.T) {
	near, far, other := &plan.Port{Namespace: "alice.net.a"}, &plan.Port{Namespace: "alice.net.b"}, &plan.Port{Namespace: "bob.net.a"}
	var want plan.Host
	want.Add(
		plan.VxLink{Lease: vnet.LeaseID{Tenant: "bob", Network: "net"}, Index: 0, Ends: [2]plan.End{{Port: other}, {}}},
		plan.VxLink{Lease: lease, Index: 0, Ends: [2]plan.End{{Port: near}, {Port: far}}},
		plan.VxLink{Lease: lease, Index: 1, Ends: [2]plan.End{{}, {Port: far}}},
	)
	for _, c := range []struct {
		fabric      string
		index, side int
		port        *plan.Port
	}{
		{"alice.net", 0, 0, near}, {"alice.net", 0, 1, far}, {"alice.net", 1, 1, far}, {"alice.net", 1, 0, nil},
		{"alice.net", 2, 0, nil}, {"bob.net", 0, 0, other}, {"bob.net", 0, 1, nil}, {"", 0, 0, nil}, {"alice", 0, 0, nil},
	} {
		if got := portIn(want, c.fabric, c.index, c.side); got != c.port {
			t.Errorf("end %d of link %d of %q is %+v", c.side, c.index, c.fabric, got)
		}
	}
}

func TestCaptureOfWhatIsNotHere(t *testing.T) {
	h := &Host{Plan: func(context.Context) (plan.Host, error) { return plan.Host{}, nil }}
	for _, path := range []string{"/v1/links/alice.net/0/capture", "/v1/links/alice.net/x/capture", "/v1/links/..%2f..%2fetc/0/capture", "/v1/links/alice.net/capture"} {
		if status, _ := get(t, h, "GET", path, nil); status != 404 {
			t.Errorf("%s gives %d", path, status)
		}
	}
	h.Plan = func(context.Context) (plan.Host, error) { return plan.Host{}, errors.New("no server") }
	if status, text := get(t, h, "GET", "/v1/links/alice.net/0/capture", nil); status != 404 || text != "no server" {
		t.Errorf("%d %s", status, text)
	}
}

// Commands run where the host says; a probe is the prober whatever was asked for.
func TestCommandsOfSessions(t *testing.T) {
	h := &Host{
		Prober: []string{"echo", "prober"},
		Copy:   func(direction, path string) []string { return []string{"pack", direction, path} },
		Command: func(namespace string, s session.Spec) (session.Program, error) {
			if namespace != "alice.net.a" {
				return session.Program{}, errors.New("no node " + namespace)
			}
			cmd := exec.Command("sh", append([]string{"-c", `echo "$@" $TERM`, "sh"}, s.Argv...)...)
			cmd.Env = []string{"PATH=/bin:/usr/bin"}
			return session.Program{Cmd: cmd}, nil
		},
	}
	socket := serve(t, h)
	run := func(path string, spec session.Spec) (string, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		_, err = session.Run(t.Context(), conn, path, spec, session.Streams{Out: &out})
		return strings.TrimSpace(out.String()), err
	}
	if got, err := run("/v1/nodes/alice.net.a/exec", session.Spec{Argv: []string{"what", "was", "asked"}}); err != nil || got != "what was asked" {
		t.Errorf("exec: %q, %v", got, err)
	}
	if got, err := run("/v1/nodes/alice.net.a/exec", session.Spec{Argv: []string{"on"}, TTY: true, Term: "vt220"}); err != nil || got != "on vt220" {
		t.Errorf("exec with a terminal: %q, %v", got, err)
	}
	if got, err := run("/v1/nodes/alice.net.a/probe", session.Spec{Argv: []string{"something", "else"}}); err != nil || got != "echo prober" {
		t.Errorf("probe: %q, %v", got, err)
	}
	if got, err := run("/v1/nodes/alice.net.a/copy", session.Spec{Argv: []string{"out", "/tmp/x"}}); err != nil || got != "pack out /tmp/x" {
		t.Errorf("copy: %q, %v", got, err)
	}
	for _, argv := range [][]string{{"rm", "/tmp/x"}, {"in"}, {"in", "/tmp/x", "more"}} {
		if got, err := run("/v1/nodes/alice.net.a/copy", session.Spec{Argv: argv}); err == nil {
			t.Errorf("copy %v: %q", argv, got)
		}
	}
	if _, err := run("/v1/nodes/bob.net.a/exec", session.Spec{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "no node bob.net.a") {
		t.Errorf("another's node: %v", err)
	}
}
