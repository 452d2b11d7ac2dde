package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
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
	t.Parallel()
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
	quickly(t, exec.Command(program, "lab", "up", "--run", s.run, "demo"), 5, "is up already")
	quickly(t, exec.Command(program, "lab", "up", "--run", elsewhere+"2", "--name", labName(s.run), "demo"), 5, "already")

	s.settled()
	if diff := difference(before, s.numbers(s.hostNames())); diff != "" {
		t.Errorf("it left something behind:\n%s", diff)
	}
	endLossless(flow)
}

// Ctrl-C during up: the command ends at once, and what it began is either
// given back or a lease like any other.
func TestInterruptedUp(t *testing.T) {
	t.Parallel()
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
		watch := stall.Start()
		_ = cmd.Wait()
		cancel()
		watch.InTime(t, 8*time.Second, fmt.Sprintf("up after %s", signal))
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
