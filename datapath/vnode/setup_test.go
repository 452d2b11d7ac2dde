package vnode

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// given is what node n0 is given.
func given(programs ...vnet.Program) plan.Setup {
	n := node("n0", 1000)
	return plan.Setup{Lease: n.Lease, Node: n.Node, Setup: vnet.Setup{Run: programs}}
}

func shell(script string) []string { return []string{"sh", "-c", script} }

// problem is what is not ready; "": all is.
func problem(p *Part) string {
	for _, e := range p.Problems() {
		return string(e.Op) + ": " + e.Text
	}
	return ""
}

func isProblem(t *testing.T, p *Part, want string) {
	t.Helper()
	wait(t, want, func() bool { return problem(p) == want })
}

func logOf(t *testing.T, p *Part, n plan.VNode) string {
	t.Helper()
	var text bytes.Buffer
	check(t, p.Log(t.Context(), n.Key(), false, &text))
	return text.String()
}

// Programs start in order, each when the one before it is ready, and have the
// node's variables, directory and settings, as its commands do.
func TestProgramsStartInOrder(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	s := given(
		vnet.Program{Cmd: shell("sleep 0.2; echo first is up; exec sleep 100"), Ready: vnet.Ready{Line: "is up"}},
		vnet.Program{Cmd: []string{"python3", "-c", "import socket,time; s=socket.create_server(('127.0.0.2', 81)); print('second', flush=True); time.sleep(100)"}, Ready: vnet.Ready{Port: 81}},
		vnet.Program{Cmd: shell("echo third in $PWD for $WHO; sleep 0.2; touch /tmp/done; exec sleep 100"), Ready: vnet.Ready{Cmd: []string{"test", "-e", "/tmp/done"}}},
		vnet.Program{Cmd: shell("echo fourth")},
	)
	s.Env, s.Workdir, s.Sysctls = map[string]string{"WHO": "all of \"us\"\n"}, "/usr", map[string]string{"net.ipv4.tcp_ecn": "1"}
	do(t, p, plan.Add, n, s)
	if problem(p) == "" {
		t.Error("it is ready at once")
	}
	isProblem(t, p, "")
	var text string
	wait(t, "all of the log", func() bool { text = logOf(t, p, n); return strings.Contains(text, "fourth") })
	var at []int
	for _, word := range []string{"first is up", "second", "third in /usr for all of \"us\"", "fourth"} {
		at = append(at, strings.Index(text, word))
	}
	if !slices.IsSorted(at) || at[0] < 0 {
		t.Errorf("the log is not in order (%v):\n%s", at, text)
	}
	if out, code := run(t, p, n, "sh", "-c", "echo $WHO; pwd; cat /proc/sys/net/ipv4/tcp_ecn"); out != "all of \"us\"\n/usr\n1" {
		t.Errorf("a command finds %q, %d", out, code)
	}
	if _, err := os.Stat("/proc/sys/net/ipv4/tcp_ecn"); err == nil {
		if host, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_ecn"); string(host) == "1\n" {
			t.Error("the host's setting changed")
		}
	}
	has(t, p, n, s)
	do(t, p, plan.Delete, s)
	wait(t, "the end of all programs", func() bool { list, err := p.Processes(n.Key()); return err == nil && len(list) == 0 })
	if files, err := h.Names(setupKind); err != nil || len(files) != 0 {
		t.Errorf("left: %v %v", files, err)
	}
}

