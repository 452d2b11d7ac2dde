package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// dataDir is where the lab's server keeps its store.
func (s *supervisor) dataDir() string {
	argv := s.get(server).argv
	return argv[slices.Index(argv, "--data")+1]
}

// keeping waits until every host says that it keeps another plan, for a reason.
func (s *supervisor) keeping(why string) {
	s.t.Helper()
	names := s.agentNames()
	eventually(s.t, 20*time.Second, func() error {
		r := s.sublet("hosts")
		if strings.Count(r.out, why) != len(names) || !strings.Contains(r.out, "sublet hosts adopt h1") {
			return fmt.Errorf("not all hosts say %q:\n%s%s", why, r.out, r.err)
		}
		return nil
	})
}

// following waits until no host keeps another plan, and all have theirs.
func (s *supervisor) following() {
	s.t.Helper()
	names := s.agentNames()
	eventually(s.t, 20*time.Second, func() error {
		r := s.sublet("hosts", "-o", "json")
		if strings.Contains(r.out, `"held"`) || strings.Count(r.out, `"agent": "up"`) != len(names) {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	s.settled()
}

// agentNames names the agents, also while there is no server.
func (s *supervisor) agentNames() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.processes {
		if name != server {
			names = append(names, name)
		}
	}
	return names
}

// waitsForAdoption checks that a lease is not built and says which host holds it up.
func (s *supervisor) waitsForAdoption(network, host string) {
	s.t.Helper()
	eventually(s.t, 5*time.Second, func() error {
		out := s.must("leases", network)
		if !strings.Contains(out, "adopt") || !strings.Contains(out, host) || strings.Contains(out, string(vnet.Running)) {
			return errors.New(out)
		}
		return nil
	})
}

// A server that is started on an empty store removes nothing: hosts keep what
// runs, agents that are started anew too, and say so. When the store is back
// all is as before; when the operator adopts the hosts they follow the new one.
func TestLostStore(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	s.settled()
	before := s.machine(hosts...)
	request := parseRequest(t, crashNetwork)
	s.admit(request)
	s.ready(idOf(request))
	s.asPlanned(hosts...)
	a, r, c := crashNodes(idOf(request))
	flows := []*flow{s.flow(a, c), s.flow(c, a), s.flow(r, a)}
	whole := s.numbers(hosts)

	s.kill(server)
	lost := s.dataDir() + ".lost"
	must(t, os.Rename(s.dataDir(), lost))
	s.start(server)
	s.keeping("another store")
	s.kill(agentOf("h1"))
	s.start(agentOf("h1"))
	s.admit(parseRequest(t, strings.Replace(crashNetwork, "network: crash", "network: next", 1)))
	time.Sleep(3 * time.Second) // an audit, and some calls for the server
	s.keeping("another store")
	if diff := difference(whole, s.numbers(hosts)); diff != "" {
		t.Errorf("an empty store changed something:\n%s", diff)
	}
	s.saidOnce("h2", "is not followed")
	s.waitsForAdoption("next", "h2")

	s.kill(server)
	must(t, errors.Join(os.RemoveAll(s.dataDir()+".empty"), os.Rename(s.dataDir(), s.dataDir()+".empty"), os.Rename(lost, s.dataDir())))
	s.start(server)
	s.following()
	endLossless(flows...)
	if diff := difference(whole, s.numbers(hosts)); diff != "" {
		t.Errorf("the store that is back changed something:\n%s", diff)
	}

	s.kill(server)
	must(t, errors.Join(os.RemoveAll(s.dataDir()), os.Rename(s.dataDir()+".empty", s.dataDir())))
	s.start(server)
	s.keeping("another store")
	s.must("hosts", "adopt", "h1")
	s.waitsForAdoption("next", "h2")
	s.must("hosts", "adopt", "--all")
	s.following()
	next := vnet.LeaseID{Tenant: "root", Network: "next"}
	s.ready(next)
	s.asPlanned(hosts...)
	s.must("exec", "next/a", "--", "ping", "-c", "1", "-W", "2", "c")
	s.must("down", "--all")
	s.asPlanned(hosts...)
	if diff := difference(before, s.machine(hosts...)); diff != "" {
		t.Errorf("the machine is not what it was:\n%s", diff)
	}
}

// saidOnce checks that an agent's log has a line once.
func (s *supervisor) saidOnce(host, words string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.run, "lab", agentOf(host)+".log"))
	must(s.t, err)
	if n := strings.Count(string(text), words); n != 1 {
		s.t.Errorf("the log of %s says %q %d times:\n%s", host, words, n, text)
	}
}

// A store that is put back from an older copy takes nothing away either, and
// brings back what it knows once the hosts are adopted.
func TestRestoredStore(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	old := strings.Replace(crashNetwork, "network: crash", "network: old", 1)
	s.up(old)
	s.kill(server)
	backup := s.dataDir() + ".backup"
	if out, err := exec.Command("cp", "-a", s.dataDir(), backup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.start(server)
	s.following()
	s.must("down", "old")
	request := parseRequest(t, crashNetwork)
	s.admit(request)
	s.ready(idOf(request))
	a, _, c := crashNodes(idOf(request))
	newer := s.flow(a, c)

	s.kill(server)
	must(t, errors.Join(os.RemoveAll(s.dataDir()), os.Rename(backup, s.dataDir())))
	s.start(server)
	s.keeping("older copy")
	if out := s.must("leases"); !strings.Contains(out, "old") || strings.Contains(out, "crash") {
		t.Errorf("leases of the older copy:\n%s", out)
	}
	time.Sleep(2 * time.Second)
	endLossless(newer)
	s.must("hosts", "adopt", "--all")
	s.following()
	s.ready(vnet.LeaseID{Tenant: "root", Network: "old"})
	s.asPlanned(hosts...)
	s.must("exec", "old/a", "--", "ping", "-c", "1", "-W", "2", "c")
	s.must("down", "--all")
	s.asPlanned(hosts...)
}

// A copy of the plan that is another host's, or altered, is not used: what runs
// is kept, and followed again when the server is back.
func TestWrongCopy(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	s.settled()
	request := parseRequest(t, crashNetwork)
	s.admit(request)
	s.ready(idOf(request))
	s.asPlanned(hosts...)
	a, _, c := crashNodes(idOf(request))
	running := s.flow(a, c)
	whole := s.numbers(hosts)
	s.kill(server)
	file := filepath.Join(s.run, "agent", "plan-h1.json")
	theirs, err := os.ReadFile(filepath.Join(s.run, "agent", "plan-h2.json"))
	must(t, err)
	own, err := os.ReadFile(file)
	must(t, err)
	altered := strings.ReplaceAll(string(own), "50000000", "90000000")
	for name, text := range map[string]string{"another host's": string(theirs), "altered": altered} {
		s.kill(agentOf("h1"))
		if text == string(own) {
			t.Fatalf("the copy is not %s", name)
		}
		must(t, os.WriteFile(file, []byte(text), 0o600))
		s.start(agentOf("h1"))
		time.Sleep(3 * time.Second)
		if diff := difference(whole, s.numbers(hosts)); diff != "" {
			t.Errorf("a copy that is %s changed something:\n%s", name, diff)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("a copy that is %s was replaced: %v", name, err)
		}
	}
	s.start(server)
	s.following()
	endLossless(running)
	if now, err := os.ReadFile(file); err != nil || !strings.Contains(string(now), `"host":"h1"`) || string(now) == altered {
		t.Errorf("no copy of the plan again: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
