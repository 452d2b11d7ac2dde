package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lab/guest"
)

// TestRoutingCourse: a student sees what the routers of the example know, breaks
// links by command and by hand, and mends them: packets take the way that is left,
// and the one they took before once it is mended.
func TestRoutingCourse(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	t.Parallel()
	l := newLab(t, "demo")
	l.must("up", examples+"routing-course.yaml")
	l.knows("o1", "show ip ospf neighbor", "Full/")
	l.knows("b1", "show bgp summary", "65002")
	l.leaves("o1", "pc2", "eth1")

	l.must("link", "down", "course/o1-o2")
	l.must("exec", "course/b1", "--", "ip", "link", "set", "eth1", "down")
	l.leaves("o1", "pc2", "eth2")
	l.leaves("b1", "pc4", "eth2")
	for from, to := range map[string]string{"pc1": "pc2", "pc3": "pc4"} {
		l.answersTo("course", from, to)
	}

	l.must("link", "up", "course/o1-o2")
	l.must("exec", "course/b1", "--", "ip", "link", "set", "eth1", "up")
	l.leaves("o1", "pc2", "eth1")
	l.must("link", "down", "course/b1-b3") // without which the older of two equal routes stays (RFC 5004)
	l.leaves("b1", "pc4", "eth1")
	l.answersTo("course", "pc1", "pc2")
	l.answersTo("course", "pc3", "pc4")
	l.settled()
}

// knows waits until a router of the course says something.
func (l *lab) knows(router, question, answer string) {
	l.t.Helper()
	eventually(l.t, 15*time.Second, func() error {
		if r := l.sublet("exec", "course/"+router, "--", "vtysh", "-c", question); !strings.Contains(r.out, answer) {
			return fmt.Errorf("%s: %s: %s%s", router, question, r.out, r.err)
		}
		return nil
	})
}

// leaves waits until packets to a node leave a router of the course by an
// interface; BGP takes some time to try a neighbour again.
func (l *lab) leaves(router, to, device string) {
	l.t.Helper()
	eventually(l.t, 30*time.Second, func() error {
		r := l.sublet("exec", "course/"+router, "--", "sh", "-c", "ip route get $(getent ahostsv4 "+to+" | head -n 1 | cut -d ' ' -f 1)")
		if !strings.Contains(r.out, "dev "+device) {
			return fmt.Errorf("%s to %s not by %s: %s%s", router, to, device, r.out, r.err)
		}
		return nil
	})
}

// TestSoakMachineBesideContainers: the example of a machine beside a node runs as it
// is, with a disk of the name that it states, and both reach each other.
func TestSoakMachineBesideContainers(t *testing.T) {
	t.Parallel()
	images := busyboxImage(t)
	raw := filepath.Join(t.TempDir(), "small.raw")
	guest.Disk(t, raw)
	if out, err := exec.Command("qemu-img", "convert", "-O", "qcow2", raw, filepath.Join(images, "debian-12.qcow2")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l := newLab(t, "demo", "--images", images)
	if r := l.sublet("up", examples+"machine.yaml"); r.code != 0 {
		t.Fatalf("up: %s%s\n%q", r.out, r.err, l.sublet("logs", "machine/db").out)
	}
	eventually(t, 30*time.Second, func() error { return l.pinged("machine", "web", "db") })
	if out := l.must("get", "machine"); !strings.Contains(out, "kind: vm") {
		t.Errorf("its request is\n%s", out)
	}
	l.must("down", "machine")
	l.settled()
}
