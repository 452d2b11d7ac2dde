package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/vnet"
)

// A machine goes to another host while it runs: what its shell knows and what is on its
// disk is there afterwards, it answers all the time but for a moment, that is shorter than
// when it is stopped for the copy, and at no time there are two of it. Whoever is killed
// meanwhile, it goes on at one host with its memory.
//
//	m1 (QEMU; h1 or h3) ---- p1 (h2)
func TestSoakMachinesMoveLive(t *testing.T) {
	t.Parallel()
	s, id := machineThatMoves(t, "live")
	s.types("mark=kept; dd if=/dev/urandom of=/dev/vda bs=1M seek=50 count=8; dd if=/dev/vda bs=1M skip=50 count=8 | md5sum | cut -c1-32 > /sum; sync")
	looks := 0
	holds := func(after string) {
		t.Helper()
		looks++
		sum := fmt.Sprintf("dd if=/dev/vda bs=1M skip=50 count=8 iflag=direct 2>/dev/null | md5sum | cut -c1-32 | cmp - /sum && echo $mark-%d", looks)
		if out := s.types(sum); !strings.Contains(out, fmt.Sprintf("kept-%d\r\n", looks)) {
			t.Errorf("after %s it has not its memory and its disk: %q", after, out)
		}
	}
	holds("nothing")
	stood := map[string]time.Duration{}
	for _, how := range []string{"live", "cold"} {
		s.must("apply", s.file("lan.yaml", lanThatMoves(how)))
		answers := s.pings("lan/p1", "m1")
		was, is := s.leaves(id, "m1")
		stood[how] = answers()
		t.Logf("%s: it went from %s to %s and stood still for %s", how, was, is, stood[how])
		holds("a move that is " + how)
	}
	if stood["live"] > stood["cold"] {
		t.Errorf("it stood still for %s, and for %s when it was stopped", stood["live"], stood["cold"])
	}
	s.must("apply", s.file("lan.yaml", lanThatMoves("live")))
	for _, killed := range []string{"server", "from", "to", "emulator"} {
		answers := s.pings("lan/p1", "m1")
		from := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"]
		s.must("drain", string(from))
		var to vnet.HostID
		eventually(t, patience, func() error {
			l := got(s.api.Lease(t.Context(), id))(t)
			if to = l.Mapping.Nodes["m1"]; to == from || len(s.emulators(to)) == 0 {
				return errors.New("it does not begin to move")
			}
			return nil
		})
		switch killed {
		case "server":
			s.restart("server", 0)
		case "from":
			s.restart(agentOf(string(from)), 0)
		case "to":
			s.restart(agentOf(string(to)), 0)
		default:
			for _, pid := range s.emulators(to) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		s.moved(id)
		s.must("undrain", string(from))
		t.Logf("%s killed: it stood still for %s, and is on %s", killed, answers(), got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"])
		holds("the end of " + killed)
	}
	for _, name := range []string{"memory*", "left"} {
		if left := matches(filepath.Join(s.run, "agent", "kept", "*", ".*", name)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	s.must("down", "lan")
	s.settled()
}

// A machine that may move live goes to a host with another version of QEMU all the same:
// stopped, with its disk and memory, and an event says why.
func TestSoakMachineStandsStillForAnotherQEMU(t *testing.T) {
	t.Parallel()
	s, id := machineThatMoves(t, "live")
	other := map[vnet.HostID]string{"h1": "h3", "h3": "h1"}[got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"]]
	s.hasOtherQEMU(other)
	s.types("mark=kept")
	from := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"]
	s.must("drain", string(from))
	eventually(t, 3*patience, func() error { // a machine in software is slow beside other work
		l := got(s.api.Lease(t.Context(), id))(t)
		if l.Move != nil || l.State != vnet.Running {
			return fmt.Errorf("%s: %s; its log ends with %s", l.State, l.Message, s.sublet("logs", "lan/m1").out)
		}
		return nil
	})
	if is := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"]; string(is) != other {
		t.Errorf("it is on %s, want %s", is, other)
	}
	s.machineAnswers()
	if out := s.types("echo $mark-on"); !strings.Contains(out, "kept-on\r\n") {
		t.Errorf("its memory did not come along: %q", out)
	}
	if out := s.must("events", "lan", "-o", "json"); !strings.Contains(out, "stands still to move") || !strings.Contains(out, "QEMU of another day") {
		t.Errorf("no event says why it stood still:\n%s", out)
	}
	s.must("down", "lan")
	s.settled()
}

// hasOtherQEMU has a host's agent find a QEMU that says it is of another version.
func (s *supervisor) hasOtherQEMU(host string) {
	s.t.Helper()
	dir := s.t.TempDir()
	const qemu = "qemu-system-x86_64"
	real, err := exec.LookPath(qemu)
	need(s.t, err)
	need(s.t, os.WriteFile(filepath.Join(dir, qemu), []byte("#!/bin/sh\ncase $1 in --version) echo QEMU of another day;; *) exec "+real+" \"$@\";; esac\n"), 0o755))
	name := agentOf(host)
	s.kill(name)
	p := s.get(name)
	p.env = slices.DeleteFunc(slices.Clone(p.env), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	p.env = append(p.env, "PATH="+dir+":"+os.Getenv("PATH"))
	s.start(name)
	s.asPlanned(host)
}

// pings asks a node from another one a hundred times a second; what it returns ends that,
// waits for an answer, and says for how long there was none. Two answers to a question are
// a fault.
func (s *supervisor) pings(from, to string) (longest func() time.Duration) {
	s.t.Helper()
	over, last := make(chan string, 1), atomic.Bool{}
	first := s.must("exec", from, "--", "ping", "-D", "-w", "10", "-c", "1", to)
	go func() {
		var all strings.Builder
		all.WriteString(first)
		for !last.Load() {
			all.WriteString(s.sublet("exec", from, "--", "ping", "-D", "-i", "0.01", "-w", "2", to).out)
		}
		all.WriteString(s.sublet("exec", from, "--", "ping", "-D", "-i", "0.01", "-w", "10", "-c", "20", to).out)
		over <- all.String()
		close(over)
	}()
	s.t.Cleanup(func() { // nothing of it is left when the test ends early
		last.Store(true)
		for range over {
		}
	})
	return func() time.Duration {
		s.t.Helper()
		last.Store(true)
		said := <-over
		if strings.Contains(said, "DUP!") {
			s.t.Error("there were two of " + to)
		}
		var before, most float64
		for _, m := range answered.FindAllStringSubmatch(said, -1) {
			at, _ := strconv.ParseFloat(m[1], 64)
			if before != 0 {
				most = max(most, at-before)
			}
			before = at
		}
		if before == 0 {
			s.t.Errorf("%s never answered: %s", to, said)
		}
		return time.Duration(most * float64(time.Second)).Round(time.Millisecond)
	}
}

// answered is a line of ping(8) with the time of an answer.
var answered = regexp.MustCompile(`(?m)^\[([0-9.]+)\] \d+ bytes from`)
