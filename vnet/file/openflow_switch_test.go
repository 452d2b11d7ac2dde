package file

import (
	"net/netip"
	"testing"
	"time"

	"sublet/vnet"
)

const openFlowSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
switches:
  - s0
  - name: s1
    openflow: {connect: "tcp:192.0.2.1:6653", datapath_id: "00000000000000a1", tls: {certificate: /etc/s/c.pem, key: /etc/s/k.pem, ca: /etc/s/ca.pem}}
    ports: {l1: 1, up: 3}
    entries: 1000
    meters: 200
    slow-path: {actions: [normal, meter], pps: 100000, latency: 200us}
links:
  - {name: l1, ends: [h1, s1], capacity: 1Gbit}
  - {name: up, ends: [s1, s0], capacity: 1Gbit}
  - {name: l2, ends: [s0, h2], capacity: 1Gbit}
`

// A switch that speaks OpenFlow is read as it is written, and written as it is read.
func TestOpenFlowSwitches(t *testing.T) {
	s, err := ParseSubstrate("f", []byte(openFlowSubstrate))
	if err != nil {
		t.Fatal(err)
	}
	o, ok := s.OpenFlowOf("s1")
	if !ok || o.Connect != netip.MustParseAddrPort("192.0.2.1:6653") || o.DatapathID != 0xa1 || o.Ports["up"] != 3 || o.Entries != 1000 || o.Meters != 200 {
		t.Errorf("%+v", o)
	}
	if o.TLS == nil || *o.TLS != (vnet.SwitchFiles{Certificate: "/etc/s/c.pem", Key: "/etc/s/k.pem", CA: "/etc/s/ca.pem"}) {
		t.Errorf("%+v", o.TLS)
	}
	if o.SlowPath.PPS != 100000 || o.SlowPath.Latency != 200*time.Microsecond || o.SlowPath.Carries() != 720*vnet.Mbit {
		t.Errorf("%+v", o.SlowPath)
	}
	if len(s.OpenFlow) != 1 || len(s.Switches) != 2 {
		t.Errorf("%+v", s)
	}
	if again := substrateText(t, substrateText(t, openFlowSubstrate)); again != substrateText(t, openFlowSubstrate) {
		t.Errorf("written again it is\n%s", again)
	}
	for _, text := range []string{openFlowSubstrate, substrateText(t, openFlowSubstrate)} {
		if err := validate(t, "substrate", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}
