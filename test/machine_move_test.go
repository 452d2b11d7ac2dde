package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/lab/guest"
	"sublet/vnet"
)

// lanThatMoves is a network with a machine that may go to another host in a way.
func lanThatMoves(how string) string {
	return fmt.Sprintf(`network: lan
colocate: forbidden
nodes:
  - {name: m1, kind: vm, image: small.raw, memory: 256MiB, disk: 64MiB, state: keep, movable: %s}
  - {name: p1, host: h2}
links:
  - {name: wire, ends: [m1, p1], min: 20Mbit, max: 50Mbit}
`, how)
}

// machineThatMoves has it run on three hosts.
func machineThatMoves(t *testing.T, how string) (*supervisor, vnet.LeaseID) {
	t.Helper()
	images := t.TempDir()
	guest.Disk(t, filepath.Join(images, "small.raw"))
	s := newSupervisor(t, meshOf(3), "--images", images)
	s.must("up", s.file("lan.yaml", lanThatMoves(how)))
	id := vnet.LeaseID{Tenant: "root", Network: "lan"}
	s.ready(id)
	return s, id
}

// machineAnswers waits until its system does, which then reads what is typed, too.
func (s *supervisor) machineAnswers() {
	s.t.Helper()
	eventually(s.t, patience, func() error {
		if r := s.sublet("exec", "lan/p1", "--", "ping", "-c", "1", "-W", "1", "m1"); r.code != 0 {
			return fmt.Errorf("m1 does not answer: %s%s", r.out, r.err)
		}
		return nil
	})
}

// A machine that keeps its disk goes to another host with its memory: what its shell
// knows, and nothing else has, is there afterwards, and it is reached as before. What is no
// memory of it leaves a machine that begins from its disk.
//
//	m (QEMU; h1 or h3) ---- p (h2)
func TestSoakMachinesMove(t *testing.T) {
	t.Parallel()
	s, id := machineThatMoves(t, "cold")
	where := func() vnet.HostID { return got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["m1"] }
	move := func() {
		was := where()
		s.must("drain", string(was))
		s.moved(id)
		if is := where(); is == was {
			t.Fatalf("m1 is still on %s", was)
		}
		s.must("undrain", string(was))
		s.machineAnswers()
	}
	s.types("mark=kept")
	move()
	if out := s.types("echo $mark-on"); !strings.Contains(out, "kept-on") {
		t.Errorf("its memory did not come along: %q", out)
	}
	move()
	if out := s.types("echo $mark-again"); !strings.Contains(out, "kept-again") {
		t.Errorf("its memory did not come back: %q", out)
	}
	beside := filepath.Join(s.run, "agent", "kept", "*", ".*")
	if left := matches(filepath.Join(beside, "memory*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, disk := range matches(filepath.Join(beside, "disk")) {
		need(t, os.WriteFile(filepath.Join(filepath.Dir(disk), "memory"), []byte("QEVM, and then something else"), 0o600))
	}
	need(t, syscall.Kill(s.qemu(), syscall.SIGKILL))
	eventually(t, patience, func() error {
		if said := s.must("logs", "lan/m1"); !strings.Contains(said, "it begins from its disk") {
			return errors.New("it has not begun from its disk")
		}
		return nil
	})
	s.machineAnswers()
	s.must("down", "lan")
	s.settled()
}
