package file

import (
	"net/netip"
	"slices"
	"strings"
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

// Queues of ports are read in the order of links and numbers, and written as they are
// read; what no switch has is refused with its place.
func TestQueuesOfSwitches(t *testing.T) {
	text := strings.Replace(strings.Replace(openFlowSubstrate, "meters: 200", "queues: {up: {10: 20Mbit, 2: 5Mbit}, l1: {1: 10Mbit}}", 1), "meter]", "set_queue]", 1)
	s, err := ParseSubstrate("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []vnet.SwitchQueue{{Link: "l1", Queue: 1, Rate: 10 * vnet.Mbit}, {Link: "up", Queue: 2, Rate: 5 * vnet.Mbit}, {Link: "up", Queue: 10, Rate: 20 * vnet.Mbit}}
	if o, _ := s.OpenFlowOf("s1"); !slices.Equal(o.Queues, want) || o.Meters != 0 || !o.SlowPath.Slows() {
		t.Errorf("%+v", o)
	}
	if again := substrateText(t, substrateText(t, text)); again != substrateText(t, text) {
		t.Errorf("written again it is\n%s", again)
	}
	for _, valid := range []string{text, substrateText(t, text)} {
		if err := validate(t, "substrate", []byte(valid)); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ from, to, problem string }{
		{"2: 5Mbit", "x: 5Mbit", `"x" is no number of a queue`},
		{"2: 5Mbit", "0: 5Mbit", "queue 0 is for what is in no other"},
		{"2: 5Mbit", "2: 2Gbit", "2Gbit is not between 8kbit and the 1Gbit of link"},
		{"2: 5Mbit", "2: 990Mbit", "have 1010Mbit together, more than the 1Gbit that leases may have"},
		{"{up: {10", "{l2: {10", `no link "l2" ends at switch "s1"`},
		{"queues:", "meters: 3\n    queues:", "the switch has meters too: state one of both"},
		{"set_queue]", "meter]", "no packet meets meter at a switch with queues"},
	} {
		_, err := ParseSubstrate("f", []byte(strings.Replace(text, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s in place of %s: %v", c.to, c.from, err)
		}
	}
}

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
