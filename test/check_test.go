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
		if code != 4 || k.OK || !strings.Contains(k.Why, "half the median round trip") {
			t.Errorf("with a queue of 300 ms on the way: exit code %d, %+v", code, k)
		}
	}
}
