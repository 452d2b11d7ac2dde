package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/vnet"
)

// TestSoakSabotagesAreNamed: what is done to a link behind everybody's back is told,
// with what shows of it: a wire that loses a part of the frames, a program that takes
// them before Sublet's does, a host whose agent gets no processor, a wire that takes
// longer than stated.
//
//	h1:  a ==== full, idle ==== b  :h2
func TestSoakSabotagesAreNamed(t *testing.T) {
	t.Parallel()
	s := newSaboteur(t)
	s.fill("5201")
	s.tested()
	s.broken("a lossy wire", s.lossyWire)
	s.broken("a program before ours", s.foreignProgram)
	s.starved()
	delayedWire(t)
}

// delayedWire makes a wire slower than its substrate says while nobody sends: the wire and
// the bound that this breaks are told and are in the proof, and so is that it is over.
func delayedWire(t *testing.T) {
	t.Helper()
	l := newLab(t, strings.Replace(slowBackbone, "200Mbit", "200Mbit, latency: 1ms", 1), "--delays")
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{name: full, ends: [a, b], rate: 5Mbit, latency: 15ms}]
`)
	s := &saboteur{lab: l}
	told := func(wire, promise string) func() error {
		of := regexp.MustCompile(`backbone +` + wire + ` `)
		and := regexp.MustCompile(`full a to b latency +` + promise)
		return func() error {
			if all := s.must("events"); !of.MatchString(all) || !and.MatchString(all) {
				return fmt.Errorf("the wire is %s and the promise %s: not told in\n%s", wire, promise, all)
			}
			return nil
		}
	}
	eventually(t, 2*time.Minute, func() error {
		if p := s.proof("full"); p.Latency == nil || p.Latency.Tested < 3 || p.Latency.Broken > 0 {
			return fmt.Errorf("before: %+v", p.Latency)
		}
		return nil
	})
	const named = "link backbone takes longer than the substrate says"
	l.delayWires(40 * time.Millisecond)
	began := time.Now()
	eventually(t, 30*time.Second, told("slow", "broken .*"+named))
	t.Logf("a delayed wire and the bound that it broke were told after %s", time.Since(began).Round(100*time.Millisecond))
	if p := s.proof("full"); p.Latency == nil || p.Latency.Broken == 0 || !slices.ContainsFunc(p.Latency.Runs, func(r vnet.ProofRun) bool { return strings.Contains(r.Cause, named) }) {
		t.Errorf("the proof of a delayed wire: %+v", p.Latency)
	}
	l.delayWires(time.Millisecond)
	eventually(t, time.Minute, told("as stated", "kept"))
}

// delayWires has the process that delays a lab's wires begin anew with another delay.
func (l *lab) delayWires(delay time.Duration) {
	l.t.Helper()
	path := filepath.Join(l.run, "lab", "wires.json")
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	changed := regexp.MustCompile(`"delay_ns": *\d+`).ReplaceAll(text, fmt.Appendf(nil, `"delay_ns":%d`, delay.Nanoseconds()))
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		l.t.Fatal(err)
	}
	for _, file := range matches("/proc/[0-9]*/cmdline") {
		command, _ := os.ReadFile(file)
		argv := strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")
		if n := len(argv); n > 2 && argv[n-2] == path && argv[n-1] == "carry" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				l.t.Fatal(err)
			}
			return
		}
	}
	l.t.Fatalf("no process delays the wires of %s", path)
}

// saboteur does harm to a lab, in which a network n has a link to fill and an idle one.
type saboteur struct{ *lab }

func newSaboteur(t *testing.T) *saboteur {
	t.Helper()
	l := newLab(t, slowBackbone)
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h2}]
links:
  - {name: full, ends: [a, b], rate: 20Mbit}
  - {name: idle, ends: [a, c], rate: 20Mbit}
`)
	return &saboteur{lab: l}
}

// fill sends more than full's rate from now on.
func (s *saboteur) fill(port string) {
	s.t.Helper()
	s.must("exec", "n/b", "--", "iperf3", "-s", "-D", "-p", port)
	load := exec.Command(program, "--run", s.run, "exec", "n/a", "--", "iperf3", "-c", "b", "-p", port, "-u", "-b", "30M", "-t", "900")
	if err := load.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = load.Process.Kill(); _ = load.Wait() })
}

// proof is what was found of a link from a.
func (s *saboteur) proof(name string) (of vnet.Proof) {
	s.t.Helper()
	var list []vnet.Proof
	if err := json.Unmarshal([]byte(s.must("proof", "n", "-o", "json")), &list); err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(p vnet.Proof) bool { return p.Link == name && p.From == "a" })
	if i < 0 {
		s.t.Fatalf("no proof of %s in %+v", name, list)
	}
	return list[i]
}

// tested waits until the link is found to be kept.
func (s *saboteur) tested() {
	s.t.Helper()
	eventually(s.t, 3*time.Minute, func() error {
		if p := s.proof("full"); p.Tested < 3 || p.Broken > 0 {
			return fmt.Errorf("tested for %d s, broken in %d", p.Tested, p.Broken)
		}
		return nil
	})
}

