package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/vnet"
)

// What a node keeps outlives the end of everything that runs in it while its agent is
// away, and goes with its lease without a trace:
//
//	web ---- db: orders on a disk of its own
func TestKeptFilesOfALease(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	s.must("up", examples+"keep.yaml")
	order := func(text string) {
		t.Helper()
		eventually(t, 10*time.Second, func() error {
			send := fmt.Sprintf("import socket; socket.create_connection(('db', 7000), 2).sendall(b'%s\\n')", text)
			r := s.sublet("exec", "orders/web", "--", "python3", "-c", send)
			if out := s.sublet("exec", "orders/db", "--", "cat", "/var/lib/orders").out; r.code != 0 || !strings.Contains(out, text+"\n") {
				return fmt.Errorf("exit code %d, %s; orders: %q", r.code, r.err, out)
			}
			return nil
		})
	}
	order("first")
	host := string(s.leases()[0].Mapping.Nodes["db"])
	agent := agentOf(host)
	s.kill(agent)
	s.killAll(filepath.Join(product.Cgroup(s.run), host, "root.orders.db"))
	s.start(agent)
	s.ready(vnet.LeaseID{Tenant: "root", Network: "orders"})
	order("second")
	if out := s.must("exec", "orders/db", "--", "cat", "/var/lib/orders"); !strings.HasPrefix(out, "first\n") {
		t.Errorf("what was kept: %q", out)
	}
	s.must("down", "orders")
	eventually(t, 10*time.Second, func() error {
		left, err := os.ReadDir(filepath.Join(s.run, "agent", "kept", host))
		if len(left) > 0 || err != nil {
			return fmt.Errorf("left: %v, %v", left, err)
		}
		return nil
	})
}

// killAll kills every process of a control group, until none is left.
func (s *supervisor) killAll(group string) {
	s.t.Helper()
	eventually(s.t, 10*time.Second, func() error {
		left := 0
		for _, name := range matches("/proc/[0-9]*/cgroup") {
			text, _ := os.ReadFile(name) // of one that has ended: none
			if strings.Contains(string(text), group+"/") {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				_ = syscall.Kill(pid, syscall.SIGKILL)
				left++
			}
		}
		if left > 0 {
			return fmt.Errorf("%d processes were left", left)
		}
		return nil
	})
}
