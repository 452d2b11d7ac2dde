package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// meshOf is a substrate of hosts h1, h2, ... with links between all of them.
func meshOf(hosts int) string {
	text, links := "hosts:\n", "links:\n"
	for i := 1; i <= hosts; i++ {
		text += fmt.Sprintf("  - {name: h%d, cpu: 4, memory: 4GiB}\n", i)
		for j := 1; j < i; j++ {
			links += fmt.Sprintf("  - {name: l%d%d, ends: [h%d, h%d], capacity: 1Gbit, latency: 1ms}\n", j, i, j, i)
		}
	}
	return text + links
}

// leaves drains the host of a node and waits until the network has moved.
func (s *supervisor) leaves(id vnet.LeaseID, name string) (was, is vnet.HostID) {
	s.t.Helper()
	l := got(s.api.Lease(s.t.Context(), id))(s.t)
	was = l.Mapping.Nodes[name]
	s.must("drain", string(was))
	s.moved(id)
	l = got(s.api.Lease(s.t.Context(), id))(s.t)
	if is = l.Mapping.Nodes[name]; is == was {
		s.t.Errorf("%s is still on %s", name, was)
	}
	s.must("undrain", string(was))
	return was, is
}

// moved waits until a network is where it shall be, and runs.
func (s *supervisor) moved(id vnet.LeaseID) {
	s.t.Helper()
	eventually(s.t, patience, func() error {
		l, err := s.api.Lease(s.t.Context(), id)
		switch {
		case err != nil:
			return err
		case l.Move != nil:
			return fmt.Errorf("it is moving: %s", l.Move.Phase)
		case l.State != vnet.Running:
			return errors.New(string(l.State) + ": " + l.Message)
		}
		return nil
	})
}

// TestRoutersAndSwitchesMoveWhileTheyCarry: what a router and a switch carry goes on
// while they move to other hosts.
func TestRoutersAndSwitchesMoveWhileTheyCarry(t *testing.T) {
	s := newSupervisor(t, meshOf(5))
	request := parseRequest(t, `network: live
tenant: root
colocate: forbidden
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r}]
switches: [{name: s}]
links:
  - {name: ar, ends: [a, r], rate: 50Mbit}
  - {name: rs, ends: [r, s], rate: 50Mbit}
  - {name: sb, ends: [s, b], rate: 50Mbit}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	a, b := node{"h1", id, "a"}, node{"h2", id, "b"}
	stream := s.stream(a, b)
	flows := []*flow{s.flowOf(a, b, time.Millisecond), s.flowOf(b, a, time.Millisecond)}
	for range 3 {
		for _, name := range []string{"r", "s"} {
			was, is := s.leaves(id, name)
			t.Logf("%s went from %s to %s; lost so far: %d and %d", name, was, is, len(flows[0].lost()), len(flows[1].lost()))
		}
	}
	arrived(t, "six moves", 6*500, flows...)
	goesOn(t, "six moves", stream)
	s.settled()
}

// arrived ends flows, and fails the test where more than so many packets of one are
// missing: a busy machine may be late, broken before made is seconds. after says what was
// done meanwhile.
func arrived(t *testing.T, after string, most int, flows ...*flow) {
	t.Helper()
	for _, f := range flows {
		sent, lost := f.end()
		t.Logf("%s: %s lost %d of %d packets", after, f.name, lost, sent)
		if lost > most {
			t.Errorf("%s: %s lost %d of %d packets", after, f.name, lost, sent)
		}
	}
}

// goesOn fails the test if a stream of TCP carries nothing in the next second.
func goesOn(t *testing.T, after string, stream *stream) {
	t.Helper()
	now := time.Now()
	time.Sleep(time.Second)
	if r := stream.rate(now, now.Add(time.Second)); r < vnet.Mbit {
		t.Errorf("%s: TCP carries %s", after, r)
	}
}

// TestRoutersWithDaemonsMove: what a router carries goes on while it moves, though its
// neighbours forget it meanwhile and learn it anew.
func TestRoutersWithDaemonsMove(t *testing.T) {
	t.Parallel()
	routersWithDaemonsMove(t, "ospf")
}

func TestSoakRoutersWithDaemonsMove(t *testing.T) {
	t.Parallel()
	routersWithDaemonsMove(t, "ospf", "ospf6", "isis", "bgp")
}

// routersWithDaemonsMove moves a router between two others by each protocol.
//
//	a@h1 - r1@h3 - r@h5 or h6 - r2@h4 - b@h2
func routersWithDaemonsMove(t *testing.T, protocols ...string) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	text := "hosts:\n"
	for i := range 6 {
		text += fmt.Sprintf("  - {name: h%d, cpu: 4, memory: 4GiB}\n", i+1)
	}
	text += "links:\n"
	for _, ends := range []string{"h1, h3", "h3, h5", "h3, h6", "h4, h5", "h4, h6", "h4, h2"} {
		text += "  - {ends: [" + ends + "], capacity: 1Gbit, latency: 1ms}\n"
	}
	s := newSupervisor(t, text)
	for _, protocol := range protocols {
		as := func(n int) string {
			return map[string]string{"bgp": fmt.Sprintf(", as: %d", 65000+n)}[protocol]
		}
		request := parseRequest(t, fmt.Sprintf(`network: %s
tenant: root
colocate: forbidden
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r1, host: h3, protocol: %[1]s%[2]s}, {name: r, protocol: %[1]s%[3]s}, {name: r2, host: h4, protocol: %[1]s%[4]s}]
links:
  - {name: a1, ends: [a, r1], rate: 50Mbit}
  - {name: left, ends: [r1, r], rate: 50Mbit}
  - {name: right, ends: [r, r2], rate: 50Mbit}
  - {name: b2, ends: [r2, b], rate: 50Mbit}
