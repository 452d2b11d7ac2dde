package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"sublet/vnet"
)

// A stage changes rates, adds and removes nodes, routers and links, by itself
// and in time.
//
//	first         a -100M- r -100M- b
//	after 4 s     a -300M- r -100M- b     c joined to r, router q to c
//	after 8 s     a -300M- r --- c        b and q are gone
func TestStages(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: n
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
routers: [{name: r}]
links:
  - {name: ar, ends: [a, r], rate: 100Mbit}
  - {name: rb, ends: [r, b], rate: 100Mbit}
stages:
  - name: more
    after: 4s
    links: {ar: {rate: 300Mbit, reverse: {rate: 50Mbit}}}
    add:
      nodes: [{name: c, host: h2}]
      routers: [{name: q, protocol: ospf}]
      links:
        - {name: cr, ends: [c, r], max: 10Mbit}
        - {name: cq, ends: [c, q], max: 10Mbit}
  - {name: less, after: 8s, remove: [b, q]}
`)
	began := time.Now()
	l.must("exec", "n/a", "--", "ping", "-c", "1", "-W", "2", "b")
	if r := l.sublet("exec", "n/c", "--", "true"); r.code != 2 {
		t.Errorf("a node of a later stage: exit code %d", r.code)
	}
	l.reaches("ar", 300*vnet.Mbit, "n", "a", began.Add(5*time.Second))
	if got := l.alloc("n", "ar", "r"); got != 50*vnet.Mbit {
		t.Errorf("the way back has %s", got)
	}
	eventually(t, 3*time.Second, func() error {
		if r := l.sublet("exec", "n/c", "--", "ping", "-c", "1", "-W", "1", "a"); r.code != 0 {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	eventually(t, time.Until(began.Add(10*time.Second)), func() error {
		if r := l.sublet("exec", "n/b", "--", "true"); r.code != 2 {
			return fmt.Errorf("b is still there: exit code %d", r.code)
		}
		return nil
	})
	l.must("exec", "n/a", "--", "ping", "-c", "1", "-W", "2", "c")
	l.settled()
	l.must("down", "n")
}

// reaches waits until a link's allocation is rate, until a deadline.
func (l *lab) reaches(link string, rate vnet.Rate, network, from string, deadline time.Time) {
	l.t.Helper()
	eventually(l.t, time.Until(deadline), func() error {
		if got := l.alloc(network, link, from); got != rate {
			return fmt.Errorf("%s from %s has %s, not %s", link, from, got, rate)
		}
		return nil
	})
}

// A lease in the future is booked, opens by itself and closes by itself.
func TestAdvanceReservation(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	start := time.Now().Add(4 * time.Second).UTC()
	l.up(fmt.Sprintf("window: {start: %s, for: 4s}\n", start.Format(time.RFC3339Nano)) + pair("later", "rate: 1500Mbit"))
	if s := l.leases()[0].State; s != vnet.Booked {
		t.Errorf("before its window it is %s", s)
	}
	// What abuts is admitted, what overlaps is not.
	l.up(fmt.Sprintf("window: {start: %s, for: 1h}\n", start.Add(4*time.Second).Format(time.RFC3339Nano)) + pair("next", "rate: 1500Mbit"))
	if r := l.sublet("up", l.file("x.yaml", pair("now", "rate: 1500Mbit"))); r.code != 3 {
		t.Errorf("overlapping: exit code %d", r.code)
	}
	state := func(want vnet.State) func() error {
		return func() error {
			if s := l.leases()[0].State; s != want {
				return fmt.Errorf("it is %s, not %s", s, want)
			}
			return nil
		}
	}
	eventually(t, 6*time.Second, state(vnet.Running))
	l.must("exec", "later/a", "--", "ping", "-c", "1", "-W", "2", "b")
	eventually(t, 6*time.Second, state(vnet.Ended))
	l.must("down", "next")
	l.settled()
}

// TestSoakStageSkew: a stage that changes rates at the switches of three hosts comes into
// force on all of them; how far apart is logged, also where one of them reads its plan
// late.
//
//	a - s1 @h1 - s2 @h2 - s3 @h3 - b
func TestSoakStageSkew(t *testing.T) {
	const stages, lateBy = 12, 400 * time.Millisecond
	l := newLab(t, meshOf(3))
	text := ""
	for i := range stages {
		rate := 20 + 20*(i%2)
		text += fmt.Sprintf("  - {name: s%d, begins: command, links: {x: {rate: %dMbit}, y: {rate: %[2]dMbit}}}\n", i, rate)
	}
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h3}]
switches: [{name: s1, host: h1}, {name: s2, host: h2}, {name: s3, host: h3}]
links:
  - {ends: [a, s1], rate: 50Mbit}
  - {name: x, ends: [s1, s2], rate: 30Mbit}
  - {name: y, ends: [s2, s3], rate: 30Mbit}
  - {ends: [s3, b], rate: 50Mbit}
stages:
` + text)
	l.settled()
	agent := (&saboteur{l}).agent("h2")
	t.Cleanup(func() { _ = syscall.Kill(agent, syscall.SIGCONT) })
	skews := map[bool][]time.Duration{}
	for i := range stages {
		late := i%2 == 1
		began := time.Now()
		if late { // the command returns when all hosts have begun
			_ = syscall.Kill(agent, syscall.SIGSTOP)
			time.AfterFunc(lateBy, func() { _ = syscall.Kill(agent, syscall.SIGCONT) })
		}
		l.must("stage", "n", fmt.Sprintf("s%d", i))
		first, last := l.changedBetween(began, "h1", "h2", "h3")
		skews[late] = append(skews[late], last.Sub(first))
		t.Logf("stage %d: in force on the last host %s after the command, %s after the first one", i, last.Sub(began).Round(time.Millisecond), last.Sub(first).Round(time.Millisecond))
	}
	for late, what := range map[bool]string{false: "hosts that read at once", true: fmt.Sprintf("one is stopped for %s from the command on", lateBy)} {
		list := skews[late]
		slices.Sort(list)
		t.Logf("skew over three hosts, %s: median %s, from %s to %s", what, list[len(list)/2], list[0], list[len(list)-1])
		if median := list[len(list)/2]; median > 5*time.Second { // a busy machine is late; hosts that nobody told would never change
			t.Errorf("hosts change %s apart", median)
		}
	}
}

// changedBetween is when the agents of hosts changed something after a time, the first
// of them and the last one.
func (l *lab) changedBetween(after time.Time, hosts ...string) (first, last time.Time) {
	l.t.Helper()
	eventually(l.t, 30*time.Second, func() error {
		first, last = time.Time{}, time.Time{}
		for _, host := range hosts {
			at, err := l.changedAfter(host, after)
			if err != nil {
				return err
			}
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		return nil
	})
	return first, last
}

var reconciled = regexp.MustCompile(`time=(\S+) level=INFO msg=reconciled .* steps=[1-9]`)

// changedAfter is when the agent of a host had first changed something after a time.
func (l *lab) changedAfter(host string, after time.Time) (time.Time, error) {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.run, "lab", "agent-"+host+".log"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, m := range reconciled.FindAllStringSubmatch(string(text), -1) {
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil && at.After(after) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s has changed nothing", host)
}
