package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// TestLinksThatAreDown: a link that is taken down, by a stage or by command, on
// one host, between two and at a switch, has no carrier at either end and carries
// nothing, also when somebody on the host sets its device up; check says so.
func TestLinksThatAreDown(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h1}, {name: d, host: h2}]
switches: [{name: s, host: h1}]
links:
  - {name: ab, ends: [a, b], rate: 10Mbit, down: true}
  - {name: ac, ends: [a, c], rate: 10Mbit}
  - {name: as, ends: [a, s], rate: 10Mbit}
  - {name: ds, ends: [d, s], rate: 10Mbit}
stages: [{name: mended, after: 7s, links: {ab: {down: false}, ac: {down: true}}}]
`)
	l.carries("n", "ab", "a", "b", false)
	l.carries("n", "ab", "a", "b", true) // by the stage
	l.carries("n", "ac", "a", "c", false)
	l.must("link", "down", "n/as")
	if l.pinged("n", "a", "d") == nil {
		t.Error("the command ended before the link was down")
	}
	l.carries("n", "as", "a", "d", false)
	fabric := plan.Fabric(l.leaseOf("n"))
	if out, err := exec.Command("nsenter", "--net="+l.run+"/netns/h1/"+fabric, "ip", "link", "set", "l1a", "up").CombinedOutput(); err != nil {
		t.Fatalf("set a device of a link up: %v: %s", err, out)
	}
	time.Sleep(2 * time.Second) // for an agent to repair it
	l.carries("n", "ac", "a", "c", false)

	if out := l.must("leases", "n"); !strings.Contains(out, "ac is down") || strings.Contains(out, "ab is down") {
		t.Errorf("leases does not say which links are down:\n%s", out)
	}
	if out := l.must("link", "show", "n"); strings.Count(out, " down") != 2 {
		t.Errorf("link show says:\n%s", out)
	}
	l.checked("n", func(v vnet.Verdict, code int) error {
		for _, link := range v.Links {
			if down := link.Name == "ac" || link.Name == "as"; (link.Outcome == vnet.LinkDown) != down {
				t.Errorf("check says of %s from %s: %s: %s", link.Name, link.From, link.Outcome, link.Why)
			}
		}
		if code != 0 || v.Outcome == vnet.Broken {
			return fmt.Errorf("exit code %d, verdict %+v", code, v)
		}
		return nil
	}, "--duration", "1s")
	for _, link := range []string{"ac", "as"} {
		l.must("link", "up", "n/"+link)
	}
	l.carries("n", "ac", "a", "c", true)
	l.carries("n", "as", "a", "d", true)
	for _, bad := range [][]string{{"down", "n/nolink"}, {"down", "n"}, {"show", "nothing"}, {"show", "n/nolink"}} {
		if r := l.sublet(append([]string{"link"}, bad...)...); r.code != 2 {
			t.Errorf("link %v: exit code %d", bad, r.code)
		}
	}
	l.settled()
}

// carries waits until a link carries, or has no carrier and nothing passes.
func (l *lab) carries(network, link, from, to string, does bool) {
	l.t.Helper()
	eventually(l.t, 10*time.Second, func() error {
		err := l.pinged(network, from, to)
		if does || err == nil {
			if does == (err == nil) {
				return nil
			}
			return fmt.Errorf("%s carries: %v, want %v", link, err == nil, does)
		}
		if out := l.must("exec", network+"/"+from, "--", "ip", "link"); !strings.Contains(out, "NO-CARRIER") {
			return fmt.Errorf("%s has its carrier:\n%s", link, out)
		}
		return nil
	})
}

// leaseOf is a network's name with that of its tenant.
func (l *lab) leaseOf(network string) vnet.LeaseID {
	l.t.Helper()
	views := decode[[]struct {
		Network vnet.VNetID
		Tenant  vnet.TenantID
	}](l.t, l.must("leases", network, "-o", "json"))
	return vnet.LeaseID{Tenant: views[0].Tenant, Network: views[0].Network}
}

// TestStaticRoutesAroundALinkThatIsDown: routers without a protocol, one between
// subnets of its own, and a node with two links go the other way around, and back.
func TestStaticRoutesAroundALinkThatIsDown(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers:
  - {name: r1, protocol: static, host: h1}
  - {name: r2, protocol: static, host: h2}
  - {name: r3, protocol: static, host: h1}
links:
  - {name: a1, ends: [a, r1], rate: 10Mbit}
  - {name: a3, ends: [a, r3], rate: 10Mbit}
  - {name: b2, ends: [b, r2], rate: 10Mbit}
  - {name: r12, ends: [{node: r1, address: 192.168.7.1/30}, {node: r2, address: 192.168.7.2/30}], rate: 10Mbit}
  - {name: r23, ends: [r2, r3], rate: 10Mbit}
  - {name: r31, ends: [r3, r1], rate: 10Mbit}
`)
	reaches := func() {
		t.Helper()
		for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"r1", "r2"}, {"r2", "r1"}, {"a", "r1"}, {"r1", "192.168.7.2"}, {"r2", "192.168.7.1"}, {"b", "192.168.7.1"}} {
			eventually(t, 10*time.Second, func() error { return l.pinged("n", pair[0], pair[1]) })
		}
	}
	for _, link := range []string{"r12", "a1", "r31"} {
		reaches()
		l.must("link", "down", "n/"+link)
		reaches()
		l.must("link", "up", "n/"+link)
	}
	reaches()
	for _, link := range []string{"r12", "r23"} { // no way is left
		l.must("link", "down", "n/"+link)
	}
	if l.pinged("n", "a", "b") == nil {
		t.Error("something passes links that are down")
	}
	l.must("wait", "n", "--timeout", "20s")
	l.must("exec", "n/a", "--", "ping", "-c", "1", "-W", "5", "r1")
}
