package bridge

import (
	"net/netip"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

func TestSwitchIsObservedAsMade(t *testing.T) {
	b := newBench(t, 3)
	all := []plan.Item{b.plan, b.ports[0], b.ports[1], b.ports[2]}
	b.has(all...)
	b.do(plan.Set, b.plan)
	b.has(all...)
	changed := b.ports[1]
	changed.To, changed.Broadcast, changed.Blocked = []string{"eth0"}, 7, true
	b.do(plan.Set, changed)
	b.has(b.plan, b.ports[0], changed, b.ports[2])
	fewer := b.plan
	fewer.Stations, fewer.Ageing = fewer.Stations[:2], time.Minute
	b.do(plan.Set, fewer)
	b.do(plan.Delete, b.ports[2])
	b.has(fewer, b.ports[0], changed)
	again := New(b.host) // an agent that starts anew
	defer again.Close()
	b.part.Close()
	b.part = again
	b.has(fewer, b.ports[0], changed)
	b.run(b.host.Path(b.plan.Key()), "ip", "link", "del", "eth0")
	b.has(fewer, plan.SwitchPort{Lease: lan, Switch: "s", Type: vnet.SwitchKernel, Interface: "eth0"}, changed)
	b.do(plan.Delete, fewer)
	b.has()
}

// Stations reach each other; a question for one is answered by the switch.
func TestStationsReachEachOther(t *testing.T) {
	b := newBench(t, 3)
	for from := range 3 {
		for to := range 3 {
			if from != to && !b.reaches(from, station(to)) {
				t.Errorf("%d does not reach %d", from, to)
			}
		}
	}
	if c := b.counts(0); c.Answers == 0 || c.Packets == 0 {
		t.Errorf("port 0 counts %+v", c)
	}
	b.part.Close() // without an agent
	if !b.reaches(0, station(2)) {
		t.Error("without an agent nobody is reached")
	}
}

func TestIsolatedPortsDoNotSpeak(t *testing.T) {
	b := newBench(t, 3)
	b.ports[0].To, b.ports[1].To = []string{"eth2"}, []string{"eth2"}
	b.do(plan.Set, b.ports[0])
	b.do(plan.Set, b.ports[1])
	if b.pings(0, station(1)) || b.pings(1, station(0)) {
		t.Error("isolated ports speak")
	}
	if !b.reaches(0, station(2)) || !b.reaches(2, station(1)) {
		t.Error("ports that may speak do not")
	}
	if b.counts(0).Dropped["isolated"] == 0 {
		t.Errorf("port 0 counts %+v", b.counts(0))
	}
}

// A station that changed its Ethernet address is found again as soon as it
// speaks, and a new address that nobody planned is learned.
func TestStationsThatChange(t *testing.T) {
	b := newBench(t, 2)
	b.run(b.node(1), "ip", "link", "set", "eth0", "address", "02:00:00:00:07:07")
	b.run(b.node(1), "ip", "addr", "add", "10.0.0.77/24", "dev", "eth0")
	if !b.reaches(1, station(0)) || !b.reaches(0, station(1)) || !b.reaches(0, netip.MustParseAddr("10.0.0.77")) {
		t.Error("a station that changed is not reached")
	}
}

// A flood is bound to its limit: a port of 10 frames a second passes no more
// than its burst and what the time brings.
func TestFloodsAreLimited(t *testing.T) {
	b := newBench(t, 2)
	b.ports[0].Unknown = 10
	b.do(plan.Set, b.ports[0])
	b.run(b.node(0), "ip", "neigh", "add", "10.0.0.99", "lladdr", "02:00:00:00:09:09", "dev", "eth0")
	began := time.Now()
	b.run(b.node(0), "sh", "-c", "ping -c 200 -i 0.002 -W 1 10.0.0.99 || true")
	most := 2 + uint64(time.Since(began).Seconds()*10)
	c := b.counts(0)
	if c.Floods > most+10 || c.Dropped["unknown-limit"] < 100 { // the station's own multicast floods too
		t.Errorf("%d floods, %v dropped, want at most %d", c.Floods, c.Dropped, most)
	}
}

// Addresses beyond a port's limit are not learned, and make room when old.
func TestAddressesAreLimitedAndAge(t *testing.T) {
	b := newBench(t, 2)
	short := b.plan
	short.Ageing = time.Second
	b.do(plan.Set, short)
	tables := b.tables()
	learned := func() (n int) {
		have, err := tables.entries()
		b.check(err)
		for _, e := range have {
			if e.Planned == 0 && e.Port == 0 {
				n++
			}
		}
		return n
	}
	say := func(last string) {
		b.run(b.node(0), "ip", "link", "set", "eth0", "address", "02:00:00:00:08:"+last)
		b.pings(0, station(1))
	}
	for _, last := range []string{"01", "02", "03", "04"} {
		say(last)
	}
	if n := learned(); n != 2 {
		t.Errorf("%d addresses are learned, want 2", n)
	}
	if b.counts(0).Full == 0 {
		t.Error("none is counted as not learned")
	}
	time.Sleep(2100 * time.Millisecond)
	say("05")
	say("06")
	var state vswitchState
	b.check(tables.States.Lookup(uint32(0), &state))
	if n := learned(); n > 2 || int(state.Learned) != n {
		t.Errorf("%d addresses are there, %d counted", n, state.Learned)
	}
	have, err := tables.entries()
	b.check(err)
	if _, ok := have[hardware(plan.Hardware{2, 0, 0, 0, 8, 6})]; !ok {
		t.Error("old addresses made no room for a new one")
	}
}
