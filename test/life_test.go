package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/report"
)

// What "exec -d" left running answers its network through kills of the server
// and of the agents, writes to its node's log, and ends with the node:
//
//	a ---- b: an HTTP server that is left running
func TestProcessesOutliveAgentAndServer(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	request := parseRequest(t, "tenant: root\n"+pair("net", "rate: 10Mbit"))
	s.admit(request)
	s.ready(idOf(request))
	page := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(page, []byte("still here"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("cp", page, "net/b:/tmp/")
	number := strings.TrimSpace(s.must("exec", "-d", "net/b", "--", "python3", "-u", "-m", "http.server", "-d", "/tmp", "80"))
	fetch := func() error {
		const get = `import urllib.request; print(urllib.request.urlopen("http://b/page", timeout=2).read().decode())`
		if r := s.sublet("exec", "net/a", "--", "python3", "-c", get); strings.TrimSpace(r.out) != "still here" {
			return fmt.Errorf("exit code %d, %s%s", r.code, r.out, r.err)
		}
		return nil
	}
	eventually(t, 10*time.Second, fetch)
	s.atConsole("net/a", "WORD=kept\n")
	s.kill(server)
	for _, h := range hosts {
		s.kill(agentOf(h))
	}
	for _, h := range hosts {
		s.start(agentOf(h))
	}
	s.start(server)
	s.ready(idOf(request))
	eventually(t, 10*time.Second, fetch)
	eventually(t, 10*time.Second, func() error {
		if out := s.atConsole("net/a", "echo ${WORD}-alive\n"); !strings.Contains(out, "kept-alive") {
			return fmt.Errorf("the console says %s", out)
		}
		return nil
	})
	if out := s.must("ps", "net/b"); !strings.Contains(out, number+" ") || !strings.Contains(out, "http.server") {
		t.Errorf("ps does not show process %s:\n%s", number, out)
	}
	if out := s.must("logs", "net/b"); strings.Count(out, "GET /page") < 2 {
		t.Errorf("the log of two requests:\n%s", out)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	s.must("cp", "net/b:/tmp/page", copied)
	if text, err := os.ReadFile(copied); string(text) != "still here" {
		t.Errorf("copied %q, %v", text, err)
	}
	s.holesStay()
	s.startsSmall()
	s.must("exec", "net/b", "--", "kill", number)
	eventually(t, 5*time.Second, func() error {
		if out := s.must("ps", "net/b"); !strings.HasPrefix(out, "nothing runs") {
			return fmt.Errorf("after kill: %s", out)
		}
		return nil
	})
	s.must("down", "net")
}

// holesStay copies a file of a terabyte without data out of a node and into another.
func (l *lab) holesStay() {
	l.t.Helper()
	copied := filepath.Join(l.t.TempDir(), "holes")
	l.must("exec", "net/a", "--", "truncate", "-s", "1T", "/tmp/holes")
	l.must("cp", "net/a:/tmp/holes", copied)
	l.must("cp", copied, "net/b:/tmp/again")
	if out := l.must("exec", "net/b", "--", "stat", "-c", "%s %b", "/tmp/again"); strings.TrimSpace(out) != "1099511627776 0" {
		l.t.Errorf("size and blocks of a terabyte of nothing: %s", out)
	}
}

// atConsole writes to the console of a node, and returns what comes back.
func (l *lab) atConsole(node, text string) string {
	l.t.Helper()
	cmd := exec.Command(program, "--run", l.run, "attach", node)
	cmd.Stdin = strings.NewReader(text)
	r := runCommand(cmd)
	if r.code != 0 {
		l.t.Fatalf("attach %s: exit code %d, %s", node, r.code, r.err)
	}
	return r.out
}

// Interrupted commands end with all that they started; mistakes name themselves.
func TestMistakesOfCopying(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("net", "rate: 10Mbit"))
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"cp", "a", "b"}, 2, "NAME/NODE:PATH"},
		{[]string{"cp", "net/a:/x", "net/b:/y"}, 2, "NAME/NODE:PATH"},
		{[]string{"cp", "/no/such/file", "net/a:/tmp"}, 2, "/no/such/file"},
		{[]string{"cp", "net/a:/no/such/file", t.TempDir()}, 125, "/no/such/file"},
		{[]string{"cp", "/etc/hostname", "net/a:/proc/"}, 125, "/proc/hostname"},
		{[]string{"cp", "net/nobody:/x", t.TempDir()}, 2, "nobody"},
		{[]string{"exec", "-d", "net/a"}, 2, "no command"},
		{[]string{"exec", "-d", "net/a", "--", "no-such-program"}, 127, "no-such-program"},
		{[]string{"ps", "net"}, 2, "net"},
		{[]string{"logs", "net/nobody"}, 2, "nobody"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if r := l.sublet(c.args...); r.code != c.code || !strings.Contains(r.err, c.say) {
				t.Errorf("exit code %d, want %d with %q; %s%s", r.code, c.code, c.say, r.out, r.err)
			}
		})
	}
}

