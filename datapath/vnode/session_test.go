package vnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		{[]string{"touch", "/usr/bin/x"}, "touch: cannot touch '/usr/bin/x': Permission denied", 1},
		{[]string{"nsenter", "--net=/proc/1/ns/net", "true"}, "nsenter: cannot open /proc/1/ns/net: Permission denied", 1},
		{[]string{"cat", "/etc/resolv.conf"}, "", 0},
		{[]string{"kill", "-9", "1"}, "kill: (1): Operation not permitted", 1},
		{[]string{"hostname", "evil"}, "hostname: you must be root to change the host name", 1},
		{[]string{"umount", "/etc/hosts"}, "umount: /etc/hosts: must be superuser to unmount.", 32},
		{[]string{"false"}, "", 1},
		{[]string{"no-such-program"}, "sublet: there is no program no-such-program in node n0", 127},
		{[]string{"/no/such/program"}, "sublet: there is no program /no/such/program in the node", 127},
		{[]string{"sh", "-c", "printf 'echo $1' >/tmp/script && chmod +x /tmp/script"}, "", 0},
		{[]string{"/tmp/script", "word"}, "word", 0}, // without an interpreter's name
		{[]string{"/etc/passwd"}, "sublet: program /etc/passwd of the node may not be executed", 126},
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
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, Options{})
	check(t, err)
	defer cmd.Done()
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 3 })
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

// What a command leaves running lives on, every command of the node sees it and
// can end it, and it ends with the node.
func TestProcessesLiveAsLongAsTheNode(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	for _, command := range []string{"setsid -f sleep 1001; exit 3", "nohup sleep 1001 >/dev/null 2>&1 & :"} {
		run(t, p, n, "sh", "-c", command)
		out, code := run(t, p, n, "pgrep", "-f", "^sleep 1001")
		if code != 0 {
			t.Fatalf("%s: another command of the node does not see it: exit %d %s", command, code, out)
		}
		observe(t, p)
		if out, code := run(t, p, n, "kill", out); code != 0 {
			t.Errorf("%s: %s", command, out)
		}
	}
	run(t, p, n, "setsid", "-f", "sleep", "1002")
	do(t, p, plan.Delete, n)
	wait(t, "end", func() bool { return exec.Command("pgrep", "-f", "^sleep 1002").Run() != nil })
}

// A new agent finds the nodes' processes, and ends those of sessions whose
// clients went with the former agent.
func TestNewAgentFindsTheProcesses(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	run(t, p, n, "setsid", "-f", "sleep", "1003")
	cut, err := p.Command(n.Key(), []string{"setsid", "--wait", "sleep", "1004"}, Options{})
	check(t, err)
	check(t, cut.Start())
	wait(t, "start", func() bool { _, code := run(t, p, n, "pgrep", "-f", "^sleep 1004"); return code == 0 })
	again := partOn(h)
	defer again.Close()
	observe(t, again)
	cut.Wait()
	if out, _ := run(t, again, n, "pgrep", "-af", "^sleep 100[34]"); !strings.HasSuffix(out, "sleep 1003") || strings.Contains(out, "1004") {
		t.Errorf("after the restart the node runs %q", out)
	}
}

// When the agent dies, so do the sessions whose clients have lost it.
func TestSessionsEndWithTheAgent(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"setsid", "--wait", "sleep", "1005"}, Options{})
	check(t, err)
	defer cmd.Done()
	check(t, cmd.Start())
	wait(t, "start", func() bool { _, code := run(t, p, n, "pgrep", "-f", "^sleep 1005"); return code == 0 })
	check(t, cmd.Process.Signal(abandoned)) // as the kernel does
	cmd.Wait()
	wait(t, "end", func() bool { _, code := run(t, p, n, "pgrep", "-f", "^sleep 1005"); return code == 1 })
}

