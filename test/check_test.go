package test

import (
	"strings"
	"testing"

	"sublet/vnet"
)

// A bound on latency is refused where hosts alone take longer, and measured
// where it is not.
func TestLatencyIsJudged(t *testing.T) {
	l := newLab(t, "demo")
	if r := l.sublet("up", l.file("fast.yaml", pair("fast", "rate: 1Mbit, latency: 1us"))); r.code != 3 || !strings.Contains(r.err, "latency of a-b") {
		t.Fatalf("a latency of 1 us: exit code %d, %s", r.code, r.err)
	}
	l.up(pair("net", "rate: 10Mbit, latency: 50ms"))
	if leases := decode[[]struct{ Verdict *vnet.Verdict }](t, l.must("leases", "-o", "json")); leases[0].Verdict != nil {
		t.Errorf("nobody measured, and there is a verdict: %+v", leases[0].Verdict)
	}
	l.checked("net", broken, "--duration", "1s")
	v := decode[[]struct{ Verdict *vnet.Verdict }](t, l.must("leases", "-o", "json"))[0].Verdict
	if v == nil || v.Stale || len(v.Links) != 2 {
		t.Fatalf("stored is %+v", v)
	}
	for _, k := range v.Links {
		if k.LatencyBound != 50_000 || k.Latency <= 0 || k.Latency > k.LatencyBound || k.Latency != k.RTT50/2 {
			t.Errorf("%s to %s: latency %g us of %g, round trip %g us", k.From, k.To, k.Latency, k.LatencyBound, k.RTT50)
		}
	}
	if r := l.sublet("exec", "net/a", "--", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100kbit", "burst", "1600", "latency", "300ms"); r.code != 0 {
		t.Fatalf("a queue in the node: %s", r.err)
	}
	slow, code := l.check("net", "--duration", "1s")
	for _, k := range slow.Links {
		if code != 4 || k.OK || k.Outcome != vnet.Broken || !strings.Contains(k.Why, "half the median round trip") {
			t.Errorf("with a queue of 300 ms on the way: exit code %d, %+v", code, k)
		}
	}
}

// Nodes that get too little of a processor to fill their link are told that it
// was not measured, and of what they were short: that is no broken promise.
func TestStarvedNodesAreNotMeasured(t *testing.T) {
	l := newLab(t, "demo")
	l.up(`network: poor
nodes: [{name: a, host: h1, cpu: 0.02}, {name: b, host: h2, cpu: 0.02}]
links: [{ends: [a, b], rate: 500Mbit}]
`)
	r := l.sublet("check", "poor", "--duration", "1s", "-o", "json")
	v := decode[vnet.Verdict](t, r.out)
	if r.code != 0 || v.OK || v.Outcome != vnet.NotMeasured || !strings.Contains(r.err, "not all promises were measured") {
		t.Errorf("exit code %d, %s, %+v", r.code, r.err, v)
	}
	for _, k := range v.Links {
		if k.Outcome == vnet.NotMeasured && !strings.Contains(k.Why, "processor") {
			t.Errorf("%s>%s: %s", k.From, k.To, k.Why)
		}
	}
	if said := l.must("leases"); !strings.Contains(said, "not measured") {
		t.Errorf("leases:\n%s", said)
	}
}
