package test

import (
	"encoding/json"
	"testing"

	"sublet/vnet"
)

// A network that states verify: handover has a verdict when it is said to run, and
// none of its promises is broken.
func TestVerifiedBeforeHandover(t *testing.T) {
	t.Parallel()
	l := newLab(t, slowBackbone)
	l.up(`network: n
verify: handover
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], rate: 5Mbit, latency: 100ms}]
`)
	var leases []struct {
		State   vnet.State
		Verdict *vnet.Verdict
	}
	need(t, json.Unmarshal([]byte(l.must("leases", "n", "-o", "json")), &leases))
	if len(leases) != 1 || leases[0].State != vnet.Running || leases[0].Verdict == nil {
		t.Fatalf("handed over is %+v", leases)
	}
	if v := leases[0].Verdict; v.Says() == vnet.Broken || len(v.Links) != 2 || v.Links[0].LatencyBound == 0 || v.Links[0].RTT50 == 0 {
		t.Errorf("with the verdict %+v", v)
	}
}
