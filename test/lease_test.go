package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// pair is a network of two nodes on h1 and h2 with one link.
//
//	h1: a ------- b :h2
func pair(name, bandwidth string) string {
	return fmt.Sprintf(`network: %s
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
links:
  - {ends: [a, b], %s}
`, name, bandwidth)
}

// The worked example (Anhalt, thesis, section 5.2.4): exact allocations at t1 and t2.
func TestWorkedExample(t *testing.T) {
	l := newLab(t, "demo")
	l.up(pair("one", "min: 100Mbit, max: 500Mbit"))
	l.up(pair("two", "min: 800Mbit, max: 1500Mbit"))
	l.up(pair("three", "rate: 300Mbit"))
	l.expectRates(map[string]vnet.Rate{"one": 500 * vnet.Mbit, "two": 1200 * vnet.Mbit, "three": 300 * vnet.Mbit})
	t.Run("measured", func(t *testing.T) { // apart: the rest does not measure
		(&lab{t, l.run}).checked("three", broken, "--duration", "2s")
	})
	l.must("down", "three")
	l.expectRates(map[string]vnet.Rate{"one": 500 * vnet.Mbit, "two": 1500 * vnet.Mbit})
	l.settled()
	l.must("down", "--all")
	l.settled()
}

func (l *lab) expectRates(want map[string]vnet.Rate) {
	l.t.Helper()
	eventually(l.t, 10*time.Second, func() error {
		for network, rate := range want {
			for _, from := range []string{"a", "b"} {
				if got := l.alloc(network, "a-b", from); got != rate {
					return fmt.Errorf("%s from %s has %s, not %s", network, from, got, rate)
				}
			}
		}
		return nil
	})
}

// Two nodes on one host are promised the same as on two.
func TestCheckOnOneHostAndOnTwo(t *testing.T) {
	l := newLab(t, "demo")
	l.up(`network: n
nodes:
  - {name: a, host: h1}
  - {name: b, host: h1}
  - {name: c, host: h2}
links:
  - {name: near, ends: [a, b], rate: 100Mbit, reverse: {rate: 50Mbit}}
  - {name: far, ends: [a, c], min: 20Mbit, max: 200Mbit}
`)
	l.checked("n", func(v vnet.Verdict, code int) error {
		above, below := deviations(v)
		if off := append(above, below...); len(off) > 0 {
			return fmt.Errorf("exit code %d\n%s", code, strings.Join(off, "\n"))
		}
		return broken(v, code)
	}, "--duration", "3s")
	if took := l.received("h2", "slopen"); took == 0 {
		t.Error("datagrams sent in large pieces were cut on their way: gigabits of them take more processors than a lab has")
	}
}

// received is how many packets came by a device of a host.
func (l *lab) received(host, device string) int {
	l.t.Helper()
	return passed(l.t, l.host(host), device).packetsIn
}

// deviations lists what is more than 1 % above or below its allocated rate,
// and what loses packets at 0.9 of it.
func deviations(v vnet.Verdict) (above, below []string) {
	for _, k := range v.Links {
		for what, rate := range map[string]vnet.Rate{"TCP": k.TCP, "UDP": k.UDP} {
			off := float64(rate)/float64(k.Alloc) - 1
			line := fmt.Sprintf("%s %s>%s: %s carries %s of %s allocated, %+.2f%%", k.Name, k.From, k.To, what, rate, k.Alloc, 100*off)
			if off > 0.01 {
				above = append(above, line)
			} else if off < -0.01 {
				below = append(below, line)
			}
		}
		if k.UDPLoss != 0 {
			below = append(below, fmt.Sprintf("%s %s>%s loses %.4f at 0.9 of the rate", k.Name, k.From, k.To, k.UDPLoss))
		}
	}
	return above, below
}

func TestExecKeepsExitCodesAndNames(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("n", "max: 10Mbit"))
	l.must("exec", "n/a", "--", "ping", "-c", "1", "-W", "2", "b")
	if r := l.sublet("exec", "n/a", "--", "sh", "-c", "exit 42"); r.code != 42 {
		t.Errorf("exit code is %d, not 42: %s", r.code, r.err)
	}
	if r := l.sublet("exec", "n/zz", "--", "true"); r.code != 2 || !strings.Contains(r.err, "zz") {
		t.Errorf("unknown node: exit code %d, %s", r.code, r.err)
	}
	if r := l.sublet("exec", "n/a", "--", "hostname"); strings.TrimSpace(r.out) != "a" {
		t.Errorf("hostname in a is %q", r.out)
	}
}

func TestRefusalAndOffer(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("first", "min: 1500Mbit, max: 2Gbit"))
	big := l.file("big.yaml", pair("second", "min: 800Mbit, max: 1Gbit"))
	offer := l.run + ".offer.yaml"
	r := l.sublet("up", big, "--offer", offer)
	if r.code != 3 || !strings.Contains(r.err, "backbone") {
		t.Fatalf("refusal: exit code %d, %s", r.code, r.err)
	}
	l.must("up", offer)
	if r := l.sublet("up", l.file("again.yaml", pair("third", "min: 800Mbit")), "--accept"); r.code != 0 && r.code != 3 {
		t.Errorf("--accept: exit code %d, %s", r.code, r.err)
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	for name, text := range map[string]string{
		"garbage":       "\x00\x01\x02",
		"nesting":       strings.Repeat("[", 100000),
		"unknown field": "network: n\nnodez: []\n",
		"missing end":   "network: n\nnodes: [{name: a}]\nlinks: [{ends: [a, b]}]\n",
		"min over max":  pair("n", "min: 2Mbit, max: 1Mbit"),
		"no unit":       pair("n", "rate: 100"),
		"shell":         "network: \"$(reboot)\"\nnodes: [{name: a}]\n",
		"bomb":          "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
		"doctype":       "<!DOCTYPE x [<!ENTITY a \"b\">]><description/>",
	} {
		r := l.sublet("up", l.file("bad.yaml", text))
		lines := strings.Split(strings.TrimSpace(r.err), "\n") // one for each problem, up to ten
		if r.code != 2 || len(lines) > 10 || name != "bomb" && len(lines) > 1 {
			t.Errorf("%s: exit code %d, said %q", name, r.code, r.err)
		}
		for _, line := range lines {
			if !strings.Contains(line, "bad.yaml:") {
				t.Errorf("%s: no place in %q", name, line)
			}
		}
	}
	if n := len(l.leases()); n != 0 {
		t.Errorf("%d leases came of it", n)
	}
}
