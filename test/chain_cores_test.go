package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/report"
)

// coresRequest is a chain through two programs, beside an OpenFlow switch.
//
//	a --> [f1] --> [f2] --> b        a -- (s1) -- b
const coresRequest = `network: cores
nodes:
  - {name: a}
  - {name: b}
functions:
  - {name: f1, run: [sh, -c, "while :; do sleep 0.01; done"]}
  - {name: f2, run: [sh, -c, "while :; do sleep 0.01; done"]}
switches:
  - {name: s1, kind: openflow, controller: ["tcp:b:6653"], fail: standalone}
links:
  - {ends: [a, s1], rate: 10Mbit}
  - {ends: [b, s1], rate: 10Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9}, via: [f1, f2], rate: 1Mbit}
`

// Programs of chains and OpenFlow switches are each put on a core, which is what
// chains, ps and flows status say; they stay there when the agent begins anew, and what
// a tenant changes himself is put right.
func TestProcessesAreKeptOnCores(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("of one core there is nothing to choose")
	}
	s := newSupervisor(t, "hosts:\n  - {name: h1, cpu: 2, memory: 4GiB}\n")
	s.up(coresRequest)
	eventually(t, 60*time.Second, s.keptOnCores)
	before := s.coresOf("cores")
	s.kill(agentOf("h1"))
	s.start(agentOf("h1"))
	s.asPlanned("h1")
	eventually(t, 60*time.Second, s.keptOnCores)
	if after := s.coresOf("cores"); !slices.Equal(before, after) {
		t.Logf("programs were on cores %v, and are on %v after the agent began anew: loads are others'", before, after)
	}
	var all unix.CPUSet
	for n := range runtime.NumCPU() {
		all.Set(n)
	}
	need(t, unix.SchedSetaffinity(s.openFlowProcess("h1"), &all))
	eventually(t, 60*time.Second, s.keptOnCores)
	s.must("down", "cores")
}

// coresOf are those of the two programs, as chains says; none while one is on several.
func (s *supervisor) coresOf(network string) (list []int) {
	s.t.Helper()
	var chains []struct{ Hops []report.ChainHop }
	need(s.t, json.Unmarshal([]byte(s.must("chains", network, "-o", "json")), &chains))
	for _, h := range chains[0].Hops {
		if h.Core != nil {
			list = append(list, *h.Core)
		}
	}
	return list
}

// keptOnCores holds what is told of processes against what the kernel says.
func (s *supervisor) keptOnCores() error {
	told := s.coresOf("cores")
	if len(told) != 2 {
		return fmt.Errorf("of two programs %d are on a core", len(told))
	}
	for i, node := range []string{"f1", "f2"} {
		list := decode[[]report.Process](s.t, s.must("ps", "cores/"+node, "-o", "json"))
		if len(list) == 0 {
			return fmt.Errorf("nothing runs in %s", node)
		}
		for _, p := range list {
			if p.Core == nil || *p.Core != told[i] {
				return fmt.Errorf("process %d of %s may run on %v, and is told to be on core %d", p.PID, node, p.Core, told[i])
			}
		}
	}
	status := decode[report.OpenFlowStatus](s.t, s.must("flows", "status", "cores/s1", "-o", "json"))
	pid := s.openFlowProcess("h1")
	if status.Core == nil || pid == 0 {
		return errors.New("the switch is on no core of its own")
	}
	for _, thread := range matches(fmt.Sprintf("/proc/%d/task/*", pid)) {
		var set unix.CPUSet
		var id int
		if _, err := fmt.Sscan(filepath.Base(thread), &id); err != nil || unix.SchedGetaffinity(id, &set) != nil {
			continue // it has ended
		}
		if set.Count() != 1 || !set.IsSet(*status.Core) {
			return fmt.Errorf("thread %d of the switch may run on %d cores, and is told to be on core %d", id, set.Count(), *status.Core)
		}
	}
	return nil
}
