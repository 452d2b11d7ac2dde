package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestVtyshWritesNothingOfTheHost: a tenant who tells routing daemons by vtysh
// to write files finds no place but /run/frr of the node, which is bounded, and
// the router goes on.
func TestVtyshWritesNothingOfTheHost(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing daemons are FRR's")
	}
	t.Parallel()
	l := newLab(t, "star:2")
	l.up("network: jail\nrouters: [{name: b1, protocol: bgp, as: 65001}, {name: b2, protocol: bgp, as: 65002}]\nlinks: [{ends: [b1, b2], rate: 1Mbit}]\n")
	place := t.TempDir() // of the host, and open to everybody
	if err := os.Chmod(place, 0o777); err != nil {
		t.Fatal(err)
	}
	vtysh := func(commands ...string) string {
		args := []string{"exec", "jail/b1", "--", "vtysh"}
		for _, c := range append([]string{"configure terminal"}, commands...) {
			args = append(args, "-c", c)
		}
		r := l.sublet(args...)
		return r.out + r.err
	}
	for _, dir := range []string{place, "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/etc/frr", "/proc/self", "/usr"} {
		name := filepath.Join(dir, "jail-"+filepath.Base(place)+"-"+strconv.Itoa(os.Getpid()))
		said := vtysh("log file "+name+".log debugging", "debug bgp keepalives", "debug zebra events", "dump bgp all "+name+".dump")
		if left := matches(name + ".*"); len(left) > 0 {
			t.Errorf("vtysh made %v: %s", left, said)
		}
	}
	said := vtysh("log file /run/frr/mine.log debugging", "hostname jailed", "debug bgp keepalives")
	if out := l.must("exec", "jail/b1", "--", "sh", "-c", "ls /run/frr; df -k --output=size /run/frr | tail -n 1"); !strings.Contains(out, "mine.log") ||
		strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]) != "4096" {
		t.Errorf("after %q /run/frr has:\n%s", said, out)
	}
	if err := l.pinged("jail", "b1", "b2"); err != nil {
		t.Error(err)
	}
	l.settled()
	l.must("down", "jail")
}
