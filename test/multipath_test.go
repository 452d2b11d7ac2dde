package test

import (
	"os"
	"path/filepath"
	"testing"
)

// fabricRow is what a figure of an emulated fabric has.
type fabricRow struct {
	Topology, Mode, Pattern, Flows, Method, Damage string
	ForwardingRate                                 *float64 `json:"forwarding_rate"`
	Gain                                           *float64
	Runs                                           int
	Affected                                       int `json:"flows_affected"`
	Total                                          int `json:"flows_total"`
}

// ring is two hosts two hops apart, both ways round.
//
//	h1 --- s1 --- s2 --- s4 --- h2     each 1G
//	        |             |
//	         ---- s3 ----
const ring = `hosts: [{name: h1, cpu: 1, memory: 1GiB}, {name: h2, cpu: 1, memory: 1GiB}]
switches: [s1, s2, s3, s4]
links:
  - {ends: [h1, s1], capacity: 1Gbit}
  - {ends: [h2, s4], capacity: 1Gbit}
  - {ends: [s1, s2], capacity: 1Gbit}
  - {ends: [s1, s3], capacity: 1Gbit}
  - {ends: [s2, s4], capacity: 1Gbit}
  - {ends: [s3, s4], capacity: 1Gbit}
`

// A fabric with FRR carries datagrams, and the kernel's MPTCP, over the paths
// that relays pin, and gives the fields that are read elsewhere. Rates are the
// machine's; that packets arrive by every method is not.
func TestSoakFabricIsEmulated(t *testing.T) {
	needFabric(t)
	l := &lab{t: t, run: shortDir(t)}
	file := l.file("ring.yaml", ring)
	before := matches("/run/slb*", "/run/netns/slb*")
	args := []string{"bench", "multipath", "--emulate", "--topology", file, "--pattern", "stride:1", "--flows", "same", "--runs", "1", "--settle", "1s", "--measure", "2s", "-o", "json"}
	rows := decode[[]fabricRow](t, l.must(append(args, "--method", "tree", "--method", "hash", "--method", "flow", "--method", "ecmp", "--method", "ksp:2")...))
	if len(rows) != 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		value := r.ForwardingRate
		if r.Method == "ecmp" || r.Method == "ksp:2" {
			value = r.Gain
		}
		if r.Topology != file || r.Mode != "emulation" || r.Pattern != "stride:1" || r.Runs != 1 || value == nil || *value < 0.2 {
			t.Errorf("%+v", r)
		}
	}
	picture := filepath.Join(t.TempDir(), "failure.svg")
	rows = decode[[]fabricRow](t, l.must(append(args, "--settle", "8s", "--damage", "cut", "--svg", picture)...))
	if len(rows) != 1 || rows[0].Damage != "cut" || rows[0].Total != 16 || rows[0].Affected == 0 || rows[0].Affected == rows[0].Total {
		t.Errorf("%+v", rows)
	}
	if text, err := os.ReadFile(picture); err != nil || len(text) < 1000 {
		t.Errorf("the plot: %d bytes, %v", len(text), err)
	}
	if after := matches("/run/slb*", "/run/netns/slb*"); len(after) > len(before) {
		t.Errorf("left behind: %q, was %q", after, before)
	}
}