// A network with programs is running when all of them are ready; they outlive
// kills of agents and server, and one that fails leaves it degraded.
//
//	a ---- b: an HTTP server that the request starts, and one that tells it is up
func TestProgramsOfARequest(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	request := parseRequest(t, `
tenant: root
network: net
nodes:
  - {name: a}
  - name: b
    env: {WHO: everybody}
    workdir: /tmp
    run:
      - {cmd: [sh, -c, 'sleep 1; echo "hello $WHO" >page'], restart: on-failure}
      - {cmd: [python3, -u, -m, http.server, "80"], ready: 80, restart: always}
      - {cmd: [sh, -c, 'echo I am up; exec sleep 1000'], ready: I am up}
links: [{ends: [a, b], rate: 10Mbit}]
`)
	s.admit(request)
	s.ready(idOf(request))
	fetch := func() error {
		const get = `import urllib.request; print(urllib.request.urlopen("http://b/page", timeout=2).read().decode())`
		if r := s.sublet("exec", "net/a", "--", "python3", "-c", get); strings.TrimSpace(r.out) != "hello everybody" {
			return fmt.Errorf("exit code %d, %s%s", r.code, r.out, r.err)
		}
		return nil
	}
	eventually(t, 10*time.Second, fetch)
	before := s.must("ps", "net/b", "-o", "json")
	s.kill(server)
	for _, h := range hosts {
		s.kill(agentOf(h))
	}
	for _, h := range hosts {
		s.start(agentOf(h))
	}
	s.start(server)
	s.ready(idOf(request))
	eventually(t, 10*time.Second, fetch)
	if pids(t, s.must("ps", "net/b", "-o", "json")) != pids(t, before) {
		t.Errorf("before:\n%s\nafter the restart:\n%s", before, s.must("ps", "net/b"))
	}
	if out := s.must("logs", "net/b"); !strings.Contains(out, "GET /page") || !strings.Contains(out, "I am up") {
		t.Errorf("the log:\n%s", out)
	}
	s.must("exec", "net/b", "--", "pkill", "-f", "sleep 1000")
	eventually(t, 10*time.Second, func() error {
		if out := s.must("leases", "net"); !strings.Contains(out, "program 3 (sh) was ended by signal 15") {
			return fmt.Errorf("the lease says:\n%s", out)
		}
		return nil
	})
	eventually(t, 10*time.Second, fetch)
	s.must("down", "net")
}

// pids lists the numbers of processes as ps writes them.
func pids(t *testing.T, text string) string {
	t.Helper()
	var list []report.Process
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, p := range list {
		numbers = append(numbers, fmt.Sprint(p.PID))
	}
	return strings.Join(numbers, " ")
}

// startsSmall says that agents start the small program in nodes, if this one was
// built with it: the console's process is of that.
func (l *lab) startsSmall() {
	l.t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		l.t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("nodeinit is started by sublet agent")) {
		l.t.Log("sublet was built without the program for nodes")
		return
	}
	for _, exe := range matches("/proc/*/exe") {
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(exe), "cmdline"))
		file, _ := os.Readlink(exe)
		if strings.HasPrefix(file, "/memfd:sublet") && strings.Contains(string(arguments), "__init") {
			return
		}
	}
	l.t.Error("no process of a node is the small program")
}
