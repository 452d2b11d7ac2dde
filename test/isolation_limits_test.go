package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
)

// forksInside starts processes that stay, as many as it gets, for ever.
func forksInside([]string) error {
	for got := 0; ; got++ {
		sleeper := exec.Command("/bin/sleep", "1000")
		sleeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = sleeper.Start()
		if got == enoughForks {
			fmt.Fprintln(os.Stderr, "got many")
		}
	}
}

const enoughForks = 300

// Users whose processes are counted, each of one test: others run beside it.
const outliver, forker, hoarder = 12351, 12352, 12353

// ofUser lists the processes of a user, wherever they are.
func ofUser(uid uint32) []string {
	var seen []string
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), fmt.Sprintf("Uid:\t%d\t", uid)) && !strings.Contains(string(text), "State:\tZ") {
			name, _, _ := strings.Cut(string(text), "\n")
			seen = append(seen, file+" "+name)
		}
	}
	return seen
}

func gone(uid uint32) func() error {
	return func() error {
		if left := ofUser(uid); len(left) > 0 {
			return fmt.Errorf("%d processes of user %d are left, such as %s", len(left), uid, left[0])
		}
		return nil
	}
}

// All that a command started ends when its client is gone, whatever session,
// group or namespaces of its own it has made.
func TestNothingOutlivesItsClient(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	c := l.tenants(outliver)[0]
	c.up(pair("net", "max: 10Mbit"))
	for _, script := range []string{
		"sleep 1000 >/dev/null 2>&1 &",
		"setsid sleep 1000 >/dev/null 2>&1 </dev/null &",
		"nohup setsid setsid sleep 1000 >/dev/null 2>&1 </dev/null &",
		"unshare -p -f setsid sleep 1000 >/dev/null 2>&1 </dev/null & sleep 0.1",
		"unshare -U -p -f -n setsid sleep 1000 >/dev/null 2>&1 </dev/null & sleep 0.1",
		"trap '' HUP TERM INT; sleep 1000 >/dev/null 2>&1 </dev/null &",
	} {
		t.Run(script, func(t *testing.T) {
			cmd := c.command(t.Context(), "exec", "net/a", "--", "sh", "-c", script+"\necho ready >&2; sleep 1000")
			said := awaiting("ready")
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-said.seen
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			eventually(t, 5*time.Second, gone(outliver))
		})
	}
}

// A fork bomb stops at its node's limit and takes nothing from others: the
// other tenant gets their processes. It ends with the lease.
func TestForkBombStaysInItsNode(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(forker, bob)
	both[0].up(strings.Replace(pair("net", "max: 10Mbit"), "name: a,", "name: a, memory: 512MiB,", 1))
	both[1].up(pair("net", "max: 10Mbit"))
	both[0].background("got many", "net/a", "forks")
	watch := stall.Start()
	if r := both[1].shell("net/a", "for i in $(seq 50); do true | true; done; echo well"); strings.TrimSpace(r.out) != "well" {
		t.Errorf("the other tenant's processes: %s%s", r.out, r.err)
	}
	watch.InTime(t, 10*time.Second, "the other tenant's commands")
	const most = 4096
	if n := len(ofUser(forker)); n > most {
		t.Errorf("%d processes, more than %d", n, most)
	}
	both[0].must("down", "net")
	eventually(t, 5*time.Second, gone(forker))
	if r := both[1].shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
		t.Errorf("own peer does not answer: %s", r.out)
	}
}

// A session may hold memory up to its node's limit and dies of more; ending
// the lease ends sessions at once.
func TestMemoryAndLeaseEndSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	c := l.tenants(hoarder)[0]
	c.up(strings.Replace(pair("net", "max: 10Mbit"), "name: a,", "name: a, memory: 64MiB,", 1))
	if r := c.shell("net/a", "head -c 200M /dev/zero | tail -c 199M > /dev/null; dd if=/dev/zero of=/dev/null bs=150M count=1"); r.code == 0 {
		t.Errorf("took 150 MiB of 64: %s", r.err)
	}
	cmd := c.command(t.Context(), "exec", "net/a", "--", "sh", "-c", "echo ready >&2; sleep 1000")
	said := awaiting("ready")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-said.seen
	c.must("down", "net")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the session of a released lease ended well")
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("the session of a released lease goes on")
	}
	eventually(t, 5*time.Second, gone(hoarder))
}
