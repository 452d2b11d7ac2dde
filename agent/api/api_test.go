package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/agent/session"
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
	}
	return response.StatusCode, strings.TrimSpace(string(body))
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

// What several parts forward is one list, in their order; one that cannot be
// read makes the answer an error and not a shorter list.
func TestPathsOfAllParts(t *testing.T) {
	part := func(names ...string) func(context.Context) ([]report.Forwarding, error) {
		return func(context.Context) (list []report.Forwarding, err error) {
			for _, n := range names {
				if n == "" {
					return nil, errors.New("unreadable")
				}
				list = append(list, report.Forwarding{Of: n})
			}
			return list, nil
		}
	}
	h := &Host{Paths: []func(context.Context) ([]report.Forwarding, error){part("a", "b"), part(), part("c")}}
	var list []report.Forwarding
	if status, _ := get(t, h, "GET", "/v1/paths", &list); status != 200 || len(list) != 3 || list[2].Of != "c" {
		t.Errorf("%d %+v", status, list)
	}
	h.Paths[1] = part("")
	if status, text := get(t, h, "GET", "/v1/paths", &list); status != 500 || text != "unreadable" {
		t.Errorf("%d %s", status, text)
	}
}

// What a tunnel could not send is dropped by the link that begins here, and by
// none of another lease, of another link, or that ends here.
func TestTunnelDropsAreTheLinks(t *testing.T) {
	tunnel := func(of vnet.LeaseID, link string, drops map[string]uint64) report.TunnelState {
		return report.TunnelState{Overlay: plan.Overlay{Lease: of, Link: link}, Drops: drops}
	}
	states := []report.TunnelState{
		tunnel(lease, "ab", map[string]uint64{"too-big": 3, "unresolved": 2, "not-a-cause-of-sending": 9}),
		tunnel(vnet.LeaseID{Tenant: "bob", Network: "net"}, "ab", map[string]uint64{"too-big": 100}),
		tunnel(lease, "cd", map[string]uint64{"too-big": 7}),
	}
	var asked vnet.LeaseID
	h := &Host{
		Tunnels: func() ([]report.TunnelState, error) { return states, nil },
		Traffic: func(id vnet.LeaseID) ([]report.Traffic, error) {
			asked = id
			return []report.Traffic{
				{Link: "ab", First: true, Drops: map[string]uint64{"queue": 1, "too-big": 1}},
				{Link: "cd", Last: true, Drops: map[string]uint64{}},
				{Link: "cd", First: true, Last: true, Drops: map[string]uint64{}},
			}, nil
		},
	}
	var list []report.Traffic
	if status, text := get(t, h, "GET", "/v1/links/alice.net/traffic", &list); status != 200 || asked != lease {
		t.Fatalf("%d %s of %s", status, text, asked)
	}
	if d := list[0].Drops; d["queue"] != 1 || d["too-big"] != 4 || d["unresolved"] != 2 || len(d) != 3 {
		t.Errorf("the link that begins here dropped %v", d)
	}
	if len(list[1].Drops)+len(list[2].Drops) > 0 {
		t.Errorf("links that end here dropped %v, %v", list[1].Drops, list[2].Drops)
	}
	h.Tunnels = func() ([]report.TunnelState, error) { return nil, errors.New("no map") }
	if status, _ := get(t, h, "GET", "/v1/links/alice.net/traffic", nil); status != 500 {
		t.Errorf("tunnels that cannot be read give %d", status)
	}
	if status, _ := get(t, h, "GET", "/v1/overlay", nil); status != 500 {
		t.Errorf("tunnels that cannot be listed give %d", status)
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
		Command: func(namespace string, argv []string, tty bool) (*exec.Cmd, error) {
			if namespace != "alice.net.a" {
				return nil, errors.New("no node " + namespace)
			}
			cmd := exec.Command("sh", append([]string{"-c", `echo "$@" $TERM`, "sh"}, argv...)...)
			cmd.Env = []string{"PATH=/bin:/usr/bin"}
			return cmd, nil
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
	if _, err := run("/v1/nodes/bob.net.a/exec", session.Spec{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "no node bob.net.a") {
		t.Errorf("another's node: %v", err)
	}
}
