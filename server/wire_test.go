package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

func reportOf(host vnet.HostID) report.Report { return report.Report{Host: host} }

// over is HTTP on connections of a client.
func over(c *api.Client) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// send sends what no method of a client does, and returns the error answered.
func send(ctx context.Context, c *api.Client, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://sublet"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := over(c).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode < 300 {
		return err
	}
	return api.ReadProblem(response.StatusCode, string(answer))
}

// raw posts a text and returns status and problem.
func raw(t *testing.T, c *api.Client, method, path, kind, body string) (int, api.Problem) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), method, "http://sublet"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := over(c).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p api.Problem
	if response.StatusCode >= 300 {
		if got := response.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: content type %q", body, got)
		}
		if err := json.Unmarshal(text, &p); err != nil || p.Status != response.StatusCode || p.Type == "" || p.Title == "" {
			t.Errorf("%.60s: %d %s (%v)", body, response.StatusCode, text, err)
		}
	}
	return response.StatusCode, p
}

func TestBadInput(t *testing.T) {
	r := newRig(t)
	c := r.as(os.Geteuid())
	const good = `{"request":{"network":"n","nodes":[{"name":"a"}]`
	for _, test := range []struct {
		body, path string
		status     int
	}{
		{``, "", 400},
		{`{`, "", 400},
		{`[]`, "", 400},
		{`null`, "network", 400},
		{strings.Repeat("[", 100_000), "", 400},
		{`{"request":` + strings.Repeat(`{"request":`, 20_000), "request.request", 400},
		{good + `,"vni":7}}`, "request.vni", 400},
		{good + `}} {}`, "", 400},
		{good + `,"start":"yesterday"}}`, "request.start", 400},
		{good + `,"for_ns":1e400}}`, "request.for_ns", 400},
		{good + `,"tenant":"a/b"}}`, "tenant", 400},
		{good + `,"tenant":"a","tenant":"root"}}`, "request.tenant", 400},
		{good + `},"request":{"network":"m","nodes":[{"name":"a"}]}}`, "request", 400},
		{good + `,"Tenant":"root"}}`, "request.Tenant", 400},
		{strings.Replace(good, "request", "REQUEST", 1) + `}}`, "REQUEST", 400},
		{strings.Replace(good, `"name":"a"`, `"name":"a","cpu_milli":"1"`, 1) + `}}`, "request.nodes[0].cpu_milli", 400},
		{strings.Replace(good, `"name":"a"`, `"name":"a","cpu_milli":1.5`, 1) + `}}`, "request.nodes[0].cpu_milli", 400},
		{strings.Replace(good, `"name":"a"`, `"name":"a","labels":{"k":"v","k":"w"}`, 1) + `}}`, "request.nodes[0].labels.k", 400},
		{strings.Replace(good, `"name":"a"`, `"name":"a","labels":{"k":"`+"\xff"+`"}`, 1) + `}}`, "request.nodes[0].labels.k", 400},
		{good + `,"links":[{"ends":["a"],"bandwidth":[{},{}]}]}}`, "request.links[0].ends", 400},
		{good + `,"links":[{"ends":["a","a"],"bandwidth":[{},{}]}]}}`, "links[0].ends[1]", 400},
		{`{"request":{"network":"../x","nodes":[{"name":"a"}]}}`, "network", 400},
		{`{"request":{"network":"n"}}`, "nodes", 400},
		{`{"request":{"network":"n","nodes":[` + strings.Repeat(`{},`, 300_000) + `{}]}}`, "", 413},
		{`{"request":{"network":"n","nodes":[` + strings.Repeat(`{"name":"a"},`, 700_000) + `{}]}}`, "", 413},
	} {
		status, p := raw(t, c, "POST", "/v1/leases", "application/json", test.body)
		if status != test.status || p.Path != test.path || p.Detail == "" {
			t.Errorf("%.70s: %d at %q: %s; want %d at %q", test.body, status, p.Path, p.Detail, test.status, test.path)
		}
		for _, word := range []string{"vnet.", "struct", "json:", "int64", "Go "} {
			if strings.Contains(p.Detail, word) {
				t.Errorf("%.70s: the detail speaks of Go: %s", test.body, p.Detail)
			}
		}
	}
	for _, test := range [][2]string{{"GET", "/v1/nothing"}, {"PATCH", "/v1/leases"}, {"GET", "/"}, {"GET", "/v1/leases/root"}} {
		if status, _ := raw(t, c, test[0], test[1], "", ""); status != 404 {
			t.Errorf("%s %s: %d", test[0], test[1], status)
		}
	}
	if status, _ := raw(t, c, "POST", "/v1/leases", "text/plain", "{}"); status != 400 {
		t.Errorf("text/plain: %d", status)
	}
	for _, query := range []string{"?wait=1h", "?wait=x", "?until=x"} {
		if status, _ := raw(t, c, "GET", "/v1/leases/root/n"+query, "", ""); status != 400 && status != 404 {
			t.Errorf("%s: %d", query, status)
		}
	}
	_, err := c.Admit(within(t), vnet.Request{Network: "x"}, false)
	var field *vnet.FieldError
	if !errors.As(err, &field) || field.Path != "nodes" {
		t.Errorf("the client got %#v", err)
	}
	must[[]vnet.Lease](t)(c.Leases(within(t))) // it still serves
}

