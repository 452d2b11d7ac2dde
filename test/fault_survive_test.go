package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	product "sublet/lab"
	"sublet/vnet"
)

// ends of crashNetwork.
func crashNodes(id vnet.LeaseID) (a, r, c node) {
	return node{"h1", id, "a"}, node{"h1", id, "r"}, node{"h2", id, "c"}
}

// With the server and its store killed networks run on. Agents that are killed
// too come back and leave everything as it is; after a reboot they build it
// again from their copies. The server comes back to what it left.
func TestServerDown(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	hosts := s.hostNames()
	request := parseRequest(t, crashNetwork)
	id := idOf(request)
	s.settled()
	before := s.machine(hosts...)
	s.admit(request)
	s.ready(id)
	s.asPlanned(hosts...)
	a, r, c := crashNodes(id)
	flows := []*flow{s.flow(a, c), s.flow(c, a), s.flow(r, a)}
	address := s.addressOf("h1", id, "c")
	whole := s.numbers(hosts)

	s.kill(server)
	if result := s.sublet("leases"); result.code != 1 {
		t.Errorf("leases without a server: exit code %d, %s%s", result.code, result.out, result.err)
	}
	for _, h := range hosts {
		s.kill(agentOf(h))
		s.start(agentOf(h))
	}
	time.Sleep(5 * time.Second) // two audits, and some calls for the server
	if diff := difference(whole, s.numbers(hosts)); diff != "" {
		t.Errorf("restarted agents changed something:\n%s", diff)
	}
	endLossless(flows...)

	built := append(s.built("h1"), s.built("h2")...)
	for _, h := range hosts {
		s.kill(agentOf(h))
		s.reboot(h)
		s.start(agentOf(h))
	}
	var diff string
	began := time.Now()
	for diff = "?"; diff != "" && time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		diff = difference(built, append(s.built("h1"), s.built("h2")...))
	}
	if diff != "" {
		t.Errorf("not built again from the copies:\n%s", diff)
	}
	t.Logf("built again from the copies in %s", time.Since(began).Round(time.Millisecond))
	if out, err := s.nodeCommand("h1", id, "a", "ping", "-c", "2", "-W", "2", address).CombinedOutput(); err != nil {
		t.Errorf("a does not reach c: %v\n%s", err, out)
	}

	s.start(server)
	s.ready(id)
	s.asPlanned(hosts...)
	s.must("down", "--all")
	s.asPlanned(hosts...)
	if diff := difference(before, s.machine(hosts...)); diff != "" {
		t.Errorf("the machine is not what it was:\n%s", diff)
	}
}

// numbers lists devices with their numbers: any that is made again gets
// another. Processes do not count: agents' helpers go and come with them.
func (s *supervisor) numbers(hosts []string) []string {
	s.t.Helper()
	seen := slices.DeleteFunc(s.machine(hosts...), func(line string) bool { return strings.Contains(line, " processes ") })
	for _, h := range hosts {
		for _, path := range matches(filepath.Join(s.run, "netns", h, "[^.]*")) {
			seen = append(seen, kernelState(path, path, true)...)
		}
	}
	return seen
}

// reboot takes away from a host what a reboot takes: everything but the disk.
func (s *supervisor) reboot(host string) {
	s.t.Helper()
	for _, kind := range []string{"netns", "userns", "hosts", "frr", "tmp"} {
		for _, path := range matches(filepath.Join(s.run, kind, host, "*")) {
			_ = unix.Unmount(path, unix.MNT_DETACH)
			if err := os.RemoveAll(path); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	for _, mount := range matches("/sys/fs/cgroup", "/sys/fs/cgroup/*") {
		for _, dir := range matches(filepath.Join(mount, product.Cgroup(s.run), host, "*")) {
			_ = unix.Rmdir(dir) // refused for files
		}
	}
	peer := map[string]string{"h1": "h2", "h2": "h1"}[host]
	s.inHost(host, "tc", "qdisc", "del", "dev", "to-"+peer, "root")
}

// A released node's namespace is gone, though nobody sees it any more: nothing
// may hold it, such as a thread of a helper that lives on for other nodes.
func TestNamespacesEndWithTheirNodes(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "one")
	const network = "network: %s\nnodes: [{name: a}, {name: b}]\nlinks: [{ends: [a, b]}]\n"
	s.up(fmt.Sprintf(network, "first"))
	s.up(fmt.Sprintf(network, "second"))
	type file struct{ device, number uint64 }
	namespaces := make(map[file]string)
	for _, path := range matches(filepath.Join(s.run, "netns", "h1", "root.first*")) {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		namespaces[file{st.Dev, st.Ino}] = path
	}
	if len(namespaces) != 3 {
		t.Fatalf("not two nodes and a fabric: %v", namespaces)
	}
	s.must("down", "first")
	eventually(t, 5*time.Second, func() error {
		for _, path := range append(matches("/proc/[0-9]*/task/*/ns/net"), matches("/proc/[0-9]*/fd/*")...) {
			var st unix.Stat_t
			err := unix.Stat(path, &st)
			if released := namespaces[file{st.Dev, st.Ino}]; err == nil && released != "" {
				return fmt.Errorf("%s is %s, which was released", path, released)
			}
		}
		return nil
	})
}
