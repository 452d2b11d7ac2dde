package test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/vnet"
)

// triangle has two ways between h1 and h2.
//
//	x: h1 ------direct------ h2: y     each 1G, 1 ms
//	     \                  /
//	      left --- h3 --- right
const triangle = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
  - {name: h3, cpu: 4, memory: 4GiB}
links:
  - {name: direct, ends: [h1, h2], capacity: 1Gbit, latency: 1ms}
  - {name: left, ends: [h1, h3], capacity: 1Gbit, latency: 1ms}
  - {name: right, ends: [h3, h2], capacity: 1Gbit, latency: 1ms}
`

func between(network, rate, more string) string {
	return fmt.Sprintf("network: %s\n%snodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: %s}]\n", network, more, rate)
}

// pathOf is what carries the link of a network now.
func (l *lab) pathOf(network string) string {
	l.t.Helper()
	for _, v := range l.leases() {
		if v.Network == network && v.State != vnet.Ended {
			return strings.Join(v.Mapping.Links["x-y"], " ")
		}
	}
	return "nothing"
}

var received = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// pings sends 100 packets a second for some seconds from x to y while
// something is done, and says for how long none came through.
func (l *lab) pings(network string, seconds int, do func()) time.Duration {
	l.t.Helper()
	done := make(chan result)
	go func() {
		done <- l.sublet("exec", network+"/x", "--", "ping", "-q", "-i", "0.01", "-W", "1", "-c", strconv.Itoa(100*seconds), "y")
	}()
	time.Sleep(time.Second)
	do()
	r := <-done
	m := received.FindStringSubmatch(r.out)
	if m == nil {
		l.t.Fatalf("ping says %q %q", r.out, r.err)
	}
	sent, _ := strconv.Atoi(m[1])
	got, _ := strconv.Atoi(m[2])
	return time.Duration(sent-got) * 10 * time.Millisecond
}

// TestRoomIsMadeByMoving: a network that does not fit beside a movable one is
// let in; the other's link goes by the other way, interrupted for no longer
// than was said, and both get what they were promised.
func TestRoomIsMadeByMoving(t *testing.T) {
	t.Parallel()
	l := newLab(t, triangle)
	l.up(between("first", "300Mbit", "movable: true\n"))
	if got := l.pathOf("first"); got != "direct" {
		t.Fatalf("the first is carried by %s", got)
	}
	second := l.file("second.yaml", strings.Replace(between("second", "800Mbit", ""), "rate: 800Mbit", "rate: 800Mbit, latency: 1.5ms", 1))
	offers := l.must("offers", second)
	if !strings.Contains(offers, "first moves to another path: interrupted for up to 20ms") {
		t.Errorf("the disturbance is not foretold:\n%s", offers)
	}
	watch := stall.Start()
	gap := l.pings("first", 6, func() {
		if r := l.sublet("up", second); r.code != 0 || !strings.Contains(r.err, "to make room") || !strings.Contains(r.out, "second is running") {
			t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
	})
	t.Logf("the link that moved was interrupted for about %s", gap)
	if report := watch.Stop(); gap > 2*time.Second && !report.Explains(stall.Late(gap, 2*time.Second)) { // a busy machine is slower than the prediction
		t.Errorf("the link was interrupted for %s; %s", gap, report)
	}
	if a, b := l.pathOf("first"), l.pathOf("second"); a != "left right" || b != "direct" {
		t.Errorf("they are carried by %s and %s", a, b)
	}
	l.settled()
	l.must("exec", "first/x", "--", "ping", "-q", "-c", "3", "y")
	l.must("exec", "second/x", "--", "ping", "-q", "-c", "3", "y")
}

// TestWhatGoesDownIsRoutedAround: a link that is said to be down carries
// nothing any more; who has no other way is told, and runs again later.
func TestWhatGoesDownIsRoutedAround(t *testing.T) {
	t.Parallel()
	l := newLab(t, triangle)
	l.up(between("able", "300Mbit", ""))
	l.up(strings.Replace(between("bound", "100Mbit", ""), "rate: 100Mbit", "rate: 100Mbit, latency: 1.5ms", 1))
	out := l.must("fail", "link", "direct")
	if !strings.Contains(out, "able") || !strings.Contains(out, "lost") || !strings.Contains(out, "link direct is down") {
		t.Errorf("fail says\n%s", out)
	}
	if got := l.pathOf("able"); got != "left right" {
		t.Errorf("the able is carried by %s", got)
	}
	l.settled()
	l.must("exec", "able/x", "--", "ping", "-q", "-c", "3", "y")
	if out := l.must("leases"); !strings.Contains(out, "failed") || !strings.Contains(out, "link direct is down") {
		t.Errorf("leases says\n%s", out)
	}
	if out := l.must("links"); !strings.Contains(out, "down") {
		t.Errorf("links says\n%s", out)
	}
	l.must("restore", "link", "direct")
	eventually(t, 30*time.Second, func() error {
		for _, v := range l.leases() {
			if v.State != vnet.Running {
				return fmt.Errorf("%s is %s", v.Network, v.State)
			}
		}
		return nil
	})
	l.must("exec", "bound/x", "--", "ping", "-q", "-c", "3", "y")
}

// TestLostCarrierIsRoutedAround: an agent that sees no carrier tells the
// server, and what the link carried goes another way; nobody has to say so.
func TestLostCarrierIsRoutedAround(t *testing.T) {
	t.Parallel()
	l := newLab(t, triangle)
	l.up(between("able", "300Mbit", ""))
	if got := l.pathOf("able"); got != "direct" {
		t.Fatalf("it is carried by %s", got)
	}
	set := func(state string) {
		t.Helper()
		if r := runCommand(exec.Command("nsenter", "--net="+l.host("h1"), "--", "ip", "link", "set", "to-h2", state)); r.code != 0 {
			t.Fatalf("set the link %s: %s%s", state, r.out, r.err)
		}
	}
	set("down")
	eventually(t, time.Minute, func() error {
		if got := l.pathOf("able"); got != "left right" {
			return fmt.Errorf("it is carried by %s", got)
		}
		return nil
	})
	if out := l.must("links"); !strings.Contains(out, "down") {
		t.Errorf("links says\n%s", out)
	}
	l.settled()
	l.must("exec", "able/x", "--", "ping", "-q", "-c", "3", "y")
	set("up")
	eventually(t, time.Minute, func() error {
		if out := l.must("links"); strings.Contains(out, "down") {
			return fmt.Errorf("links says\n%s", out)
		}
		return nil
	})
}

// TestMaintenanceMovesLinks: before work on a link begins, what is on it takes the
// other way, and goes on; who has none stays and is offered another time.
func TestMaintenanceMovesLinks(t *testing.T) {
	t.Parallel()
	l := newLab(t, triangle)
	l.up(between("able", "300Mbit", ""))
	l.up(strings.Replace(between("bound", "100Mbit", ""), "rate: 100Mbit", "rate: 100Mbit, latency: 1.5ms", 1))
	add := []string{"maintenance", "add", "direct", "--start", "1h", "--for", "2h"}
	says := []string{"able goes elsewhere: its link x-y takes another path", "bound stays: ", "instead: "}
	for _, more := range []string{"--dry-run", "--note=cable"} {
		out := l.must(append(add, more)...)
		for _, words := range says {
			if !strings.Contains(out, words) {
				t.Errorf("%s does not say %q:\n%s", more, words, out)
			}
		}
		if more == "--dry-run" && (l.pathOf("able") != "direct" || !strings.Contains(l.must("maintenance", "list"), "no maintenance")) {
			t.Error("a dry run does something")
		}
	}
	if a, b := l.pathOf("able"), l.pathOf("bound"); a != "left right" || b != "direct" {
		t.Errorf("they are carried by %s and %s", a, b)
	}
	l.settled()
	l.must("exec", "able/x", "--", "ping", "-q", "-c", "3", "y")
	if list := l.must("maintenance", "list"); strings.Contains(list, "root/able") || !strings.Contains(list, "bound") {
		t.Errorf("the list says\n%s", list)
	}
	if events := l.must("events"); !strings.Contains(events, "moved") || !strings.Contains(events, "cable") {
		t.Errorf("events are\n%s", events)
	}
}
