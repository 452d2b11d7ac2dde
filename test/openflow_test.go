package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/report"
	"sublet/vnet"
)

// learning is the example of OpenFlow switches over two hosts.
//
//	h1:  a -10M- s1 -10M-  h2:  b
//	             |              |
//	             +---control--- ctl
func learning(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../examples/openflow/learning.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("name: a}", "name: a, host: h1}", "name: b}", "name: b, host: h2}", "name: ctl\n", "name: ctl\n    host: h2\n", "name: s1,", "name: s1, host: h1,").Replace(string(text))
}

// openFlowProcess is the process of the only OpenFlow switch of a host.
func (l *lab) openFlowProcess(host string) int {
	dirs := matches(filepath.Join(l.run, "openflow", host, "*"))
	if len(dirs) != 1 {
		return 0
	}
	for _, cwd := range matches("/proc/[0-9]*/cwd") {
		if to, err := os.Readlink(cwd); err == nil && to == dirs[0] {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(cwd)))
			return pid
		}
	}
	return 0
}

func (l *lab) crosses(from, to string) error {
	if r := l.sublet("exec", from, "--", "ping", "-c1", "-W1", to); r.code != 0 {
		return fmt.Errorf("%s does not reach %s: %s%s", from, to, r.out, r.err)
	}
	return nil
}

// isConfined says that no thread of a switch's process has rights but those for its
// ports, that its system calls are filtered, and that it has no files but its own.
func (l *lab) isConfined(pid int) {
	l.t.Helper()
	const netAdmin, netRaw, bpf = 1 << 12, 1 << 13, 1 << 39
	for _, thread := range matches(fmt.Sprintf("/proc/%d/task/*/status", pid)) {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		is := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			is[name] = strings.TrimSpace(value)
		}
		for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
			if has, err := strconv.ParseUint(is[set], 16, 64); err != nil || has&^(netAdmin|netRaw|bpf) != 0 {
				l.t.Errorf("%s of the switch: %s, %v", set, is[set], err)
			}
		}
		if is["NoNewPrivs"] != "1" || is["Seccomp"] != "2" {
			l.t.Errorf("system calls of the switch: %s %s", is["NoNewPrivs"], is["Seccomp"])
		}
	}
	if root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid)); err != nil || root == "/" {
		l.t.Errorf("files of the switch: %s, %v", root, err)
	}
}

// replaced does something to the process of the only switch of h1, and waits until
// another one forwards.
func (l *lab) replaced(signal unix.Signal) {
	l.t.Helper()
	pid := l.openFlowProcess("h1")
	if pid == 0 {
		l.t.Fatal("the switch has no process")
	}
	if err := unix.Kill(pid, signal); err != nil {
		l.t.Fatal(err)
	}
	eventually(l.t, 20*time.Second, func() error {
		if now := l.openFlowProcess("h1"); now == 0 || now == pid {
			return fmt.Errorf("process %d, which got %v", now, signal)
		}
		return l.crosses("learning/a", "b")
	})
}

// deafened says that a switch whose devices for frames without a flow are deleted has
// others soon, and forwards.
func (l *lab) deafened() {
	l.t.Helper()
	spaces := matches(filepath.Join(l.run, "netns", "h1", "*.s1.openflow"))
	if len(spaces) != 1 {
		l.t.Fatalf("namespaces of the switch: %v", spaces)
	}
	leading := func() string {
		out, err := exec.Command("nsenter", "--net="+spaces[0], "ip", "-oneline", "link").Output()
		if err != nil {
			l.t.Fatal(err)
		}
		return regexp.MustCompile(`\d+: up[0-9a-f]{12}`).FindString(string(out))
	}
	was := leading()
	_, device, _ := strings.Cut(was, ": ")
	if out, err := exec.Command("nsenter", "--net="+spaces[0], "ip", "link", "del", device).CombinedOutput(); err != nil {
		l.t.Fatalf("delete %q: %v: %s", was, err, out)
	}
	eventually(l.t, 20*time.Second, func() error {
		if now := leading(); now == "" || now == was {
			return fmt.Errorf("devices for frames without a flow: %q, %q before", now, was)
		}
		return l.crosses("learning/a", "b")
	})
}