func TestPauseProcessThatWasKilledComesBack(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	run(t, p, n, "setsid", "-f", "sleep", "1006")
	pid, err := p.paused(n.Key())
	check(t, err)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	wait(t, "end", func() bool { return exec.Command("pgrep", "-f", "^sleep 1006").Run() != nil })
	if out, code := run(t, p, n, "hostname"); out != "n0" || code != 0 {
		t.Errorf("exit %d %s", code, out)
	}
}

// Orphans are reaped by nobody, and leave nothing.
func TestOrphansLeaveNoZombies(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	run(t, p, n, "sh", "-c", "for i in 1 2 3; do setsid -f sleep 0.01; done; sleep 0.1")
	if out, _ := run(t, p, n, "ps", "-e", "-o", "stat="); strings.Contains(out, "Z") {
		t.Errorf("states of processes: %q", out)
	}
}

func TestDetachedCommandsWriteToTheLog(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sh", "-c", "echo out; echo err >&2; exec sleep 1007"}, Options{Detach: true})
	check(t, err)
	out, err := cmd.CombinedOutput()
	check(t, err)
	cmd.Done()
	number := strings.TrimSpace(string(out))
	wait(t, "the command as the process that was told", func() bool {
		got, _ := run(t, p, n, "pgrep", "-f", "^sleep 1007")
		return got == number
	})
	wait(t, "output", func() bool { text, _ := os.ReadFile(p.logPath(n.Key())); return string(text) == "out\nerr\n" })
	cmd, err = p.Command(n.Key(), []string{"no-such-program"}, Options{Detach: true})
	check(t, err)
	defer cmd.Done()
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 127 || !strings.Contains(string(out), "no-such-program") {
		t.Errorf("what is not there: exit %d %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestLogIsBounded(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sh", "-c", "seq 1000000; echo end"}, Options{Detach: true})
	check(t, err)
	check(t, cmd.Run())
	cmd.Done()
	wait(t, "end", func() bool {
		text, _ := os.ReadFile(p.logPath(n.Key()))
		return strings.HasSuffix(string(text), "end\n")
	})
	observe(t, p)
	text, err := os.ReadFile(p.logPath(n.Key()))
	check(t, err)
	if len(text) > keptLog || !strings.HasSuffix(string(text), "1000000\nend\n") {
		t.Errorf("%d bytes that end with %q", len(text), text[max(0, len(text)-20):])
	}
}

func TestKilledSessionLeavesNothing(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"setsid", "--wait", "sleep", "1000"}, Options{})
	check(t, err)
	defer cmd.Done()
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 4 })
	cmd.Kill()
	cmd.Wait()
	wait(t, "end", func() bool { return len(processes(t, p, n)) == 1 })
}

func TestDeleteKillsSessions(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, Options{})
	check(t, err)
	defer cmd.Done()
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 3 })
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
	cmd, err := p.Command(n.Key(), []string{"sleep", "1000"}, Options{})
	check(t, err)
	defer cmd.Done()
	check(t, cmd.Start())
	wait(t, "start", func() bool { return len(processes(t, p, n)) >= 3 })
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

// What is mounted on the host is not held by nodes that were there before.
func TestNodesHoldNoMounts(t *testing.T) {
	p, _ := newPart(t)
	dir, err := os.MkdirTemp("/var/lib", "vnode")
	check(t, err)
	t.Cleanup(func() { os.Remove(dir) })
	// A shared mount, as / is where systemd runs, and one on it.
	check(t, unix.Mount("sublet-test", dir, "tmpfs", 0, "size=64k,mode=0755"))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	check(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
	disk := dir + "/disk"
	check(t, os.Mkdir(disk, 0o755))
	check(t, unix.Mount("sublet-test", disk, "tmpfs", 0, "size=64k,mode=0755"))
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	if out, code := run(t, p, n, "ls", disk); code == 0 {
		t.Errorf("the node sees %s", out)
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid(t, p, n)))
	check(t, err)
	if strings.Contains(string(table), "sublet-test") {
		t.Errorf("the node holds what the host mounted:\n%s", table)
	}
}
