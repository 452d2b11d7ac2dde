package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sublet/report"
	"sublet/vnet"
)

func TestSamplesAreMetrics(t *testing.T) {
	link := report.Sample{Host: "h1", Kind: "vxlink", Key: "alice.net#0001", Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, Labels: map[string]string{"link": "a-b", "direction": "0"}}
	link.Count("entered", report.Packets, 7)
	link.CountBy("dropped", map[string]uint64{"queue": 2, "no-such": 3})
	path := report.Sample{Host: "h1", Kind: "spread", Key: `10.0.0.0/8 "x"`, State: report.Up}
	path.Gauge("rtt", report.Nanoseconds, 1500)
	var l List
	l.Samples([]report.Sample{link, path, {Kind: report.KindLink, Key: "w1", State: report.Down}})
	l.Gauge("substrate_link_capacity_bps", "Capacity.", 1e9, map[string]string{"link": "w1"})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&l)
	const want = `
# HELP sublet_spread_rtt_seconds Counter rtt of samples of kind spread: docs/watch.md.
# TYPE sublet_spread_rtt_seconds gauge
sublet_spread_rtt_seconds{host="h1",key="10.0.0.0/8 \"x\""} 1.5e-06
# HELP sublet_spread_state State of a thing: 1 with its label state.
# TYPE sublet_spread_state gauge
sublet_spread_state{host="h1",key="10.0.0.0/8 \"x\"",state="up"} 1
# HELP sublet_substrate_link_capacity_bps Capacity.
# TYPE sublet_substrate_link_capacity_bps gauge
sublet_substrate_link_capacity_bps{link="w1"} 1e+09
# HELP sublet_substrate_link_state State of a thing: 1 with its label state.
# TYPE sublet_substrate_link_state gauge
sublet_substrate_link_state{link="w1",state="down"} 1
# HELP sublet_vxlink_dropped_packets_total Counter dropped of samples of kind vxlink: docs/watch.md.
# TYPE sublet_vxlink_dropped_packets_total counter
sublet_vxlink_dropped_packets_total{cause="no-such",direction="0",host="h1",link="a-b",network="net",tenant="alice"} 3
sublet_vxlink_dropped_packets_total{cause="queue",direction="0",host="h1",link="a-b",network="net",tenant="alice"} 2
# HELP sublet_vxlink_entered_packets_total Counter entered of samples of kind vxlink: docs/watch.md.
# TYPE sublet_vxlink_entered_packets_total counter
sublet_vxlink_entered_packets_total{direction="0",host="h1",link="a-b",network="net",tenant="alice"} 7
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
