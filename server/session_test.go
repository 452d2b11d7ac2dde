package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// fakeAgent serves sessions as an agent does: it echoes a line, then what it
// was asked for, until the client has said everything.
func (r *rig) fakeAgent(host vnet.HostID) {
	l, err := net.Listen("unix", r.agentSocket(host))
	if err != nil {
		r.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") == "" {
			io.WriteString(w, `["`+req.URL.Path+`"]`)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sublet-session\r\n\r\n")
		if strings.HasSuffix(req.URL.Path, "/probe") && host == "h1" {
			return // a session in which nobody says anything
		}
		io.WriteString(conn, string(host)+" "+req.URL.RequestURI()+" for "+req.Header.Get("Sublet-Caller")+"\n")
		io.Copy(conn, buffered)
		io.WriteString(conn, "bye")
	})}
	go server.Serve(l)
	r.t.Cleanup(func() { server.Close() })
}

// open upgrades as package agent/session does.
func openSession(t *testing.T, c *api.Client, path string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn := must[net.Conn](t)(c.Dial(within(t)))
	t.Cleanup(func() { conn.Close() })
	request := must[*http.Request](t)(http.NewRequest("POST", "http://sublet"+path, nil))
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "sublet-session")
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	return conn, reader, must[*http.Response](t)(http.ReadResponse(reader, request))
}

func TestSessions(t *testing.T) {
	r := newRig(t)
	r.fakeAgent("h1")
	r.fakeAgent("h2")
	ctx, tenant := within(t), r.as(1)
	id := must[api.Admission](t)(tenant.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	_, _, response := openSession(t, tenant, api.NodePath(id, "a", "exec"))
	if response.StatusCode != http.StatusBadGateway {
		t.Errorf("a session before its agent reported: %s", response.Status)
	}
	r.agents()
	must[vnet.Lease](t)(tenant.WaitReady(ctx, id))
	for path, want := range map[string]string{
		api.NodePath(id, "a", "exec"):         "h1 /v1/nodes/daemon.net.a/exec for daemon\n",
		api.NodePath(id, "b", "probe"):        "h2 /v1/nodes/daemon.net.b/probe for daemon\n",
		api.CapturePath(id, "ab") + "?snap=9": "h1 /v1/links/daemon.net/0/capture?snap=9 for daemon\n",
		api.CapturePath(id, "ab") + "?end=1":  "h2 /v1/links/daemon.net/0/capture?end=1 for daemon\n",
	} {
		conn, reader, response := openSession(t, tenant, path)
		if response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %s", path, response.Status)
		}
		io.WriteString(conn, "hello ")
		conn.(*net.UnixConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if got, err := io.ReadAll(reader); err != nil || string(got) != want+"hello bye" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{api.NodePath(id, "c", "exec"), api.CapturePath(id, "ac"), api.NodePath(id, "../a", "exec"), api.CapturePath(id, "ab") + "?end=2"} {
		if _, _, response := openSession(t, tenant, path); response.StatusCode != 404 && response.StatusCode != 400 {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	if _, _, response := openSession(t, r.as(2), api.NodePath(id, "a", "exec")); response.StatusCode != 404 {
		t.Errorf("a stranger's session: %s", response.Status)
	}
	if _, err := r.as(2).Join(ctx, id, "a", ""); err == nil || !strings.Contains(err.Error(), "no lease daemon/net") {
		t.Errorf("a stranger who would join: %v", err)
	}
	if err := r.as(2).Revoke(ctx, id, "a"); err == nil || !strings.Contains(err.Error(), "no lease daemon/net") {
		t.Errorf("a stranger who would shut others out: %v", err)
	}
	if _, err := tenant.Join(ctx, id, "a", ""); err == nil || !strings.Contains(err.Error(), "no machine can become node a") {
		t.Errorf("a node that no machine becomes: %v", err)
	}
	var diff []string
	if err := r.as(0).Diff(ctx, "h2", &diff); err != nil || len(diff) != 1 || diff[0] != "/v1/diff" {
		t.Errorf("dry run: %v, %v", diff, err)
	}
}

// A caller does not keep a session open that its agent has ended.
func TestSessionEndsWithTheAgents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fakeAgent("h1")
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	conn, reader, _ := openSession(t, c, api.NodePath(id, "a", "probe"))
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(reader); err != nil {
		t.Fatalf("the session's end is not told: %v", err)
	}
	const linger = 5 * time.Second // of the server's listener
	for end := time.Now().Add(linger + 5*time.Second); ; time.Sleep(50 * time.Millisecond) {
		if hungUp(t, conn) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server still reads from it")
		}
	}
}

// hungUp says that the other end of a unix connection has closed both ways.
func hungUp(t *testing.T, conn net.Conn) bool {
	t.Helper()
	polled := make([]unix.PollFd, 1)
	raw := must[syscall.RawConn](t)(conn.(*net.UnixConn).SyscallConn())
	if err := raw.Control(func(fd uintptr) {
		polled[0].Fd = int32(fd)
		_, _ = unix.Poll(polled, 0)
	}); err != nil {
		t.Fatal(err)
	}
	return polled[0].Revents&unix.POLLHUP != 0
}

func TestSessionEndsWithTheServer(t *testing.T) {
	r := newRig(t)
	r.fakeAgent("h1")
	r.agents()
	ctx, c := within(t), r.as(os.Geteuid())
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(ctx, id))
	conn, reader, _ := openSession(t, c, api.NodePath(id, "a", "exec"))
	r.stop()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(reader); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the session outlived the server: %v", err)
	}
}

func TestAgentAddresses(t *testing.T) {
	local, remote := trust.Caller{Operator: true}, trust.Caller{Host: "h1"}
	for _, test := range []struct {
		address string
		caller  trust.Caller
		ok      bool
	}{
		{"", remote, true}, {"/run/sublet/agent-h1.sock", local, true}, {"/run/docker.sock", remote, false},
		{"https://192.0.2.1:7000", remote, true}, {"http://192.0.2.1:7000", remote, false},
		{"https://u:p@h", remote, false}, {"https://h/path", local, false}, {"relative.sock", local, false}, {"https://", local, false},
	} {
		request := &http.Request{RemoteAddr: "192.0.2.1:40000"}
		if _, err := agentAddress(test.address, request, test.caller); (err == nil) != test.ok {
			t.Errorf("%q from %+v: %v", test.address, test.caller, err)
		}
	}
}
