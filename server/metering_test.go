package server

import (
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

var (
	flooder   = vnet.LeaseID{Tenant: "alice", Network: "flood"}
	neighbour = vnet.LeaseID{Tenant: "bob", Network: "quiet"}
)

// Who floods is charged for what it costs each host, by what was measured there, and
// nobody else is; counters that began anew are no packets.
func TestFlooderIsCharged(t *testing.T) {
	s, _ := provingOf(t, 1)
	s.proving.news.tell(nil, nil, &vnet.Substrate{Hosts: []vnet.SubstrateNode{
		{Name: "h1", Measurement: vnet.Measurement{InsideCost: vnet.PacketCost{Fixed: 1000}, TunnelCost: vnet.PacketCost{Fixed: 3000, PerByte: 1}}},
		{Name: "h2"},
	}})
	at := time.Unix(1000, 0)
	links := report.NewCounts()
	links.Link(report.LinkWay{Lease: flooder, Link: "in", Enters: true, Leaves: true})
	links.Link(report.LinkWay{Lease: flooder, Link: "out", Enters: true})
	links.Link(report.LinkWay{Lease: neighbour, Link: "a-b", Enters: true, Leaves: true})
	links.Chain(report.LinkWay{Lease: flooder, Link: vnet.ChainWay("web"), Part: report.Through})
	count := func(host vnet.HostID, values ...report.LinkSums) {
		c := links.Done()
		at = at.Add(time.Second)
		c.At, c.Values = at, values
		s.counted(host, c)
	}
	count("h1", report.LinkSums{50, 50, 0}, report.LinkSums{}, report.LinkSums{7, 700, 0}, report.LinkSums{})
	if n := s.metering.of(flooder); n != 0 {
		t.Errorf("what was counted before is charged: %s", n)
	}
	count("h1", report.LinkSums{1_000_050, 50, 0}, report.LinkSums{1000, 500_000, 0}, report.LinkSums{7, 700, 0}, report.LinkSums{0, 500, 500})
	if n := s.metering.of(flooder); n != time.Second+3500*time.Microsecond+time.Millisecond {
		t.Errorf("the flooder is charged %s", n)
	}
	if n := s.metering.of(neighbour); n != 0 {
		t.Errorf("the neighbour is charged %s", n)
	}
	before := s.metering.of(flooder)
	count("h1", report.LinkSums{}, report.LinkSums{}, report.LinkSums{}, report.LinkSums{})
	if n := s.metering.of(flooder); n != before {
		t.Errorf("counters that began anew are charged: %s", n-before)
	}
	count("h1", report.LinkSums{100_000, 0, 0}, report.LinkSums{}, report.LinkSums{}, report.LinkSums{})
	count("h1", report.LinkSums{10_000, 0, 0}, report.LinkSums{}, report.LinkSums{}, report.LinkSums{}) // built anew meanwhile
	links.Link(report.LinkWay{Lease: neighbour, Link: "new", Enters: true, Leaves: true})
	count("h1", report.LinkSums{10_000, 0, 0}, report.LinkSums{}, report.LinkSums{}, report.LinkSums{}, report.LinkSums{5000, 0, 0})
	if n := s.metering.of(flooder); n != before+110*time.Millisecond {
		t.Errorf("100000 packets, and 10000 of a link that was built anew, are charged %s", n-before)
	}
	if n := s.metering.of(neighbour); n != 5*time.Millisecond {
		t.Errorf("5000 packets of a new link are charged %s", n)
	}
	before = s.metering.of(flooder)
	var none report.LinkSums
	count("h2", none, none, none, none, none)
	count("h2", report.LinkSums{1000, 0, 0}, none, none, none, none)
	if n := s.metering.of(flooder) - before; n != (vnet.Measurement{}).KernelTime(true, 1000, 0) {
		t.Errorf("a host that nobody measured charges %s", n)
	}
}

// What could not be saved is charged later, once.
func TestChargesOutliveFailedWrites(t *testing.T) {
	m := newMetering()
	m.add(flooder, time.Second)
	m.add(neighbour, time.Millisecond)
	if list := m.above(time.Second / 2); len(list) != 1 || list[0] != flooder {
		t.Errorf("above half a second: %v", list)
	}
	taken := m.take([]vnet.LeaseID{flooder})
	m.add(flooder, time.Second)
	m.back(taken)
	if m.of(flooder) != 2*time.Second || m.of(neighbour) != time.Millisecond {
		t.Errorf("%s and %s are to be charged", m.of(flooder), m.of(neighbour))
	}
	if again := m.take([]vnet.LeaseID{flooder, flooder}); len(again) != 1 || m.of(flooder) != 0 {
		t.Errorf("taken twice: %v", again)
	}
}
