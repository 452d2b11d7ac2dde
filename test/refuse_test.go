package test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// quickly runs a command that has to end by itself, soon, with an exit code
// and a word of explanation.
func quickly(t *testing.T, cmd *exec.Cmd, code int, word string) {
	t.Helper()
	ended := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	r := runCommand(cmd)
	if r.code != code || !strings.Contains(r.err, word) {
		t.Errorf("%s: exit code %d, want %d with %q: %s%s", strings.Join(cmd.Args[1:], " "), r.code, code, word, r.out, r.err)
	}
}

// A second agent for a host, a second server in a run directory or on a store,
// a second lab in a run directory are refused, and hurt nobody.
func TestSecondOnesAreRefused(t *testing.T) {
	s := newSupervisor(t, "demo")
	s.up(pair("n", "rate: 10Mbit"))
	s.settled()
	before := s.numbers(s.hostNames())
	id := idOf(parseRequest(t, pair("n", "rate: 10Mbit")))
	id.Tenant = "root"
	flow := s.flow(node{"h1", id, "a"}, node{"h2", id, "b"})

	agent := s.command(agentOf("h1"))
	agent.Stdout, agent.Stderr = nil, nil
	quickly(t, agent, 1, "h1 has an agent already")
	second := s.command(server)
	second.Stdout, second.Stderr = nil, nil
	quickly(t, second, 1, "another server")
	elsewhere := filepath.Join(filepath.Dir(s.run), "other")
	quickly(t, exec.Command(program, "serve", "--run", elsewhere, "--data", filepath.Join(s.run, "lab", "data")), 1, "another server uses it")
	quickly(t, exec.Command(program, "lab", "up", "--run", s.run, "demo"), 1, "is up already")
	quickly(t, exec.Command(program, "lab", "up", "--run", elsewhere+"2", "--name", labName(s.run), "demo"), 1, "already")

	s.settled()
	if diff := difference(before, s.numbers(s.hostNames())); diff != "" {
		t.Errorf("it left something behind:\n%s", diff)
	}
	endLossless(flow)
}

// Ctrl-C during up: the command ends at once, and what it began is either
// given back or a lease like any other.
func TestInterruptedUp(t *testing.T) {
	s := newSupervisor(t, "demo")
	s.settled()
	hosts := s.hostNames()
	before := s.machine(hosts...)
	request := s.file("request.yaml", pair("n", "rate: 10Mbit"))
	other := s.file("other.yaml", pair("m", "rate: 10Mbit"))
	for round := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		cmd := exec.CommandContext(ctx, program, "--run", s.run, "up", request, other)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		signal := []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill}[round%3]
		_ = cmd.Process.Signal(signal)
		began := time.Now()
		_ = cmd.Wait()
		cancel()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("up ended %s after %s", took, signal)
		}
		for _, l := range s.leases() {
			if l.State != "ended" {
				s.must("down", l.Network)
			}
		}
		s.asPlanned(hosts...)
		if diff := difference(before, s.machine(hosts...)); diff != "" {
			t.Fatalf("%s in round %d left:\n%s", signal, round, diff)
		}
	}
}

// Things of others that look like ours survive a release and the lab's end.
func TestForeignThingsSurvive(t *testing.T) {
	s := newSupervisor(t, "demo")
	name := labName(s.run)
	home := s.hostNamespace("h1")
	foreign := "/run/netns/" + name + "-h9"
	group := "/sys/fs/cgroup/pids/sublet-" + name
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
	run("ip", "netns", "add", filepath.Base(foreign))
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", filepath.Base(foreign)).Run() })
	if err := os.MkdirAll(group, 0o755); err == nil {
		t.Cleanup(func() { _ = unix.Rmdir(group) })
	}
	sleeper := exec.Command("sleep", "60")
	sleeper.Dir = filepath.Dir(s.run)
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })

	s.in(home, "ip", "link", "add", "l0a", "type", "veth", "peer", "name", "l0b")
	s.in(home, "ip", "link", "set", "l0a", "alias", "sublet root/n a-b", "up")
	s.in(home, "ip", "link", "set", "l0b", "up")
	s.in(home, "ip", "link", "add", "l1b", "type", "vxlan", "id", "99", "dstport", "4790", "remote", "198.18.0.1", "dev", "to-h2")
	s.in(home, "tc", "qdisc", "add", "dev", "l0a", "root", "handle", "1:", "htb", "default", "1")
	s.in(home, "tc", "class", "add", "dev", "l0a", "parent", "1:", "classid", "1:10", "htb", "rate", "1mbit")
	s.in(home, "ip", "route", "add", "10.9.9.0/24", "dev", "l0b", "proto", "155")
	theirs := foreignOnly(kernelState("h1", home, true))

	s.up(pair("n", "rate: 10Mbit"))
	s.settled()
	s.must("down", "n")
	s.settled()
	if diff := difference(theirs, foreignOnly(kernelState("h1", home, true))); diff != "" {
		t.Errorf("a lease and its release changed what is not Sublet's:\n%s", diff)
	}
	s.must("lab", "down")
	if err := unix.Stat(foreign, &unix.Stat_t{}); err != nil {
		t.Errorf("somebody else's namespace is gone: %v", err)
	}
	if err := unix.Stat(group, &unix.Stat_t{}); err != nil {
		t.Errorf("somebody else's control group is gone: %v", err)
	}
	if err := sleeper.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("somebody else's process is gone: %v", err)
	}
}

// foreignOnly are the lines about devices that the lab does not have.
func foreignOnly(lines []string) []string {
	var theirs []string
	for _, line := range lines {
		if !strings.Contains(line, "to-h2") {
			theirs = append(theirs, line)
		}
	}
	return theirs
}

// An agent whose disk is full keeps what runs, makes what is new, and keeps
// its copy of the plan as soon as it can.
func TestAgentOnAFullDisk(t *testing.T) {
	s := newSupervisor(t, "demo")
	s.up(pair("old", "rate: 10Mbit"))
	s.settled()
	id := idOf(parseRequest(t, pair("old", "rate: 10Mbit")))
	id.Tenant = "root"
	flow := s.flow(node{"h1", id, "a"}, node{"h2", id, "b"})
	disk := filepath.Join(filepath.Dir(s.run), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=32k,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	hog := filepath.Join(disk, "hog")
	if err := os.WriteFile(hog, make([]byte, 64<<10), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	p := s.get(agentOf("h1"))
	p.argv = append(p.argv, "--data", disk)
	s.restart(agentOf("h1"), 0)

	s.up(pair("new", "rate: 10Mbit"))
	s.settled()
	s.must("exec", "new/a", "--", "ping", "-c", "1", "-W", "2", "b")
	s.must("down", "new")
	s.settled()
	endLossless(flow)
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(disk, "plan-h1.json"))
		if err == nil && !strings.Contains(string(text), "root.old.a") {
			err = errors.New("the copy is of another plan: " + string(text))
		}
		return err
	})
	whole := s.numbers([]string{"h1"})
	s.kill(server)
	s.restart(agentOf("h1"), 0)
	time.Sleep(3 * time.Second) // an audit
	if diff := difference(whole, s.numbers([]string{"h1"})); diff != "" {
		t.Errorf("an agent started again from its copy changed something:\n%s", diff)
	}
}