// Programs are started again by policy; one that fails for good says so.
func TestProgramsAreStartedAgain(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n, given(
		vnet.Program{Cmd: shell("exit 7")},
		vnet.Program{Cmd: shell("echo x >>/tmp/runs; test $(wc -l </tmp/runs) = 3; exit $?"), Restart: vnet.RestartOnFailure},
		vnet.Program{Cmd: shell("echo y >>/tmp/always; sleep 0.05"), Restart: vnet.RestartAlways},
	))
	isProblem(t, p, "carry: node n0: program 1 (sh) ended with exit code 7")
	wait(t, "three runs", func() bool { out, _ := run(t, p, n, "cat", "/tmp/runs"); return out == "x\nx\nx" })
	wait(t, "more runs", func() bool { out, _ := run(t, p, n, "cat", "/tmp/always"); return strings.HasPrefix(out, "y\ny\ny") })
	time.Sleep(200 * time.Millisecond)
	if out, _ := run(t, p, n, "cat", "/tmp/runs"); out != "x\nx\nx" {
		t.Errorf("one that ended well runs again: %q", out)
	}
	do(t, p, plan.Set, given(vnet.Program{Cmd: []string{"no-such-program"}}))
	isProblem(t, p, "carry: node n0: program 1 (no-such-program) is no program of the node")
	do(t, p, plan.Set, given(vnet.Program{Cmd: shell("kill -9 $$")}))
	isProblem(t, p, "carry: node n0: program 1 (sh) was ended by signal 9")
	do(t, p, plan.Set, given(vnet.Program{Cmd: shell("sleep 100"), Ready: vnet.Ready{Port: 82}}))
	isProblem(t, p, "await: node n0: program 1 (sh) is not ready: nothing listens on TCP port 82")
}

// A program whose user the node does not have is not started.
func TestProgramsOfNobody(t *testing.T) {
	p, _ := newPart(t)
	do(t, p, plan.Add, node("n0", 1000), given(vnet.Program{Cmd: shell("sleep 100"), User: "nobody-here"}))
	isProblem(t, p, "carry: node n0: program 1 (sh) cannot be started: user nobody-here: no matching entries in passwd file")
}

// A program that the kernel ends for want of memory says so, with the limit.
func TestProgramsWithoutMemory(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	n.Memory = 256 * vnet.MiB // its supervisor has some too, more with the race detector
	do(t, p, plan.Add, n, given(vnet.Program{Cmd: []string{"tail", "/dev/zero"}}))
	isProblem(t, p, "carry: node n0: program 1 (tail) was ended by signal 9: the node was out of memory, of which it may have 256MiB (memory)")
}

// Agents come and go: programs stay the same processes. Without the supervisor,
// or without the node's first process, they are started anew.
func TestProgramsOutliveAgents(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	s := given(vnet.Program{Cmd: shell("exec sleep 1234"), Restart: vnet.RestartAlways})
	do(t, p, plan.Add, n, s)
	isProblem(t, p, "")
	first := processes(t, p, n)
	next := partOn(h)
	t.Cleanup(next.Close)
	has(t, next, n, s)
	if now := processes(t, next, n); !slices.Equal(now, first) || len(now) == 0 {
		t.Errorf("processes %v are now %v", first, now)
	}
	for _, keeper := range []func() int{
		func() int { return next.supervisorOf(n.Key()) },
		func() int { pid, err := next.paused(n.Key()); check(t, err); return pid },
	} {
		check(t, unix.Kill(keeper(), unix.SIGKILL))
		wait(t, "the loss", func() bool {
			is := plan.Of[plan.Setup](observe(t, next))[0]
			return !plan.Equal(is, s) && is.Lost == "what starts them had ended"
		})
		do(t, next, plan.Set, s)
		isProblem(t, next, "")
		has(t, next, n, s)
		wait(t, "one sleep", func() bool {
			list, err := next.Processes(n.Key())
			return err == nil && len(list) == 1 && list[0].Command == "sleep 1234"
		})
	}
}

