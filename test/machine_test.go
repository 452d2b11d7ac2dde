package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/lab/guest"
	"sublet/vnet"
)

// A machine beside a node: it boots from the operator's image, takes its network
// and what it is given out of its seed, is reached over its link, is attached to,
// lives on when its host's agent is killed, is started again when it ends, and goes
// with its lease.
//
//	m1 (QEMU) ---- p1
func TestMachines(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	images := t.TempDir()
	guest.Disk(t, filepath.Join(images, "small.raw"))
	l := newSupervisor(t, "demo", "--images", images)
	request := l.file("machine.yaml", machineRequest)
	if r := l.sublet("up", request); r.code != 0 {
		t.Fatalf("up: %s%s\n%q", r.out, r.err, l.sublet("logs", "lan/m1").out)
	}
	if r := l.sublet("exec", "lan/p1", "--", "ping", "-c", "2", "-W", "2", "m1"); r.code != 0 {
		t.Errorf("m1 does not answer: %s%s", r.out, r.err)
	}
	if r := l.sublet("exec", "lan/m1", "--", "true"); r.code == 0 || !strings.Contains(r.err, "sublet attach") {
		t.Errorf("a command in a machine: exit code %d, %s", r.code, r.err)
	}
	if out := l.types("ping -c 1 -w 3 10.0.0.2 >/dev/null && echo reached"); !strings.Contains(out, "\nreached") {
		t.Errorf("the machine does not reach p1: %q", out)
	}
	if out := l.types("cat /seed/user-data /seed/meta-data"); !strings.Contains(out, "grüße") || !strings.Contains(out, "sublet-file") || !strings.Contains(out, `"m1"`) {
		t.Errorf("its seed: %s", out)
	}
	l.types("mark=kept")
	qemu := l.qemu()
	l.isHeld(qemu)
	l.escapesAs(qemu)
	l.restart(agentOf("h1"), 0)
	time.Sleep(3 * time.Second) // an audit
	if out := l.types("echo $mark-on"); !strings.Contains(out, "kept-on") || l.qemu() != qemu {
		t.Errorf("after its agent was killed the machine is another one: %q", out)
	}
	if err := syscall.Kill(qemu, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if now := l.qemu(); now != 0 && now != qemu {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the machine was not started again")
		}
	}
	l.must("down", "lan")
	for end := time.Now().Add(5 * time.Second); l.qemu() != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the machine lives on")
		}
	}
}

const machineRequest = `network: lan
nodes:
  - name: m1
    kind: vm
    image: small.raw
    memory: 256MiB
    disk: 64MiB
    env: {GREETING: "grüße"}
    files: [{path: /etc/sublet-file, text: "from the request\n"}]
    run: [[touch, /ran]]
    host: h1
  - {name: p1, host: h2}
links:
  - {name: wire, ends: [m1, p1], min: 20Mbit, max: 50Mbit}
`

// types writes a line to the console of lan/m1 and returns what is shown until it
// has ended, with what was shown before.
func (l *lab) types(line string) string {
	l.t.Helper()
	return l.typesAt("lan/m1", line)
}

// typesAt writes it to another machine's.
func (l *lab) typesAt(node, line string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--run", l.run, "attach", node)
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	end := fmt.Sprintf("end-%d", time.Now().UnixNano())
	fmt.Fprintf(in, "%s; echo %s\n", line, end)
	var text strings.Builder
	for b := make([]byte, 4096); !strings.Contains(text.String(), end); {
		n, err := out.Read(b)
		text.Write(b[:n])
		if err != nil {
			l.t.Fatalf("%s at the console: %v: %q", line, err, text.String())
		}
	}
	in.Close()
	_ = cmd.Wait()
	return text.String()
}

// qemu is the number of the emulator of lan/m1; 0: none runs.
func (l *lab) qemu() int {
	l.t.Helper()
	for _, pid := range l.emulators("h1") {
		return pid
	}
	return 0
}