`, protocol, as(1), as(2), as(3)))
		s.admit(request)
		id := idOf(request)
		s.ready(id)
		a, b := node{"h1", id, "a"}, node{"h2", id, "b"}
		stream := s.stream(a, b)
		flows := []*flow{s.flowOf(a, b, time.Millisecond), s.flowOf(b, a, time.Millisecond)}
		was, is := s.leaves(id, "r")
		eventually(t, time.Minute, func() error { // daemons have learned all, and nothing is kept any more
			r := s.sublet("exec", protocol+"/r1", "--", "ip", "-N", "route")
			if learned := strings.Contains(r.out, " metric 20 "); !learned || strings.Contains(r.out, "proto 157") {
				return fmt.Errorf("%s: r1 has\n%s%s", protocol, r.out, r.err)
			}
			return nil
		})
		move := fmt.Sprintf("%s: from %s to %s", protocol, was, is)
		arrived(t, move, 500, flows...)
		goesOn(t, move, stream)
		s.settled()
		s.must("down", protocol)
		s.gone(id)
	}
}

// TestOpenFlowSwitchesMove: a leased OpenFlow switch goes to another host with its
// entries and what they have counted, and its controller controls it there.
//
//	a@h1 - s1@h4 or h5 - b@h2, ctl@h3
func TestOpenFlowSwitchesMove(t *testing.T) {
	t.Parallel()
	openFlowSwitchesMove(t, vnet.DatapathKernel)
}

func TestSoakOpenFlowSwitchesMove(t *testing.T) {
	t.Parallel()
	openFlowSwitchesMove(t, vnet.DatapathProcess)
}

func openFlowSwitchesMove(t *testing.T, datapath string) {
	s := newSupervisor(t, meshOf(5))
	text := strings.NewReplacer("name: s1, host: h1,", "name: s1, datapath: "+datapath+",", "name: ctl\n    host: h2\n", "name: ctl\n    host: h3\n",
		"network: learning", "network: learning\ntenant: root\ncolocate: forbidden").Replace(learning(t))
	request := parseRequest(t, text)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	a, b := node{"h1", id, "a"}, node{"h2", id, "b"}
	eventually(t, 20*time.Second, func() error { return s.crosses("learning/a", "b") })
	flows := []*flow{s.flowOf(a, b, time.Millisecond), s.flowOf(b, a, time.Millisecond)}
	time.Sleep(time.Second)
	counted := s.passedEntries("learning/s1")
	if counted < 500 {
		t.Fatalf("entries have counted %d packets", counted)
	}
	was, is := s.leaves(id, "s1")
	arrived(t, fmt.Sprintf("from %s to %s", was, is), 500, flows...)
	if now := s.passedEntries("learning/s1"); now < counted {
		t.Errorf("entries have counted %d packets, and %d before they moved", now, counted)
	}
	eventually(t, patience, func() error {
		if out := s.must("flows", "status", "learning/s1"); strings.Contains(out, "is not connected") {
			return fmt.Errorf("the switch says:\n%s", out)
		}
		return nil
	})
	s.settled()
}

// TestOpenFlowSwitchesInBandMove: switches whose control goes by the links of data, that of
// s2 through s1, go to other hosts with their entries, and are controlled there.
//
//	a@h1 - s1 - s2 - b@h2
//	       |
//	     ctl@h3            s1 and s2: two of h4, h5, h6
func TestOpenFlowSwitchesInBandMove(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, meshOf(6))
	text := strings.NewReplacer("network: band", "network: band\ntenant: root\ncolocate: forbidden", "datapath_id: 1, host: h1,", "datapath_id: 1,",
		"datapath_id: 2, host: h2}", "datapath_id: 2}", "name: ctl\n    host: h1\n", "name: ctl\n    host: h3\n").Replace(inBand(t))
	request := parseRequest(t, text)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	a, b := node{"h1", id, "a"}, node{"h2", id, "b"}
	eventually(t, 20*time.Second, func() error { return s.crosses("band/a", "b") })
	for _, name := range []string{"s2", "s1", "s2"} {
		flows := []*flow{s.flowOf(a, b, time.Millisecond), s.flowOf(b, a, time.Millisecond)}
		time.Sleep(time.Second)
		was, is := s.leaves(id, name)
		eventually(t, patience, func() error {
			for _, each := range []string{"band/s1", "band/s2"} {
				if out := s.must("flows", "status", each); strings.Contains(out, "is not connected") {
					return fmt.Errorf("%s says:\n%s", each, out)
				}
			}
			return nil
		})
		arrived(t, fmt.Sprintf("%s from %s to %s", name, was, is), 500, flows...)
	}
	s.settled()
}

// passedEntries is what the entries of a switch that lead somewhere have counted.
func (l *lab) passedEntries(name string) (packets uint64) {
	l.t.Helper()
	for _, f := range decode[[]report.Flow](l.t, l.must("flows", name, "-o", "json")) {
		if f.Priority > 0 {
			packets += f.Packets
		}
	}
	return packets
}

// TestRoutersMakeRoom: 80 of 100 Mbit/s at a host do not fit beside 50 of a router
// there, and do once it is elsewhere; what it carries goes on meanwhile.
//
//	a@h1 - r@h3 - b@h2
//	c@h1 - d@h3 - e@h2
//
// Links of the substrate lead from h1 and from h2 to h3 and h4.
func TestRoutersMakeRoom(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
  - {name: h3, cpu: 4, memory: 4GiB}
  - {name: h4, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h3], capacity: 100Mbit, latency: 1ms}
  - {ends: [h3, h2], capacity: 100Mbit, latency: 1ms}
  - {ends: [h1, h4], capacity: 100Mbit, latency: 1ms}
  - {ends: [h4, h2], capacity: 100Mbit, latency: 1ms}
`)
	request := parseRequest(t, `network: first
tenant: root
movable: true
colocate: forbidden
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r}]
links:
  - {name: ar, ends: [a, r], rate: 50Mbit}
  - {name: rb, ends: [r, b], rate: 50Mbit}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	was := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["r"]
	second := s.file("second.yaml", fmt.Sprintf(`network: second
nodes: [{name: c, host: h1}, {name: d, host: %s}, {name: e, host: h2}]
links:
  - {ends: [c, d], rate: 80Mbit}
  - {ends: [d, e], rate: 80Mbit}
`, was))
	other := vnet.HostID("h3")
	if was == other {
		other = "h4"
	}
	foretold := fmt.Sprintf("root/first: r goes from %s to %s, with 2 links (ar, rb): interrupted for up to 20ms", was, other)
	if out := s.must("offers", second); !strings.Contains(out, foretold) {
		t.Errorf("it is not foretold that %s:\n%s", foretold, out)
	}
	a, b := node{"h1", id, "a"}, node{"h2", id, "b"}
	stream := s.stream(a, b)
	flows := []*flow{s.flowOf(a, b, time.Millisecond), s.flowOf(b, a, time.Millisecond)}
	if r := s.sublet("up", second); r.code != 0 || !strings.Contains(r.err, "to make room, "+foretold) {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	s.moved(id)
	if is := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["r"]; is != other {
		t.Errorf("r is on %s", is)
	}
	arrived(t, "room is made", 500, flows...)
	goesOn(t, "room is made", stream)
	s.settled()
}

// TestMovesGoOnAfterKills: the server and an agent are killed while a router moves; it
// arrives all the same, and nothing of it is left behind.
func TestMovesGoOnAfterKills(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, meshOf(4))
	request := parseRequest(t, `network: live
tenant: root
colocate: forbidden
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r}]
links:
  - {name: ar, ends: [a, r], rate: 50Mbit}
  - {name: rb, ends: [r, b], rate: 50Mbit}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	for _, killed := range []string{"server", "agent-h1"} {
		was := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["r"]
		s.must("drain", string(was))
		s.restart(killed, 100*time.Millisecond)
		s.moved(id)
		if is := got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["r"]; is == was {
			t.Errorf("r is still on %s after %s was killed", was, killed)
		}
		s.must("undrain", string(was))
		s.settled()
		s.flow(node{"h1", id, "a"}, node{"h2", id, "b"}).end() // it flows
	}
}
