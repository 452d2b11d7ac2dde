package vxrouter

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// ospfRing is three routers in a ring, n0 behind r1 and n1 behind r3.
func ospfRing(b *bench) (routers []plan.VxRouter, n0, n1 string) {
	if _, err := os.Stat(kernel.FRR("ospfd")); err != nil {
		b.Skip("FRR is not installed")
	}
	n0, n1 = b.node("n0"), b.node("n1")
	r1, r2, r3 := b.node("r1"), b.node("r2"), b.node("r3")
	b.join(r1, "eth0", "10.0.0.1", r2, "eth0", "10.0.0.2")
	b.join(r2, "eth1", "10.0.0.2", r3, "eth0", "10.0.0.3")
	b.join(r1, "eth1", "10.0.0.1", r3, "eth1", "10.0.0.3")
	b.join(r1, "eth2", "10.0.0.1", n0, "eth0", "10.0.0.11")
	b.join(r3, "eth2", "10.0.0.3", n1, "eth0", "10.0.0.13")
	b.ip(n0, "route", "add", "default", "via", "10.0.0.1")
	b.ip(n1, "route", "add", "default", "via", "10.0.0.3")
	for i, stubs := range [][]string{{"eth2"}, nil, {"eth2"}} {
		r := router(fmt.Sprintf("r%d", i+1))
		r.Forward = true
		r.OSPF = &plan.OSPF{RouterID: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Interfaces: []string{"eth0", "eth1"}, Stubs: stubs}
		routers = append(routers, r)
	}
	return routers, n0, n1
}

func TestOSPF(t *testing.T) {
	b := newBench(t)
	routers, n0, n1 := ospfRing(b)
	start := time.Now()
	b.do(plan.Add, routers...)
	b.has(routers...)
	began := time.Now()
	b.poll("convergence", func() bool { return b.pings(n0, "10.0.0.13") })
	t.Logf("started in %v, converged after %v", began.Sub(start), time.Since(began))
	for _, d := range kernel.FRRDaemons {
		pid := b.daemon(routers[0].Key(), d)[0]
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		b.check(err)
		if !strings.Contains(string(status), "Uid:\t100") {
			t.Errorf("%s does not run as the tenant:\n%s", d, status)
		}
	}
	b.do(plan.Add, routers...) // again: the daemons stay
	b.ip(routers[0].Key(), "link", "set", "eth1", "down")
	down := time.Now()
	b.poll("recovery", func() bool { return b.pings(n1, "10.0.0.11") })
	t.Logf("around a broken link after %v", time.Since(down))
	b.check(syscall.Kill(b.daemon(routers[1].Key(), "ospfd")[0], syscall.SIGKILL))
	b.poll("observed damage", func() bool { return len(b.daemon(routers[1].Key(), "ospfd")) == 0 })
	broken := routers[1]
	broken.OSPF = &plan.OSPF{}
	b.has(routers[0], broken, routers[2])
	back := time.Now()
	b.do(plan.Set, routers[1])
	b.has(routers...)
	b.poll("return", func() bool { return b.pings(n1, "10.0.0.11") })
	t.Logf("repaired after %v", time.Since(back))
	b.do(plan.Delete, routers...)
	b.has()
	for _, r := range routers {
		b.poll("end of the processes of "+r.Key(), func() bool { // one that has ended is listed until it is reaped
			pids, _ := b.host.Group(r.Key()).Processes()
			return len(pids) == 0
		})
	}
	if left, _ := b.host.Names("frr"); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}

// The daemons' own directory is the tenant's, who may be a user of the host:
// what they put there in the place of files neither stops the agent nor makes
// root write elsewhere.
func TestTenantsFilesFoolNobody(t *testing.T) {
	b := newBench(t)
	if _, err := os.Stat(kernel.FRR("ospfd")); err != nil {
		b.Skip("FRR is not installed")
	}
	b.node("r")
	r := router("r")
	r.Forward, r.OSPF = true, &plan.OSPF{RouterID: netip.MustParseAddr("10.0.0.1"), Interfaces: []string{"eth0"}}
	victim := filepath.Join(t.TempDir(), "victim")
	b.check(os.WriteFile(victim, []byte("untouched"), 0o600))
	b.do(plan.Add, r)
	first := b.daemon(r.Key(), "zebra")
	dir, own := b.part.dir(r.Key()), b.part.ownDir(r.Key())
	for path, want := range map[string]uint32{dir: 0, filepath.Join(dir, "state.json"): 0, filepath.Join(dir, "zebra.conf"): 0, own: firstTenant} {
		var stat syscall.Stat_t
		b.check(syscall.Stat(path, &stat))
		if stat.Uid != want || stat.Mode&0o022 != 0 {
			t.Errorf("%s belongs to user %d, mode %o", path, stat.Uid, stat.Mode)
		}
	}
	for _, name := range []string{"zebra.pid", "ospfd.pid", "zebra.vty", "ospfd.vty", "zebra.err", "ospfd.err", "zebra.log", "ospfd.log"} {
		b.check(os.RemoveAll(filepath.Join(own, name)))
		if strings.HasSuffix(name, ".pid") {
			b.check(syscall.Mkfifo(filepath.Join(own, name), 0o600))
		} else {
			b.check(os.Symlink(victim, filepath.Join(own, name)))
		}
	}
	b.has(r)
	changed := r
	changed.OSPF = &plan.OSPF{RouterID: netip.MustParseAddr("10.0.0.9"), Interfaces: []string{"eth0"}}
	b.do(plan.Set, changed)
	b.has(changed)
	if now := b.daemon(r.Key(), "zebra"); len(now) != 1 || now[0] == first[0] {
		t.Errorf("zebra was %v and is now %v", first, now)
	}
	b.do(plan.Delete, changed)
	b.has()
	if text, err := os.ReadFile(victim); err != nil || string(text) != "untouched" {
		t.Errorf("the file behind the links: %q, %v", text, err)
	}
}

// daemon lists the processes of a router's daemon.
func (b *bench) daemon(key, daemon string) []int {
	b.Helper()
	pids, err := b.part.running(key, daemon)
	b.check(err)
	return pids
}