// Programs that ignore SIGTERM, write without end, fork without end or hide in
// sessions of their own do not outlive the node, and hold nobody up.
func TestHostilePrograms(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	n.Memory, n.Processes = 256<<20, 200
	do(t, p, plan.Add, n, given(
		vnet.Program{Cmd: shell("trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; while :; do sleep 1005; done' & while :; do sleep 1005; done")},
		vnet.Program{Cmd: []string{"yes", strings.Repeat("x", 1000)}},
	))
	isProblem(t, p, "")
	time.Sleep(time.Second)
	if info, err := os.Stat(p.logPath(n.Key())); err != nil || info.Size() > mostLog+(1<<20) {
		t.Errorf("the log has %v bytes, %v", info.Size(), err)
	}
	do(t, p, plan.Set, given(vnet.Program{Cmd: shell("bomb() { bomb | bomb & }; bomb; sleep 1006"), Restart: vnet.RestartAlways}))
	time.Sleep(time.Second)
	began := time.Now()
	do(t, p, plan.Delete, plan.Setup{Lease: n.Lease, Node: n.Node}, n)
	wait(t, "the end of all of it", func() bool { return exec.Command("pgrep", "-f", "^sleep 100[56]|^yes xxx").Run() != nil })
	if h.Group(n.Key()).Exists() {
		t.Error("the node's control group is left")
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// Programs and variables of the largest size, of characters that JSON writes
// longest, arrive, also in a node with the least memory for programs.
func TestLargestSetup(t *testing.T) {
	p, _ := newPart(t)
	n := node("n0", 1000)
	n.Memory = vnet.MinRunMemory
	if isStatic("/proc/self/exe") != nil {
		n.Memory *= 16 // the race detector's programs are several times as large
	}
	s := given(vnet.Program{Cmd: shell("printf '%s%s%s' \"$A\" \"$B\" \"$C\" | wc -c >/tmp/size; sleep 100"), Ready: vnet.Ready{Cmd: []string{"test", "-s", "/tmp/size"}}})
	s.Env = make(map[string]string)
	for _, name := range []string{"A", "B", "C"} {
		s.Env[name] = strings.Repeat("\x01", vnet.MaxText)
	}
	s.Run = append(s.Run, vnet.Program{Cmd: []string{"true", strings.Repeat("<", vnet.MaxSetup-3*vnet.MaxText-200)}})
	request := vnet.Request{Network: "net", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "n0", Setup: s.Setup}}}}
	check(t, request.Check())
	do(t, p, plan.Add, n, s)
	isProblem(t, p, "")
	if out, _ := run(t, p, n, "cat", "/tmp/size"); out != "12288" {
		t.Errorf("%q bytes arrived", out)
	}
}

// A setting that the kernel refuses is told.
func TestRefusedSettings(t *testing.T) {
	p, _ := newPart(t)
	n, s := node("n0", 1000), given()
	do(t, p, plan.Add, n)
	s.Sysctls = map[string]string{"net.ipv4.ip_default_ttl": "100000"}
	err := p.Do(t.Context(), plan.Step{Op: plan.Add, Item: s})
	if err == nil || !strings.Contains(err.Error(), `net.ipv4.ip_default_ttl cannot be "100000"`) {
		t.Errorf("error %v", err)
	}
}

// Every setting that a request may state can be set in a node of a tenant's, and
// stays there.
func TestSettings(t *testing.T) {
	p, h := newPart(t)
	n := node("n0", 1000)
	do(t, p, plan.Add, n)
	ns, err := h.Open(n.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	s := given()
	for _, name := range vnet.Sysctls("lo") {
		var has []byte
		err := kernel.In(ns, func() (err error) {
			has, err = os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
			return err
		})
		if errors.Is(err, os.ErrNotExist) {
			t.Logf("this kernel has no %s", name)
			continue
		}
		check(t, err)
		s.Sysctls = map[string]string{name: strings.TrimSpace(string(has))}
		check(t, p.setSysctls(s))
	}
	s.Sysctls = map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.conf.lo.forwarding": "0", "net.ipv4.conf.all.rp_filter": "2"}
	before, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/rp_filter")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.setSysctls(s); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, p, n, "sh", "-c", "cd /proc/sys/net/ipv4; cat ip_forward conf/lo/forwarding conf/all/rp_filter"); out != "1\n0\n2" {
		t.Errorf("the node has %q", out)
	}
	if after, _ := os.ReadFile("/proc/sys/net/ipv4/conf/all/rp_filter"); string(after) != string(before) {
		t.Errorf("the host had %q and has %q", before, after)
	}
}