// tracesAndQueues says that a packet of the learning example is explained, and that a
// port has the queues of the request.
func (l *lab) tracesAndQueues() {
	l.t.Helper()
	if out := l.must("flows", "trace", "learning/s1", "in_port=1,dl_dst=02:99:00:00:00:00"); !strings.Contains(out, " 0. priority=0, cookie 0x0\n    CONTROLLER:65535\n    -> goes to controllers\n") {
		l.t.Errorf("trace:\n%s", out)
	}
	if r := l.sublet("flows", "trace", "learning/s1", "in_port=1,speed=2"); r.code != 2 {
		l.t.Errorf("trace of no packet: %+v", r)
	}
	if r := l.sublet("flows", "trace", "learning/s1", "in_port=9,tcp"); r.code != 2 || !strings.Contains(r.err, "in_port 9: no such port") {
		l.t.Errorf("trace by a port that is not there: %+v", r)
	}
	spaces := matches(filepath.Join(l.run, "netns", "h1", "*.s1.openflow"))
	if len(spaces) != 1 {
		l.t.Fatalf("namespaces of the switch: %v", spaces)
	}
	out, err := exec.Command("nsenter", "--net="+spaces[0], "tc", "class", "show", "dev", "eth1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "class htb 1:3 parent 1:fffe") || !strings.Contains(string(out), "rate 4Mbit ceil 5Mbit") ||
		!strings.Contains(string(out), "rate 6Mbit ceil 10Mbit") {
		l.t.Errorf("queues of the port: %v\n%s", err, out)
	}
	out, err = exec.Command("nsenter", "--net="+spaces[0], "ip", "-details", "link", "show", "dev", "eth0").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "alias 10Mbit") {
		l.t.Errorf("speed of a port without queues: %v\n%s", err, out)
	}
}

// A tenant's controller makes a leased switch forward; without it nothing passes.
// The process lives between its two namespaces, is replaced when it is killed or
// stopped, and goes with the lease.
func TestOpenFlowSwitch(t *testing.T) {
	t.Parallel()
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) { learns(t, datapath) })
	}
}

func learns(t *testing.T, datapath string) {
	l := newLab(t, "demo")
	learning := func(t *testing.T) string {
		return strings.Replace(learning(t), "kind: openflow", "kind: openflow, queues: [{link: s1-b, queue: 2, min: 4Mbit, max: 5Mbit}], meter_hold: 50ms, datapath: "+datapath, 1)
	}
	l.up(learning(t))
	eventually(t, 20*time.Second, func() error { return l.crosses("learning/a", "b") })
	l.settled()
	if out := l.must("flows", "learning/s1"); !strings.Contains(out, ", priority=1,dl_dst=") || !strings.HasSuffix(out, " priority=0 actions=CONTROLLER:65535\n") {
		t.Errorf("flows:\n%s", out)
	}
	if list := decode[[]report.Flow](t, l.must("flows", "learning/s1", "-o", "json")); len(list) < 3 || list[0].Priority != 1 {
		t.Errorf("flows: %+v", list)
	}
	l.tracesAndQueues()
	if s := decode[report.OpenFlowStatus](t, l.must("flows", "status", "learning/s1", "-o", "json")); s.Datapath != datapath || len(s.Controllers) != 1 ||
		!s.Controllers[0].Connected || s.Entries.Used < 3 || s.PacketIns.Sent == 0 {
		t.Errorf("status: %+v", s)
	}
	v, _ := l.check("learning", "--duration", "1s")
	if v.Outcome != vnet.NotMeasured || len(v.Links) != 6 || len(v.Unreached) > 0 {
		t.Errorf("check: %+v", v)
	}
	pid := l.openFlowProcess("h1")
	if words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || strings.Contains(string(words), "learning") {
		t.Errorf("%s, %v shows whose it is", words, err)
	}
	l.isConfined(pid)
	if out := l.must("plan"); strings.Contains(out, "first=") != (datapath == vnet.DatapathKernel) {
		t.Errorf("what came to the process of a switch with datapath %s:\n%s", datapath, out)
	}
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
		l.replaced(signal)
	}
	if datapath == vnet.DatapathKernel {
		l.deafened()
	}
	l.must("down", "learning")
	eventually(t, 20*time.Second, func() error {
		if left := matches(filepath.Join(l.run, "openflow", "*", "*")); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})

	l.up(strings.NewReplacer("tcp:ctl:6653", "tcp:ctl:6654", "network: learning", "network: alone").Replace(learning(t)))
	if l.crosses("alone/a", "b") == nil {
		t.Error("a switch without a controller forwards")
	}
	if err := l.crosses("alone/a", "ctl"); err == nil {
		t.Error("a station of a port reaches the controller")
	}
	l.must("down", "alone")
	l.up(strings.NewReplacer("tcp:ctl:6653", "tcp:ctl:6654", "fail: secure", "fail: standalone", "network: learning", "network: alone").Replace(learning(t)))
	eventually(t, 10*time.Second, func() error { return l.crosses("alone/a", "b") })
	l.must("down", "alone")
}
