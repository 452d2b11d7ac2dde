package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
)

// blindNetworks have on h1 one of everything that an agent looks at: nodes with
// limits, links within the host and tunnels, a router with OSPF, a switch and a
// hosting switch.
var blindNetworks = []string{
	`network: plain
tenant: root
nodes: [{name: a, host: h1, cpu: 0.5, memory: 64MiB}, {name: b, host: h1}, {name: c, host: h2}]
routers: [{name: r, host: h1, protocol: PROTOCOL}]
switches: [{name: s, host: h1}]
links:
  - {name: near, ends: [a, s], rate: 50Mbit}
  - {name: up, ends: [s, r]}
  - {name: far, ends: [r, c], min: 10Mbit, max: 100Mbit}
  - {name: by, ends: [b, s]}
`,
	`network: hosted
tenant: root
nodes: [{name: a, host: h1}, {name: c, host: h2}]
switches: [{name: s, kind: vxswitch, host: h1}]
links:
  - {name: near, ends: [a, s], rate: 50Mbit}
  - {name: far, ends: [s, c], min: 10Mbit, max: 100Mbit}
`,
}

// blind is a lab in which the agent of h1 sees less than there is.
type blind struct {
	*supervisor
	hosts []string
	flows []*flow
	built []string
}

// newBlind makes it; without FRR the router has static routes, too.
func newBlind(t *testing.T, protocol string) *blind {
	t.Helper()
	b := &blind{supervisor: newSupervisor(t, "demo")}
	b.hosts = b.hostNames()
	if !haveFRR() {
		protocol = "static"
	}
	for _, text := range blindNetworks {
		request := parseRequest(t, strings.ReplaceAll(text, "PROTOCOL", protocol))
		b.admit(request)
		b.ready(idOf(request))
		id := idOf(request)
		a, c := node{"h1", id, "a"}, node{"h2", id, "c"}
		b.flows = append(b.flows, b.flow(a, c), b.flow(c, a))
	}
	b.asPlanned(b.hosts...)
	b.built = b.numbers(b.hosts)
	return b
}

// unharmed fails the test if a packet was lost so far, or if anything was made
// anew.
func (b *blind) unharmed(after string) {
	b.t.Helper()
	sent := make(map[*flow]int64)
	for _, f := range b.flows {
		sent[f] = f.sent.Load()
	}
	time.Sleep(onTheWay)
	for _, f := range b.flows {
		if lost := f.missing(sent[f]); len(lost) > 0 {
			b.t.Errorf("%s: %s lost %d packets", after, f.name, len(lost))
		}
	}
	if diff := difference(b.built, b.numbers(b.hosts)); diff != "" {
		b.t.Errorf("%s: something was made anew:\n%s", after, diff)
	}
	if b.t.Failed() {
		b.t.FailNow()
	}
}

// startApart starts the killed agent of h1 in mounts of its own, which follow the
// machine's, after a shell has done something to them; wrap precedes the agent.
func (b *blind) startApart(fault string, wrap ...string) {
	b.t.Helper()
	name := agentOf("h1")
	cmd := b.command(name)
	argv := append([]string{"unshare", "--mount", "--propagation", "slave", "sh", "-ec", fault + "\nexec \"$@\"", "sh"}, wrap...)
	cmd.Path, cmd.Err = "/usr/bin/unshare", nil
	cmd.Args = append(argv, cmd.Args...)
	if err := inNamespace(b.get(name).namespace, cmd.Start); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	b.set(name, cmd.Process.Pid, ended)
}

