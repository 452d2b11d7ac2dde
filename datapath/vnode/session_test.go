package vnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

func TestSessionIsConfined(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, names(), n, node("other", 1000))
	dir, err := os.MkdirTemp("/var/lib", "vnode") // /tmp is the node's own
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	secret := filepath.Join(dir, "secret")
	check(t, os.WriteFile(secret, []byte("x"), 0o600))
	for _, c := range []struct {
		argv []string
		out  string
		code int
	}{
		{[]string{"id", "-u"}, "0", 0},
		{[]string{"id", "-G"}, "0", 0},
		{[]string{"hostname"}, "n0", 0},
		{[]string{"getent", "hosts", "n1"}, "10.0.0.2        n1", 0},
		{[]string{"cat", "/sys/class/net/lo/operstate"}, "unknown", 0},
		{[]string{"ls", "/sys/class/net"}, "lo", 0},
		{[]string{"ls", h.Run}, "sublet", 0},
		{[]string{"ls", "/proc/self/fd"}, "0\n1\n2\n3", 0}, // 3 is the directory
		{[]string{"cat", secret}, "cat: " + secret + ": Permission denied", 1},
		{[]string{"touch", "/etc/x"}, "touch: cannot touch '/etc/x': Permission denied", 1},
		{[]string{"nsenter", "--net=/proc/1/ns/net", "true"}, "nsenter: cannot open /proc/1/ns/net: Permission denied", 1},
		{[]string{"kill", "-9", "1"}, "kill: (1): Operation not permitted", 1},
		{[]string{"hostname", "evil"}, "hostname: you must be root to change the host name", 1},
		{[]string{"umount", "/etc/hosts"}, "umount: /etc/hosts: must be superuser to unmount.", 32},
		{[]string{"false"}, "", 1},
		{[]string{"no-such-program"}, "sublet: there is no program no-such-program in node n0", 127},
	} {
		if out, code := run(t, p, n, c.argv...); out != c.out || code != c.code {
			t.Errorf("%v: %d %q, want %d %q", c.argv, code, out, c.code, c.out)
		}
	}
}

func TestSessionSeesOnlyItself(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	out, _ := run(t, p, n, "ls", "/proc")
	for _, entry := range strings.Fields(out) {
		if strings.Trim(entry, "0123456789") == "" && len(entry) > 2 {
			t.Errorf("process %s is visible", entry)
		}
	}
}

// What a node writes where everybody may is seen by its own sessions only, and
// ends with it.
func TestSharedDirectoriesAreTheNodesOwn(t *testing.T) {
	p, _ := newPart(t)
	a, b := node("n0", 1000), node("n1", 1000)
	do(t, p, plan.Add, a, b)
	const look = "cat /tmp/x /var/tmp/x /dev/shm/x 2>/dev/null"
	if out, code := run(t, p, a, "sh", "-c", "for d in /tmp /var/tmp /dev/shm; do echo a >$d/x; done; stat -c %a /tmp"); out != "1777" || code != 0 {
		t.Errorf("write: %d %s", code, out)
	}
	if out, _ := run(t, p, a, "sh", "-c", look); out != "a\na\na" {
		t.Errorf("another session of the node sees %q", out)
	}
	if out, _ := run(t, p, b, "sh", "-c", look); out != "" {
		t.Errorf("another node sees %q", out)
	}
	if _, err := os.Stat("/dev/shm/x"); err == nil {
		t.Error("the host sees it")
	}
	do(t, p, plan.Delete, a)
	do(t, p, plan.Add, a)
	if out, _ := run(t, p, a, "sh", "-c", look); out != "" {
		t.Errorf("the next node of the name sees %q", out)
	}
}

func TestScratchIsBounded(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, Memory: 64 * vnet.MiB}
	do(t, p, plan.Add, n)
	out, code := run(t, p, n, "sh", "-c", "head -c 100M /dev/zero >/dev/shm/x; stat -c %s /dev/shm/x")
	if strings.HasSuffix(out, "104857600") {
		t.Errorf("100 MiB in memory under a limit of 64: exit %d %s", code, out)
	}
}