func TestPlanLongPoll(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	first := must[plan.Host](t)(c.PlanNow(ctx, "h1"))
	type got struct {
		plan plan.Host
		err  error
	}
	next := make(chan got)
	go func() {
		p, err := c.Plan(ctx, "h1", first.Origin())
		next <- got{p, err}
	}()
	select {
	case g := <-next:
		t.Fatalf("revision %d came without a change: %v", g.plan.Revision, g.err)
	case <-time.After(200 * time.Millisecond):
	}
	must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false))
	g := <-next
	if g.err != nil || g.plan.Revision <= first.Revision || len(plan.Of[plan.VNode](g.plan)) != 1 {
		t.Errorf("after an admission: %+v, %v", g.plan, g.err)
	}
	_, err := c.Plan(ctx, "h9", plan.Origin{})
	wantError(t, "a host that is not there", err, api.ErrNotFound)
	wantError(t, "its report", c.Report(ctx, reportOf("h9")), api.ErrNotFound)
	begin := time.Now()
	if status, _ := raw(t, c, "GET", fmt.Sprintf("/v1/plans/h1?wait=100ms&after=%d", g.plan.Revision), "", ""); status != 200 || time.Since(begin) > 5*time.Second {
		t.Errorf("a short wait: %d after %s", status, time.Since(begin))
	}
}

// Agents of a former version, which ask for no form, see switches where they look.
func TestPlansInTheFormerForm(t *testing.T) {
	r := newRig(t)
	ctx, c := within(t), r.as(os.Geteuid())
	ask := pair("net", vnet.Mbit)
	ask.Topology.Switches = []vnet.VirtualSwitch{{Name: "x", Kind: vnet.SwitchEngine, Host: "h1"}}
	ask.Topology.Links = append(ask.Topology.Links, vnet.VirtualLink{Name: "ax", Ends: [2]string{"a", "x"}})
	must[api.Admission](t)(c.Admit(ctx, ask, false))
	for query, former := range map[string]bool{"": true, "?form=1": true, "?form=2": false, "?form=3": false} {
		response, err := over(c).Get("http://sublet/v1/plans/h1" + query)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		var members map[string]any
		if err := errors.Join(err, json.Unmarshal(text, &members)); err != nil {
			t.Fatal(err)
		}
		if (members["vxswitches"] != nil) != former || (members["switches"] == nil) != former {
			t.Errorf("%q is answered with %s", query, text)
		}
		if p, err := plan.Unseal(text); err != nil || len(plan.Of[plan.Switch](p)) != 1 {
			t.Errorf("%q is answered with %v, %v", query, p, err)
		}
	}
	if status, p := raw(t, c, "GET", "/v1/plans/h1?form=x", "", ""); status != 400 || p.Path != "form" {
		t.Errorf("form x: %d %+v", status, p)
	}
}

func TestSlowHeaderIsCutOff(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes the header's timeout of 10 s")
	}
	r := newRig(t)
	conn := must[net.Conn](t)(net.Dial("unix", r.socket()))
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/leases HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(headerTimeout + 10*time.Second))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("an unfinished header was not cut off: %v", err)
	}
}

func TestSecondServer(t *testing.T) {
	r := newRig(t)
	if _, err := Listen(r.dir+"/run", nil); err == nil {
		t.Error("a second server took the socket away")
	}
	info := must[os.FileInfo](t)(os.Stat(r.socket()))
	if info.Mode().Perm() != 0o666 {
		t.Errorf("socket mode %v", info.Mode())
	}
}
