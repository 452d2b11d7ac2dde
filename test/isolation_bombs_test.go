package test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	product "sublet/lab"

	"sublet/internal/stall"
)

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
		watch := stall.Start()
		code, body := a.call("POST", "/v1/leases", bomb.text, bomb.times)
		if code != 0 && (code < 400 || code > 499) { // 0: cut off while it was still sending
			t.Errorf("%s: %d %.200s", what, code, body)
		}
		watch.InTime(t, 5*time.Second, what)
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
	watch := stall.Start()
	b.up(pair("net", "max: 10Mbit"))
	b.must("exec", "net/a", "--", "true")
	watch.InTime(t, 5*time.Second, "the other tenant's lease")
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
