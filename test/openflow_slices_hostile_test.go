package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
	"sublet/vnet"
)

// hostileSlices is a switch with two slices: one's controller is hostile, and its ports
// lead to a switch that sends what one of them gets to the other one; c sends to d in the
// other slice.
//
//	a - s1 == loop     c - s1 - d     s1 -control- sw - one (hostile), two
func hostileSlices(t *testing.T, datapath string) string {
	t.Helper()
	text := sharedSwitch(t, datapath, `      - {name: alice, controller: ["tcp:one:6653", "tcp:one:6654"], links: [la, p, q]}
      - {name: bob, controller: ["tcp:two:6653"], links: [lc, ld], tables: 4, entries: 500}
`)
	one, two := strings.Index(text, "  - name: one\n"), strings.Index(text, "  - name: two\n")
	if one < 0 || two < one {
		t.Fatal("the example has other controllers")
	}
	text = text[:one] + "  - {name: one, host: h2}\n" + text[two:]
	return strings.NewReplacer(
		"  - {name: sw}\n", "  - {name: sw}\n  - {name: loop, host: h2}\n",
		"  - {name: lb, ends: [b, s1], rate: 10Mbit}\n", "  - {name: p, ends: [loop, s1], rate: 10Mbit}\n  - {name: q, ends: [loop, s1], rate: 10Mbit}\n  - {ends: [b, loop], rate: 10Mbit}\n",
	).Replace(text)
}

// A slice's hostile controller, which does all that the protocol has, sends random bytes,
// floods and makes loops, takes nothing of another slice of its switch: that one's
// entries stay and forward, and no frame of the attack comes to its stations.
func TestHostileSlice(t *testing.T) {
	t.Parallel()
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) {
			s, x := sharedWithHostile(t, datapath)
			id := vnet.LeaseID{Tenant: vnet.TenantID(x.name()), Network: "shared"}
			end := x.attacks(s)
			stall.Try(t, func() (float64, error) {
				f := s.flowOf(node{"h1", id, "c"}, node{"h2", id, "d"}, time.Millisecond)
				time.Sleep(2 * time.Second) // of traffic under attack
				sent, lost := f.end()
				if part := float64(lost) / float64(sent); part > 0.01 {
					return part, fmt.Errorf("bob's d has not received %d of %d packets", lost, sent)
				}
				return 0, nil
			})
			end()
		})
	}
}

// The other slice's links keep their rates, too.
func TestSoakHostileSlice(t *testing.T) {
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) {
			s, x := sharedWithHostile(t, datapath)
			x.background("blasting", "shared/c", "blast", "d:9")
			keeps := func(what string) {
				stall.Try(t, func() (float64, error) {
					rate := x.received("h2", "shared", "d", 2*time.Second)
					t.Logf("%s: bob's d receives %s of %s", what, rate, sliceRate)
					if lacked := away(rate, sliceRate); lacked > 0.01 {
						return lacked, fmt.Errorf("%s: bob's d receives %s of %s", what, rate, sliceRate)
					}
					return 0, nil
				})
			}
			keeps("before the attack")
			end := x.attacks(s)
			for range 3 {
				keeps("while it is attacked")
			}
			end()
		})
	}
}

const sliceRate = 10 * vnet.Mbit

// sharedWithHostile has the network of hostileSlices up, before the attack begins.
func sharedWithHostile(t *testing.T, datapath string) (*supervisor, *tenant) {
	t.Helper()
	s := newSupervisor(t, "demo")
	x := s.tenants(alice)[0]
	x.up(hostileSlices(t, datapath))
	eventually(t, 30*time.Second, func() error {
		if r := x.sublet("exec", "shared/c", "--", "ping", "-c1", "-W1", "d"); r.code != 0 {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	return s, x
}

// attacks has the hostile controller begin; end says that it has come nowhere else.
func (x *tenant) attacks(s *supervisor) (end func()) {
	t := x.t
	t.Helper()
	p := floodPlan{VNIs: []uint32{1}, IPs: [][4]byte{{10, 0, 0, 1}, {255, 255, 255, 255}}, Signature: signed(alice, 0)}
	for _, space := range []string{x.node("h1", "shared", "c"), x.node("h2", "shared", "d")} {
		within(t, space, func() error { return p.learn() })
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	own := tap(t, x.node("h2", "shared", "b"), "alice's b", from(alice))
	other := tap(t, x.node("h2", "shared", "d"), "bob's d", from(alice))
	pid := s.openFlowProcess("h1")
	ofBob := func() (entries, first int) {
		return x.sublet("flows", "status", "shared/s1", "-o", "json").entriesOf(t, "bob")
	}
	held, first := ofBob()
	x.background("listening", "shared/one", "hostile", string(text))
	eventually(t, 30*time.Second, func() error {
		if n := own.count(); n < 1000 {
			return fmt.Errorf("%d of the attack's frames came to its own station: the test shows nothing", n)
		}
		return nil
	})
	return func() {
		t.Helper()
		other.silent()
		if now := s.openFlowProcess("h1"); now != pid || pid == 0 {
			t.Errorf("process %d in place of %d", now, pid)
		}
		eventually(t, 20*time.Second, func() error {
			if n, at := ofBob(); n != held || at != first || n == 0 {
				return fmt.Errorf("bob has %d entries from table %d on, and had %d from %d on", n, at, held, first)
			}
			return nil
		})
	}
}

// Frames of slices whose flows are in the kernel go on while the switch's process, the
// agent of its host, and both are killed: none is lost, and no entry.
func TestSlicesOutliveProcesses(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	s.up(sharedSwitch(t, vnet.DatapathKernel, twoSlices))
	id := vnet.LeaseID{Tenant: "root", Network: "shared"}
	var flows []*flow
	for _, pair := range [][2]string{{"a", "b"}, {"c", "d"}} {
		eventually(t, 30*time.Second, func() error { return s.crosses("shared/"+pair[0], pair[1]) })
		flows = append(flows, s.flow(node{"h1", id, pair[0]}, node{"h2", id, pair[1]}))
	}
	s.settled()
	held := func() (list [4]int) {
		list[0], list[1] = s.entriesOf("alice")
		list[2], list[3] = s.entriesOf("bob")
		return list
	}
	before := held()
	for _, ends := range []struct{ process, agent bool }{{true, false}, {false, true}, {true, true}} {
		pid := s.openFlowProcess("h1")
		if ends.agent {
			s.kill(agentOf("h1"))
		}
		if ends.process {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if ends.agent {
			s.start(agentOf("h1"))
		}
		eventually(t, 30*time.Second, func() error {
			if now := s.openFlowProcess("h1"); now == 0 || (now == pid) == ends.process {
				return fmt.Errorf("process %d, and before %d", now, pid)
			}
			if now := held(); now != before {
				return fmt.Errorf("entries and first tables are %v, and were %v", now, before)
			}
			return nil
		})
		s.asPlanned("h1", "h2")
	}
	for _, f := range flows {
		if sent, lost := f.end(); lost > 0 {
			t.Errorf("%s lost %d of %d packets", f.name, lost, sent)
		}
	}
	s.must("down", "shared")
}
