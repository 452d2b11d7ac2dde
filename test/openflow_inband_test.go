package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// inBand is the learning example without a control link: its controller is at a port
// of s1, and s2, on another host, is reached through s1.
//
//	h1:  a - s1 - s2 - b  :h2
//	         |
//	        ctl
func inBand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../examples/openflow/learning.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"network: learning", "network: band", "name: a}", "name: a, host: h1}", "name: b}", "name: b, host: h2}", "name: ctl\n", "name: ctl\n    host: h1\n",
		"datapath_id: 1}", "datapath_id: 1, host: h1, datapath: kernel}\n  - {name: s2, kind: openflow, controller: [\"tcp:ctl:6653\"], datapath_id: 2, host: h2}",
		"ends: [s1, ctl], control: true}", "ends: [s1, ctl]}\n  - {name: trunk, ends: [s1, s2], rate: 10Mbit}", "ends: [s1, b]", "ends: [s2, b]",
		"              s.settimeout(15)\n", "", // a command has at most 1000 bytes
		"head", "h", "import socket", "import os, socket", "srv.accept()[0]:\n", "srv.accept()[0]:\n              if os.fork(): continue\n", // a process for each switch
	).Replace(string(text))
}

// A lease whose switches have no control link has control by the links of data: all
// its switches join, also over one another, and do what the controller says.
func TestOpenFlowInBand(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(inBand(t))
	eventually(t, 30*time.Second, func() error { return l.crosses("band/a", "b") })
	for _, s := range []string{"s1", "s2"} {
		if out := l.must("flows", "band/"+s); !strings.HasSuffix(out, " priority=0 actions=CONTROLLER:65535\n") || strings.Contains(out, "6653") {
			t.Errorf("flows of %s:\n%s", s, out)
		}
	}
	if v, _ := l.check("band", "--duration", "1s"); v.Outcome != vnet.NotMeasured || len(v.Unreached) > 0 {
		t.Errorf("check: %+v", v)
	}
	pid := l.openFlowProcess("h1")
	l.isConfined(pid)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error { // the other switch's control goes through this one
		if now := l.openFlowProcess("h1"); now == 0 || now == pid {
			return fmt.Errorf("process %d, which was killed", now)
		}
		if r := l.sublet("exec", "band/ctl", "--", "sh", "-c", "ss -Htn state established sport = :6653 | wc -l"); strings.TrimSpace(r.out) < "2" {
			return fmt.Errorf("connections to the controller: %s", r.out)
		}
		return l.crosses("band/a", "b")
	})
	l.must("down", "band")
}
