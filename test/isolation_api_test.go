package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// callInside sends one request to a socket: METHOD PATH, and a body made of a
// text that is repeated. It says the status, then the answer.
func callInside(args []string) error {
	socket, method, path, text := args[0], args[1], args[2], args[3]
	times, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	answer, err := call(socket, method, path, io.NopCloser(&repeated{text: text, left: times}))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode)
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func call(socket, method, path string, body io.ReadCloser) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}
	request := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "sublet", Opaque: path}, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	return transport.RoundTrip(request)
}

// repeated reads a text several times.
type repeated struct {
	text string
	left int
	rest string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.left--
		r.rest = strings.Repeat(r.text, max(1, min(r.left+1, 4096/len(r.text))))
		r.left -= len(r.rest)/len(r.text) - 1
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// outside runs one of insides as the tenant, but on the machine.
func (c *tenant) outside(args ...string) result {
	c.t.Helper()
	return runCommand(c.outsideCommand(args...))
}

func (c *tenant) outsideCommand(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.attackProgram(), append([]string{insideCommand}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	return cmd
}

func (l *lab) socket() string { return filepath.Join(l.run, "api.sock") }

// call gives status and body of one request.
func (c *tenant) call(method, path, text string, times int) (int, string) {
	c.t.Helper()
	r := c.outside("call", c.socket(), method, path, text, fmt.Sprint(times))
	status, body, _ := strings.Cut(r.out, "\n")
	code, err := strconv.Atoi(status)
	if err != nil {
		return 0, r.err
	}
	return code, body
}

// Whatever a tenant asks of another's lease, they hear the same as if there
// were none: by every command and by the API itself.
func TestForeignLeasesDoNotExist(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	both[1].up(pair("net", "max: 10Mbit"))
	a := both[0]
	const theirs, none = "uid12346/net", "uid12346/nix"
	for _, command := range []string{
		"exec NAME/a -- true", "exec NAME/zz -- true", "capture NAME/a-b", "capture NAME/zz", "check NAME", "graph NAME", "down NAME", "leases NAME",
	} {
		var heard [2]result
		for i, name := range []string{theirs, none} {
			heard[i] = a.sublet(strings.Fields(strings.ReplaceAll(command, "NAME", name))...)
			heard[i].err = strings.ReplaceAll(heard[i].err, name, "NAME")
		}
		if heard[0] != heard[1] || heard[0].code != 2 {
			t.Errorf("%s: of another's %+v, of none %+v", command, heard[0], heard[1])
		}
	}
	for _, request := range []string{
		"GET ", "DELETE ", "PUT /verdict", "GET /nodes/a/exec", "POST /nodes/a/exec", "GET /nodes/a/probe", "POST /nodes/zz/probe",
		"GET /links/a-b/capture", "POST /links/a-b/capture?end=1", "GET ?until=gone&wait=1s", "PATCH ", "POST ",
	} {
		method, rest, _ := strings.Cut(request, " ")
		var heard [2]string
		for i, name := range []string{theirs, none} {
			code, body := a.call(method, "/v1/leases/"+name+rest, "{}", 1)
			heard[i] = fmt.Sprint(code, strings.ReplaceAll(body, name, "NAME"))
		}
		if heard[0] != heard[1] || heard[0][0] != '4' {
			t.Errorf("%s: of another's %s, of none %s", request, heard[0], heard[1])
		}
	}
	if code, body := a.call("GET", "/v1/leases", "", 0); code != 200 || strings.TrimSpace(body) != "[]" {
		t.Errorf("list of leases: %d %s", code, body)
	}
	foreign := a.file("foreign.yaml", "tenant: uid12346\n"+pair("mine", "max: 1Mbit"))
	if r := a.sublet("up", foreign); r.code != 2 {
		t.Errorf("a lease in another's name: exit code %d, %s", r.code, r.err)
	}
	if r := both[1].shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
		t.Errorf("the lease suffered: %s", r.out)
	}
}

// The operator's and the hosts' routes are closed to tenants, and so are the
// sockets behind the server.
func TestTenantsAreNoOperators(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	a := l.tenants(alice)[0]
	for _, request := range []string{"GET /v1/plans/h1", "GET /v1/plans/h1?after=0", "GET /v1/plans/zz", "GET /v1/plans/h1/diff", "POST /v1/reports"} {
		method, path, _ := strings.Cut(request, " ")
		if code, body := a.call(method, path, `{"host":"h1"}`, 1); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", request, code, body)
		}
	}
	for _, command := range []string{"plan", "plan h1", "lab down", "lab up demo"} {
		if r := a.sublet(strings.Fields(command)...); r.code != 2 {
			t.Errorf("%s: exit code %d, %s", command, r.code, r.err)
		}
	}
	for _, socket := range []string{"agent-h1.sock", "agent-h2.sock", "lab/data/etcd/etcd.sock"} {
		if r := a.outside("call", filepath.Join(l.run, socket), "GET", "/v1/diff", "", "0"); r.code == 0 || !strings.Contains(r.err, "permission denied") {
			t.Errorf("%s answers: %s%s", socket, r.out, r.err)
		}
	}
	nobody := &tenant{lab: l, uid: 65534} // whom nodes of tenants without a user stand for
	if r := nobody.sublet("leases"); r.code == 0 {
		t.Errorf("nobody has leases: %s", r.out)
	}
}