// emulators are those of lan/m1 on a host.
func (l *lab) emulators(host vnet.HostID) (pids []int) {
	l.t.Helper()
	group := filepath.Join(product.Cgroup(l.run), string(host), "root.lan.m1") + "/"
	names, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, name := range names {
		text, _ := os.ReadFile(name) // of one that has ended: none
		comm, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "comm"))
		if strings.Contains(string(text), group) && strings.HasPrefix(string(comm), "qemu-system") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// isHeld checks that an emulator has no rights on the host: whoever breaks out of
// it has what its process has.
func (l *lab) isHeld(pid int) {
	l.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		l.t.Fatal(err)
	}
	const filtered = "2"
	for field, want := range map[string]string{
		"Uid": "65534\t65534\t65534\t65534", "Gid": "65534\t65534\t65534\t65534", "Groups": "", "NoNewPrivs": "1", "Seccomp": filtered,
		"CapPrm": none, "CapEff": none, "CapInh": none, "CapBnd": none, "CapAmb": none,
	} {
		_, rest, _ := strings.Cut(string(status), "\n"+field+":\t")
		if got, _, _ := strings.Cut(rest, "\n"); strings.TrimSpace(got) != want {
			l.t.Errorf("the emulator has %s %s, not %q", field, got, want)
		}
	}
	for _, dir := range []string{"", "etc", "dev"} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/%s", pid, dir))
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			at := filepath.Join("/", dir, e.Name())
			if !slices.Contains(emulatorSees, at) && !strings.HasPrefix(l.run+"/", at+"/") {
				l.t.Errorf("the emulator sees %s", at)
			}
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); slices.Contains(strings.Split(f[5], ","), "rw") && !slices.Contains(emulatorMounts, f[4]) {
			l.t.Errorf("the emulator has %s mounted to write", f[4])
		}
	}
	for _, kind := range []string{"mnt", "pid", "ipc", "uts", "net", "user"} {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		ours, _ := os.Readlink("/proc/self/ns/" + kind)
		if err != nil || theirs == ours {
			l.t.Errorf("the emulator's %s namespace is this one, or %v", kind, err)
		}
	}
}

const none = "0000000000000000"

// emulatorSees are files in the root directory of an emulator, and emulatorMounts what
// of it is not read only: file systems of the node's own, whose files are root's, and
// its shared memory.
var (
	emulatorSees = []string{
		"/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/tmp", "/usr", "/var", "/etc/hosts", "/etc/ld.so.cache",
		"/dev/fd", "/dev/full", "/dev/kvm", "/dev/net", "/dev/null", "/dev/ptmx", "/dev/pts", "/dev/random", "/dev/shm", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/urandom", "/dev/zero",
	}
	emulatorMounts = []string{"/dev", "/dev/pts", "/dev/shm", "/proc", "/proc/sys/net"}
)

// escapesAs tries what nodes are tried with in the place of an emulator: in its
// namespaces and its root directory, as its user without rights, and with the system
// calls that its own filter would refuse besides.
func (l *lab) escapesAs(pid int) {
	l.t.Helper()
	at := "/usr/local/bin/" + labName(l.run) + "-attack" // of the host's files it sees /usr
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.Remove(at) })
	if err := copyFile(self, at); err != nil {
		l.t.Fatal(err)
	}
	v := l.victims()
	r := runCommand(exec.CommandContext(l.t.Context(), "nsenter", "--target", strconv.Itoa(pid), "--all", "--root", "--wd", "--",
		"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
		at, insideCommand, "escape", v.run, v.host, v.secret, v.public, v.abstract))
	could := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.out), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "make a socket of ") // which the filter refuses; isHeld has seen that, and nsenter takes it on for nobody
	})
	if r.code != 0 || len(could) > 0 {
		l.t.Errorf("exit code %d %s, whoever breaks out of the emulation could:\n%s", r.code, r.err, strings.Join(could, "\n"))
	}
}
