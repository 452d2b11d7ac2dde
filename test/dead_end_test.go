package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What is cut off within a network is unreachable, and sought neither at the way out nor
// beyond it: not while a tenant's interface is down, by a router that speaks OSPF, nor
// while a link is, by the way out itself.
//
//	tool -- r2 -- r1 -- app
//	         \
//	          internet
func TestCutOffNodesAreNotSoughtOutside(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: lab1
nodes: [{name: tool}, {name: app}]
routers: [{name: r1, protocol: ospf}, {name: r2, protocol: ospf}]
links:
  - {ends: [tool, r2]}
  - {name: core, ends: [r2, r1]}
  - {ends: [r1, app]}
internet: {rate: 5Mbit, to: [r2]}
`)
	l.answersTo("lab1", "tool", "app")
	app, _, _ := strings.Cut(l.must("exec", "lab1/tool", "--", "getent", "hosts", "app"), " ")
	unreachable := func(when string) { // hosts bound how often they say so (icmp_ratelimit)
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			if r := l.sublet("exec", "-u", "root", "lab1/r2", "--", "ip", "route", "get", app); r.code == 0 || !strings.Contains(r.err, "No route to host") {
				return fmt.Errorf("%s: %s%s", when, r.out, r.err)
			}
			return nil
		})
		if r := l.sublet("exec", "lab1/tool", "--", "ping", "-c", "2", "-W", "2", app); r.code == 0 || strings.Contains(r.out, "Time to live") {
			t.Errorf("%s: %s%s", when, r.out, r.err)
		}
	}
	device := strings.TrimSpace(l.must("exec", "lab1/r1", "--", "sh", "-c", "ip -o route get $(getent hosts tool | cut -d' ' -f1) | sed 's/.* dev \\([^ ]*\\).*/\\1/'"))
	l.must("exec", "-u", "root", "lab1/r1", "--", "ip", "link", "set", device, "down")
	unreachable("an interface is down")
	l.must("exec", "-u", "root", "lab1/r1", "--", "ip", "link", "set", device, "up")
	eventually(t, 30*time.Second, func() error {
		if r := l.sublet("exec", "lab1/tool", "--", "ping", "-c", "1", "-W", "1", "app"); r.code != 0 {
			return fmt.Errorf("it is up again: %s%s", r.out, r.err)
		}
		return nil
	})
	l.must("link", "down", "lab1/core")
	unreachable("a link is down")
}
