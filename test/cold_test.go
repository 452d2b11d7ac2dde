package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// A node that may be stopped goes to another host when its own is drained: what runs in
// it is started there, and it is reached as before. One that says nothing stays.
//
//	x (h1 or h3) ---- y (h2)
func TestColdNodesMove(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "triangle")
	file := s.file("cold.yaml", `network: cold
colocate: forbidden
nodes:
  - {name: x, movable: cold, run: [{cmd: [sleep, "1000000"], restart: always}]}
  - {name: y, host: h2}
links: [{ends: [x, y], rate: 1Mbit}]
`)
	s.must("up", file)
	was := s.leases()[0].Mapping.Nodes["x"]
	there := func(host vnet.HostID) string { return filepath.Join(s.run, "netns", string(host), "root.cold.x") }
	if len(matches(there(was))) != 1 {
		t.Fatalf("x is not on %s", was)
	}
	if r := s.sublet("drain", "h2"); !strings.Contains(r.out+r.err, "y is there") {
		t.Errorf("drained below what stays: %s%s", r.out, r.err)
	}
	s.must("undrain", "h2")
	s.must("drain", string(was))
	s.ready(vnet.LeaseID{Tenant: "root", Network: "cold"})
	if is := s.leases()[0].Mapping.Nodes; is["x"] == was || is["y"] != "h2" {
		t.Errorf("from %s it went to %v", was, is)
	}
	eventually(t, 20*time.Second, func() error {
		r := s.sublet("exec", "cold/x", "--", "sh", "-c", "ping -c1 -W1 y >/dev/null && pgrep -f 1000000")
		if r.code != 0 {
			return fmt.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
		return nil
	})
	eventually(t, 20*time.Second, func() error {
		if left := matches(there(was)); len(left) > 0 {
			return fmt.Errorf("%s still has %v", was, left)
		}
		return nil
	})
}
