package iplbd

import (
	"net/netip"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Paths are told to those whose lease they carry; what is of all packets, and
// moves of flows with the time at which they were made, to who sees everything.
func TestSamplesOfPaths(t *testing.T) {
	alice := vnet.LeaseID{Tenant: "alice", Network: "net"}
	relay, prefix, moved := netip.MustParseAddr("192.0.2.1"), netip.MustParsePrefix("10.0.0.0/8"), time.Unix(1000, 0)
	s := Status{
		Prefixes: []PrefixStatus{
			{Prefix: netip.MustParsePrefix("192.0.2.9/32"), VNI: 7, Paths: []PathStatus{
				{Relays: []netip.Addr{relay}, Weight: 1, Health: Unprobed, Packets: 9, Bytes: 900, Lease: alice.String(), Owner: alice},
			}},
			{Prefix: prefix, Mode: plan.PerFlow, Paths: []PathStatus{{Health: Up, RTT: time.Millisecond, Flows: 3}, {Health: Down}}},
		},
		Moves: []Move{{At: moved, Prefix: prefix, Flow: "f", To: []netip.Addr{relay}, Why: "balance"}}, Moved: 5,
		Outcomes: map[string]uint64{"cut": 4},
	}
	for scope, want := range map[report.Scope]int{{}: 5, {Tenant: "alice"}: 1, report.Of(alice): 1, {Tenant: "bob"}: 0} {
		if got := s.samples(scope); len(got) != want {
			t.Errorf("%+v: %+v", scope, got)
		}
	}
	all := s.samples(report.Scope{})
	if one := all[0]; one.Lease != alice || one.Key != (plan.Spread{VNI: 7}).Key() || one.Value(report.Sent, report.Packets) != 9 ||
		one.Labels[labelRelays] != "192.0.2.1" || one.Labels[labelVNI] != "7" {
		t.Errorf("a tunnel's path is %+v", one)
	}
	if one := all[1]; one.State != report.Up || one.Value("rtt", report.Nanoseconds) != 1e6 || one.Value("flows", report.Flows) != 3 || one.Key != prefix.String() {
		t.Errorf("a prefix's path is %+v", one)
	}
	if one := all[3]; one.State != report.Moved || !one.At.Equal(moved) || one.Why != "balance" || one.Labels[labelFlow] != "f" {
		t.Errorf("a move is %+v", one)
	}
	if one := all[4]; one.Value("moved", report.Flows) != 5 || one.By("outcome")["cut"] != 4 {
		t.Errorf("what became of packets is %+v", one)
	}
}