// lost is what is told of a link whose frames do not arrive.
var lost = regexp.MustCompile(`full a to b  broken .*(frames get lost on the way|nothing arrives at the far end)`)

// broken does harm, waits until the broken promise is told with what shows of it, mends
// what was done, and waits until it is kept again.
func (s *saboteur) broken(what string, harm func() (mend func())) {
	s.t.Helper()
	told := func() int { return len(lost.FindAllString(s.must("events", "n"), -1)) }
	before := told()
	mend := harm()
	began := time.Now()
	eventually(s.t, 30*time.Second, func() error {
		if told() == before {
			return fmt.Errorf("%s is not told:\n%s", what, s.must("events", "n"))
		}
		return nil
	})
	s.t.Logf("%s was told after %s", what, time.Since(began).Round(100*time.Millisecond))
	mend()
	s.restored(2 * time.Minute)
}

// restored waits until each broken promise of full is kept again.
func (s *saboteur) restored(most time.Duration) {
	s.t.Helper()
	eventually(s.t, most, func() error {
		out := s.must("events", "n")
		if broken, kept := strings.Count(out, "full a to b  broken"), strings.Count(out, "full a to b  kept"); broken != kept {
			return fmt.Errorf("broken %d times and kept again %d times:\n%s", broken, kept, out)
		}
		return nil
	})
}

// lossyWire loses a quarter of what comes from h1, on the wire.
func (s *saboteur) lossyWire() (mend func()) {
	return s.intrude(s.wires(), "w0a", asm.Instructions{
		asm.FnGetPrandomU32.Call(),
		asm.And.Imm(asm.R0, 3),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R0, -1), // TCX_NEXT
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("drop"), // TCX_DROP
		asm.Return(),
	})
}

// foreignProgram drops the packets that arrive at h2 before Sublet's program sees them.
// What is no packet passes, so that hosts still know each other.
func (s *saboteur) foreignProgram() (mend func()) {
	const protocol, ipv4 = 16, 0x0008 // of __sk_buff, as it is on the wire
	return s.intrude(s.host("h2"), "to-h1", asm.Instructions{
		asm.LoadMem(asm.R1, asm.R1, protocol, asm.Word),
		asm.Mov.Imm(asm.R0, -1),
		asm.JNE.Imm(asm.R1, ipv4, "pass"),
		asm.Mov.Imm(asm.R0, 2),
		asm.Return().WithSymbol("pass"),
	})
}

// wires is the namespace of the lab's wires.
func (l *lab) wires() string { return "/run/netns/" + labName(l.run) + ".wires" }

// intrude puts a program before all others where frames come in by a device.
func (s *saboteur) intrude(namespace, device string, does asm.Instructions) (remove func()) {
	s.t.Helper()
	foreign, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "foreign", Type: ebpf.SchedCLS, License: "GPL", Instructions: does})
	if err != nil {
		s.t.Fatal(err)
	}
	defer foreign.Close()
	var attached link.Link
	err = inNamespace(namespace, func() (err error) {
		port, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		attached, err = link.AttachTCX(link.TCXOptions{Interface: port.Index, Program: foreign, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { attached.Close() })
	return func() {
		if err := attached.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// starved stops the agent of h2 for some seconds: nothing is said to be broken, and why
// nothing was tested is said.
func (s *saboteur) starved() {
	agent := s.agent("h2")
	silent := func(since time.Time) bool {
		return slices.ContainsFunc(s.proof("idle").Runs, func(r vnet.ProofRun) bool {
			over := r.From.Add(time.Duration(r.Minutes) * time.Minute)
			return over.After(since) && r.Outcome == vnet.NotTested && strings.HasPrefix(r.Cause, "a host")
		})
	}
	eventually(s.t, 2*time.Minute, func() error { // of another minute than the beginning
		if silent(time.Now()) {
			return fmt.Errorf("a host is silent that nobody has stopped: %+v", s.proof("idle").Runs)
		}
		return nil
	})
	stopped := time.Now()
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	wake := func() { _ = syscall.Kill(agent, syscall.SIGCONT) }
	s.t.Cleanup(wake)
	time.Sleep(4 * time.Second)
	wake()
	eventually(s.t, 90*time.Second, func() error {
		if !silent(stopped) {
			return fmt.Errorf("runs of an idle link: %+v", s.proof("idle").Runs)
		}
		return nil
	})
	if out := s.must("events", "n"); strings.Contains(out, "idle a to c  broken") {
		s.t.Errorf("a host that does not tell its counters is taken for a broken link:\n%s", out)
	}
}

// agent is the process of a host's agent.
func (s *saboteur) agent(host string) (pid int) {
	s.t.Helper()
	for _, file := range matches("/proc/[0-9]*/cmdline") {
		text, _ := os.ReadFile(file)
		argv := strings.Split(string(text), "\x00")
		if slices.Contains(argv, "agent") && slices.Contains(argv, host) && strings.Contains(string(text), s.run) {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	if pid == 0 {
		s.t.Fatalf("no agent of %s runs", host)
	}
	return pid
}
