package probe

import (
	"net/netip"
	"testing"
	"time"

	"sublet/vnet"
)

var (
	left  = end{"n1", "eth0", netip.MustParseAddr("10.9.0.1")}
	right = end{"n2", "eth0", netip.MustParseAddr("10.9.0.2")}
	lease = vnet.Lease{Request: vnet.Request{Tenant: "alice", Network: "net"}}
)

// within says whether x is within a part of want.
func within(x, want vnet.Rate, part float64) bool {
	return float64(x) >= (1-part)*float64(want) && float64(x) <= (1+part)*float64(want)
}

func logVerdict(t testing.TB, v vnet.Verdict) {
	t.Helper()
	for _, l := range v.Links {
		t.Logf("%s %s->%s alloc %.1f: TCP %.3f (%.3f) UDP %.3f (%.3f) loss %.5f rtt %.0f %.0f load %.0f %.0f: %v %s",
			l.Name, l.From, l.To, l.Alloc.Mbps(), l.TCP.Mbps(), l.TCPPayload.Mbps(), l.UDP.Mbps(), l.UDPPayload.Mbps(), l.UDPLoss,
			l.RTT50, l.RTT99, l.RTTLoad50, l.RTTLoad99, l.OK, l.Why)
	}
}

// figures skips what compares rates where they mean nothing: under the race
// detector, which runs with -short.
func figures(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; the race detector makes it meaningless")
	}
}

func TestAccuracy(t *testing.T) { accuracy(t, 100*vnet.Mbit) }

func TestSoakAccuracy(t *testing.T) { accuracy(t, 10*vnet.Mbit, vnet.Gbit) }

// Rates a wire is shaped to are measured within 1 %, both directions at once.
func accuracy(t *testing.T, rates ...vnet.Rate) {
	figures(t)
	for _, rate := range rates {
		t.Run(rate.String(), func(t *testing.T) {
			l := newLab(t, "n1", "n2")
			l.connect(left, right, wire{rate: rate}, wire{rate: rate})
			v := l.measured(Options{Targets: static("a", left, right, rate), Duration: 2 * time.Second})
			for _, link := range v.Links {
				if !link.OK || link.UDPLoss != 0 || !within(link.TCP, rate, 0.01) || !within(link.UDP, rate, 0.01) {
					t.Errorf("%s->%s: TCP %d UDP %d loss %g: %s", link.From, link.To, link.TCP, link.UDP, link.UDPLoss, link.Why)
				}
			}
		})
	}
}
