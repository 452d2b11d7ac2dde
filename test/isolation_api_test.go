package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	product "sublet/internal/lab"
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

// slowInside opens connections and sends a little on each, never a request.
func slowInside(args []string) error {
	for range 1500 {
		conn, err := net.Dial("unix", args[0])
		if err != nil {
			continue
		}
		_, _ = conn.Write([]byte("GET /v1/leases HTTP/1.1\r\nHost: x\r\nX-"))
	}
	fmt.Fprintln(os.Stderr, "holding")
	time.Sleep(time.Minute)
	return nil
}

// burstInside asks as often as it can for a second and says how often it was
// told to come back later.
func burstInside(args []string) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	refused, failed := 0, 0
	for range 8 {
		all.Go(func() {
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
				answer, err := call(args[0], "GET", "/v1/leases", nil)
				mu.Lock()
				if err != nil || answer.StatusCode >= 500 {
					failed++
				} else if answer.StatusCode == http.StatusTooManyRequests {
					refused++
				}
				mu.Unlock()
				if err == nil {
					answer.Body.Close()
				}
			}
		})
	}
	all.Wait()
	fmt.Println(refused, failed)
	return nil
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

// Whatever a tenant asks of another's lease, he hears the same as if there
// were none: by every command and by the API itself.
func TestForeignLeasesDoNotExist(t *testing.T) {
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

// The operator's and the hosts' doors are closed to tenants, and so are the
// sockets behind the server.
func TestTenantsAreNoOperators(t *testing.T) {
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

// Files of the run directory: others may write to none, and read what concerns
// everybody only.
func TestFilesAreRootsOwn(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(pair("net", "max: 10Mbit"))
	}
	public := []string{"", "/api.sock", "/lab", "/lab/state.json", "/lab/substrate.json"}
	_ = filepath.WalkDir(l.run, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone in between
		}
		short, mode := strings.TrimPrefix(path, l.run), info.Mode().Perm()
		if mode&0o022 != 0 && short != "/api.sock" || mode&0o044 != 0 && !slices.Contains(public, short) {
			t.Errorf("%s has mode %04o", short, mode)
		}
		if info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s is not root's", short)
		}
		if d.IsDir() && mode&0o001 == 0 {
			return filepath.SkipDir
		}
		return nil
	})
	planted := filepath.Join(filepath.Dir(l.run), "planted")
	if err := os.Mkdir(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(planted, alice, alice); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"serve --data " + planted + "/data", "agent --host h1", "lab up demo", "lab down"} {
		r := runCommand(exec.Command(program, append([]string{"--run", planted}, strings.Fields(command)...)...))
		if left, _ := os.ReadDir(planted); r.code != 2 || len(left) > 0 || !strings.Contains(r.err, "12345") {
			t.Errorf("%s in a tenant's directory: exit code %d, %s", command, r.code, r.err)
		}
	}
}

// serverMemory is the server's resident memory in kB.
func (l *lab) serverMemory() int {
	l.t.Helper()
	status, err := product.StatusOf(l.run)
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", status.Processes[0].PID))
	if err != nil {
		l.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kB
}

// Bodies that are too large, too deep or too many are refused at once and for
// little memory; slow callers and too frequent ones wait for themselves only.
func TestBombsAreDefused(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	a, b := both[0], both[1]
	before := l.serverMemory()
	for what, bomb := range map[string]struct {
		text  string
		times int
	}{
		"100 MB":           {strings.Repeat("x", 1000), 100_000},
		"deep lists":       {"[", 8 << 20},
		"deep objects":     {`{"a":`, 1 << 20},
		"empty lists":      {"[],", 2 << 20},
		"a number":         {"9", 4 << 20},
		"no JSON":          {"\x00\xff", 1000},
		"unknown field":    {`{"request":{"network":"n"},"owner_uid":0}`, 1},
		"state and owner":  {`{"request":{"network":"n","state":"running"}}`, 1},
		"not its tenant":   {`{"request":{"network":"n","tenant":"root","nodes":[{"name":"a"}]}}`, 1},
		"hostile names":    {`{"request":{"network":"../../etc\n\u001b[2J\u202e","nodes":[{"name":"$(reboot)"}]}}`, 1},
		"numbers too high": {`{"request":{"network":"n","nodes":[{"name":"a","cpu_milli":9223372036854775807}]}}`, 1},
	} {
		began := time.Now()
		code, body := a.call("POST", "/v1/leases", bomb.text, bomb.times)
		if code != 0 && (code < 400 || code > 499) { // 0: cut off while it was still sending
			t.Errorf("%s: %d %.200s", what, code, body)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", what, took)
		}
	}
	for _, path := range []string{"/v1/leases/..%2f..%2fetc/passwd", "/v1/leases/uid12345/n%0atime=x%20level=ERROR", "/v1/leases/uid12345/%1b%5b2J", "/v1/leases/uid12345/" + strings.Repeat("n", 20_000), "/v1/leases/uid12345/net/nodes/..%2f..%2fx/exec", "/%00", "//v1//plans/h1"} {
		if code, body := a.call("GET", path, "", 0); code < 300 || code > 499 {
			t.Errorf("%.60s: %d %.200s", path, code, body)
		}
	}
	slow := a.outsideCommand("slow", l.socket())
	said := awaiting("holding")
	slow.Stderr = said
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Process.Kill(); _ = slow.Wait() }()
	<-said.seen
	r := a.outside("burst", l.socket())
	if refused, failed := 0, 0; r.code != 0 {
		t.Error(r.err)
	} else if _, err := fmt.Sscan(r.out, &refused, &failed); err != nil || refused+failed == 0 {
		t.Errorf("nothing was refused: %s", r.out)
	}
	began := time.Now()
	b.up(pair("net", "max: 10Mbit"))
	b.must("exec", "net/a", "--", "true")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the other tenant waited %v", took)
	}
	if grown := l.serverMemory() - before; grown > 96<<10 {
		t.Errorf("the server grew by %d kB", grown)
	}
	log, err := os.ReadFile(filepath.Join(l.run, "lab", "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		if !bytes.HasPrefix(line, []byte("time=20")) || bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\n")), "\x1b\r\n\x00") || len(line) > 2000 {
			t.Errorf("in the log: %q", line)
		}
	}
}