// inside runs a shell in the mounts of the agent of h1.
func (b *blind) inside(command string) error {
	pid := b.get(agentOf("h1")).pid
	out, err := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", pid), "--", "sh", "-ec", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

// said waits until the log of h1's agent has a text behind a place; "": nothing
// has to be said.
func (b *blind) said(from int64, text string) error {
	log, err := os.ReadFile(b.logOf("h1"))
	if err != nil || strings.Contains(string(log[min(from, int64(len(log))):]), text) {
		return err
	}
	return fmt.Errorf("the agent does not say %q", text)
}

func (b *blind) logOf(host string) string {
	return filepath.Join(b.run, "lab", agentOf(host)+".log")
}

func (b *blind) logged() int64 {
	st, err := os.Stat(b.logOf("h1"))
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Size()
}

// alive fails the test if the agent has ended.
func (b *blind) alive(after string) {
	b.t.Helper()
	p := b.get(agentOf("h1"))
	if err := syscall.Kill(p.pid, 0); err != nil {
		b.t.Errorf("%s: the agent has ended", after)
	}
}

// well waits until the agent of h1 sees everything again, and has said so.
func (b *blind) well(after string) {
	b.t.Helper()
	eventually(b.t, 10*time.Second, func() error {
		var steps []string
		if err := b.api.Diff(b.t.Context(), "h1", &steps); err != nil || len(steps) > 0 {
			return errors.Join(fmt.Errorf("%s: not well again: %s", after, strings.Join(steps, "; ")), err)
		}
		if n := b.reported(); n > 0 {
			return fmt.Errorf("%s: the host reports %d errors", after, n)
		}
		return nil
	})
}

// reported is how many errors h1 reports.
func (b *blind) reported() int {
	b.t.Helper()
	hosts, err := b.api.Hosts(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range hosts {
		if h.Name == "h1" {
			return h.Errors
		}
	}
	return 0
}

// blindness is something that an agent cannot see.
type blindness struct {
	fault, lift string // commands in the agent's mounts
	says        string // in its log
	only        moment
}

// moment is when something can be tried: always, at the start of an agent, or
// while it runs.
type moment int

const (
	always moment = iota
	atStart
	whileRunning
)

// blindnesses are all places that an agent looks at: covered by an empty
// directory, moved away, made read-only, or without a program.
func (b *blind) blindnesses() map[string]blindness {
	all := make(map[string]blindness)
	cover := func(path, says string) {
		all[path+" covered"] = blindness{fault: "mount -t tmpfs none " + path, lift: "umount -l " + path, says: says}
	}
	for kind, says := range map[string]string{"netns": "vxlink", "userns": "vnode", "hosts": "names", "frr": "vxrouter", "vxswitch": "vxswitch", "bpf": "overlay"} {
		path := filepath.Join(b.run, kind, "h1")
		cover(path, says)
		all[path+" read-only"] = blindness{fault: fmt.Sprintf("mount --bind %[1]s %[1]s; mount -o remount,bind,ro %[1]s", path), lift: "umount -l " + path}
		if kind == "bpf" {
			continue // a mount cannot be moved away by its directory
		}
		only := whileRunning
		if kind == "netns" || kind == "frr" || kind == "vxswitch" { // of the others, new ones do
			only = always
		}
		all[path+" moved away"] = blindness{fault: "mv -T " + path + " " + path + ".away", lift: "mv -T " + path + ".away " + path, says: says, only: only}
	}
	all["run directory covered"] = blindness{fault: "mount -t tmpfs none " + b.run, lift: "umount -l " + b.run, says: "cannot be looked at", only: whileRunning}
	cover(filepath.Join(b.run, "bpf"), "overlay")
	all["bpf unmounted here alone"] = blindness{fault: "umount -l " + filepath.Join(b.run, "bpf", "h1"), says: "overlay", only: atStart}
	cover("/sys/fs/cgroup", "control groups cannot be looked at")
	cover("/sys", "control groups cannot be looked at")
	all["/sys read-only"] = blindness{fault: "mount -o remount,bind,ro /sys", lift: "mount -o remount,bind,rw /sys"}
	cover("/proc/sys", "vxrouter")
	cover("/etc", "")
	for _, program := range []string{"/usr/bin/nsenter", "/usr/bin/cat"} {
		all[program+" missing"] = blindness{fault: "mount --bind /dev/null " + program, lift: "umount -l " + program}
	}
	if haveFRR() {
		cover("/usr/lib/frr", "")
	}
	return all
}

// capabilities that an agent may lack.
var capabilities = map[string]string{
	"sys_admin": "observe", "bpf": "", "net_admin": "", "perfmon": "", "sys_ptrace": "", "dac_override": "", "dac_read_search": "",
	"sys_resource": "", "kill": "", "setuid": "", "setgid": "", "chown": "", "mknod": "", "net_raw": "", "sys_chroot": "", "ipc_lock": "",
}

// dwell is how long a fault lasts after the agent has said what it does not see: a pass at
// least. It looks again after ten times as long as a pass took, which is some tenths of a
// second here on a busy machine, so it has sayWithin for that.
const (
	dwell     = 625 * time.Millisecond
	sayWithin = 10 * time.Second
)

// An agent that cannot look at something, from its start or all at once, stops
// nobody's traffic, makes nothing anew, says what it does not see, and is well
// when it sees again.
func TestWhatCannotBeSeenStays(t *testing.T) {
	t.Parallel()
	b := newBlind(t, "ospf")
	one := []string{
		filepath.Join(b.run, "netns", "h1") + " covered", filepath.Join(b.run, "bpf", "h1") + " read-only",
		filepath.Join(b.run, "netns", "h1") + " moved away", "run directory covered", "bpf unmounted here alone",
		"/sys/fs/cgroup covered", "/usr/bin/nsenter missing", "sys_admin", "dac_override",
	}
	b.blindfold(func(name string) bool { return slices.Contains(one, name) })
}

// Everything that an agent may be kept from seeing, and every capability that it
// may lack.
func TestSoakWhatCannotBeSeenStays(t *testing.T) {
	t.Parallel()
	newBlind(t, "ospf").blindfold(func(string) bool { return true })
}

// blindfold keeps the agent from seeing what is chosen, one after another.
func (b *blind) blindfold(chosen func(name string) bool) {
	b.t.Helper()
	for name, c := range b.blindnesses() {
		if c.only == whileRunning || !chosen(name) {
			continue
		}
		b.kill(agentOf("h1"))
		from := b.logged()
		b.startApart(c.fault)
		b.during("at start: "+name, c, from)
	}
	for name, says := range capabilities {
		if !chosen(name) {
			continue
		}
		b.kill(agentOf("h1"))
		from := b.logged()
		drop := "-" + name
		b.startApart("", "setpriv", "--bounding-set", drop, "--inh-caps", drop)
		b.during("without cap_"+name, blindness{says: says}, from)
	}
	b.kill(agentOf("h1"))
	b.startApart("")
	b.well("apart")
	for name, c := range b.blindnesses() {
		if c.only == atStart || !chosen(name) {
			continue
		}
		from := b.logged()
		if err := b.inside(c.fault); err != nil {
			b.t.Fatal(err)
		}
		b.during("while running: "+name, c, from)
	}
	b.kill(agentOf("h1"))
	b.start(agentOf("h1"))
	b.well("at last")
	b.unharmed("at last")
	endLossless(b.flows...)
}

// during waits while a fault lasts, looks at what comes of it, and lifts it.
func (b *blind) during(name string, c blindness, from int64) {
	b.t.Helper()
	for rounds := 4; c.says != "" && rounds > 0; rounds-- { // a busy agent says it later
		began, watch := time.Now(), stall.Start()
		for time.Since(began) < sayWithin && b.said(from, c.says) != nil {
			time.Sleep(50 * time.Millisecond)
		}
		if busy := watch.Stop().Part() > 0.05; !busy || b.said(from, c.says) == nil {
			break
		}
	}
	time.Sleep(dwell)
	if err := b.said(from, c.says); err != nil {
		b.t.Errorf("%s: %v", name, err)
	}
	if c.fault != "" { // without a capability it may say so and end
		b.alive(name)
	}
	if c.lift != "" {
		if err := b.inside(c.lift); err != nil {
			b.t.Fatal(err)
		}
		b.well(name)
	}
	b.unharmed(name)
}