// Mounts and processes show to every user of the machine; they do not tell
// whose networks there are.
func TestNamesAreConcealed(t *testing.T) {
	p, _ := newPart(t)
	lease := vnet.LeaseID{Tenant: "concealed", Network: "quietly"}
	n := plan.VNode{Lease: lease, Node: "nodename", Owner: 1000}
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 2 })
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	arguments := ""
	for _, pid := range append(processes(t, p, n), cmd.Process.Pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		check(t, err)
		arguments += string(text)
	}
	for where, text := range map[string]string{"mounts": string(mounts), "arguments": arguments} {
		for _, name := range []string{"concealed", "quietly", "nodename"} {
			if strings.Contains(text, name) {
				t.Errorf("the %s tell %s", where, name)
			}
		}
	}
	check(t, cmd.Process.Kill())
	cmd.Wait()
}

// What ends with the command although it was to run on is told.
func TestLeftBehindProcessesAreNamed(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	for command, want := range map[string]bool{
		"setsid -f sleep 1000; exit 3":         true,
		"nohup sleep 1000 >/dev/null 2>&1 & :": true,
		"true | cat":                           false,
	} {
		cmd, err := p.Command(n.Key(), []string{"sh", "-c", command}, false)
		check(t, err)
		said := &strings.Builder{}
		cmd.Stderr = said
		cmd.Run()
		if got := strings.Contains(said.String(), `"sleep"`); got != want {
			t.Errorf("%s: said %q", command, said)
		}
	}
}

func TestKilledSessionLeavesNothing(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"setsid", "--wait", "sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 3 })
	check(t, cmd.Process.Kill())
	cmd.Wait()
	wait(t, "end", func() bool { return len(processes(t, p, n)) == 0 })
}

func TestDeleteKillsSessions(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 2 })
	do(t, p, plan.Delete, n)
	if err := cmd.Wait(); err == nil {
		t.Error("the session ended well")
	}
}

func TestMemoryLimitHolds(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, Memory: 32 * vnet.MiB}
	do(t, p, plan.Add, n)
	out, code := run(t, p, n, "python3", "-c", "x = bytearray(100 << 20)")
	if code != 128+9 {
		t.Errorf("100 MiB under a limit of 32: exit %d %s", code, out)
	}
}

func TestCPULimitHolds(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, CPU: 200}
	do(t, p, plan.Add, n)
	out, code := run(t, p, n, "python3", "-c", `
import time
end = time.monotonic() + 1
while time.monotonic() < end: pass
print(time.process_time() < 0.35)`)
	if out != "True" || code != 0 {
		t.Errorf("a fifth of a core: exit %d %s", code, out)
	}
}

func TestSignalReachesTheCommand(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, false)
	check(t, err)
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 2 })
	check(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+2 {
		t.Errorf("interrupted sleep: exit %d", code)
	}
}

func processes(t *testing.T, p *Part, n plan.VNode) []int {
	t.Helper()
	pids, err := p.host.Group(n.Key()).Processes()
	check(t, err)
	return pids
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within 5 s", what)
		}
	}
}

// What a plan lets a node have at most is what the kernel lets it have.
func TestCeilings(t *testing.T) {
	p, _ := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 1000, CPU: 500, Memory: 64 * vnet.MiB, Processes: 12}
	do(t, p, plan.Add, n)
	has(t, p, n)
	const fork = "import os, time\nfor i in range(40):\n  if os.fork() == 0: time.sleep(2); os._exit(0)\nprint('all')"
	if out, code := run(t, p, n, "python3", "-c", fork); code == 0 || !strings.Contains(out, "BlockingIOError") {
		t.Errorf("40 processes of 12: exit %d %s", code, out)
	}
	n.Processes = 0
	do(t, p, plan.Set, n)
	has(t, p, n)
	if out, code := run(t, p, n, "python3", "-c", fork); code != 0 {
		t.Errorf("40 processes without a stated limit: exit %d %s", code, out)
	}
}
