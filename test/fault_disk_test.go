package test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An agent whose disk is full keeps what runs, makes what is new, and keeps
// its copy of the plan as soon as it can.
func TestAgentOnAFullDisk(t *testing.T) {
	t.Parallel()
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
