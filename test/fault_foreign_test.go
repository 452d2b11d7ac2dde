package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Things of others that look like ours survive a release and the lab's end.
func TestForeignThingsSurvive(t *testing.T) {
	t.Parallel()
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
