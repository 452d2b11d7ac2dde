package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What `get` writes of a network that runs is a request for the same network,
// in which apply finds nothing to change; as VXDL and as a topology of
// containerlab it can be imported again.
func TestGetIsARequest(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.must("up", "../examples/hello.yaml")
	first := l.must("get", "hello")
	if out := l.must("apply", l.file("same.yaml", first)); !strings.Contains(out, "nothing changes") {
		t.Errorf("apply of what is there: %s", out)
	}
	topology := l.file("hello.clab.yml", "")
	l.must("get", "hello", "-o", "clab", "--lossy", "-w", topology)
	if r := l.sublet("get", "hello", "-o", "clab"); r.code != 1 || r.out != "" {
		t.Errorf("rates are lost, and the exit code is %d: %s", r.code, r.out)
	}
	document := l.file("hello.xml", l.must("get", "hello", "-o", "vxdl"))
	l.ansible("hello")
	l.must("down", "hello")
	l.must("up", document)
	if again := l.must("get", "hello"); again != first {
		t.Errorf("it was\n%s\nand by VXDL is\n%s", first, again)
	}
	l.must("down", "hello")
	l.up(l.must("import", topology))
	l.must("exec", "hello/ping", "--", "ping", "-q", "-c", "1", "pong")
	l.must("down", "hello")
}

// ansible runs a command in all nodes by the inventory of a network.
func (l *lab) ansible(network string) {
	l.t.Helper()
	if _, err := exec.LookPath("ansible"); err != nil {
		l.t.Log("no ansible:", err)
		return
	}
	inventory := l.file("inventory.yaml", l.must("get", network, "-o", "ansible"))
	cmd := exec.Command("ansible", "-i", inventory, "all", "-m", "command", "-a", "ping -q -c 1 pong")
	cmd.Env = append(os.Environ(), "ANSIBLE_CONNECTION_PLUGINS=../tools/ansible", "SUBLET="+program, "SUBLET_RUN="+l.run, "ANSIBLE_HOME="+l.t.TempDir())
	if r := runCommand(cmd); r.code != 0 || strings.Count(r.out, "1 received") != 2 {
		l.t.Errorf("ansible: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
