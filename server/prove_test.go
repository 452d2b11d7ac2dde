package server

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// provingOf is a server that judges a lease of n links between two hosts.
func provingOf(t testing.TB, n int) (*Server, vnet.Lease) {
	l := vnet.Lease{Serial: 1, Stage: -1, State: vnet.Running, Request: vnet.Request{Tenant: "alice", Network: "net"}}
	for i := range n {
		rate := vnet.Static(8 * vnet.Kbit)
		l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: fmt.Sprint("l", i), Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{rate, rate}})
	}
	s := &Server{now: time.Now, log: slog.New(slog.DiscardHandler), proving: newProving(), metering: newMetering(), feeds: newFeeds()}
	s.journal = openJournal(t.TempDir(), s.log)
	s.journal.clean(s.now(), func(string) bool { return true })
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	return s, l
}

// counting is what a host has counted of all links after so many seconds, with so
// many bytes a second, and frames of 100 bytes.
func counting(l vnet.Lease, first bool, at time.Time, seconds, bytes uint64) (c report.Counts) {
	c = report.Counts{At: at.Add(time.Duration(seconds) * time.Second), Set: 1}
	for _, link := range l.Request.Links {
		for d := range vnet.Direction(2) {
			enters := first == (d == vnet.Forward)
			c.Links = append(c.Links, report.LinkWay{Lease: l.ID(), Link: link.Name, Direction: d, Enters: enters, Leaves: !enters})
			c.Values = append(c.Values, report.LinkSums{seconds * bytes / 100, seconds * bytes})
		}
	}
	return c
}

// What is judged follows the book: links that are filled are kept, nothing is of a
// lease that ended, and of one that was admitted anew nothing of the former.
func TestProofFollowsTheBook(t *testing.T) {
	s, l := provingOf(t, 1)
	now := time.Now().Truncate(time.Minute)
	second := func(i, bytes uint64) {
		s.counted("h1", counting(l, true, now, i, bytes))
		s.counted("h2", counting(l, false, now, i, bytes))
	}
	tested := func(serial uint64) (sum int) {
		for _, r := range s.proving.open(l.ID(), serial) {
			if r.Outcome == vnet.Broken {
				t.Errorf("%+v", r)
			}
			sum += r.Tested
		}
		return sum
	}
	for i := range uint64(10) {
		second(i, 2000)
	}
	if n := tested(1); n < 10 || n > 14 { // of two directions, each from the third second on
		t.Errorf("%d seconds are tested", n)
	}
	l.Serial = 2
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	second(10, 2000)
	if n := tested(1) + tested(2); n != 0 {
		t.Errorf("of another lease of that name %d seconds are tested", n)
	}
	l.State = vnet.Ended
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	second(11, 2000)
	if len(s.proving.about)+len(s.proving.directions) != 0 {
		t.Errorf("of an ended lease there is %v", s.proving.directions)
	}
}

// Another link beside one does not cost it a second.
func TestProofGoesOnBesideNewLinks(t *testing.T) {
	s, l := provingOf(t, 2)
	now := time.Now().Truncate(time.Minute)
	for i := range uint64(20) {
		for _, first := range []bool{true, false} {
			c := counting(l, first, now, i, 2000)
			if i < 10 {
				c.Set, c.Links, c.Values = 2, c.Links[2:], c.Values[2:]
			}
			s.counted(vnet.HostID(fmt.Sprint(first)), c)
		}
	}
	sums := make(map[string]int)
	for _, r := range s.proving.open(l.ID(), 1) {
		sums[r.Link] += r.Tested
	}
	if sums["l1"] < 30 || sums["l0"] < 10 || sums["l0"] >= sums["l1"] {
		t.Errorf("tested for %v seconds", sums)
	}
}

// BenchmarkProof is a second of proving 1,000 links between two hosts: what agents
// answer, latencies included, is decoded and judged.
func BenchmarkProof(b *testing.B) {
	s, l := provingOf(b, 1000)
	now := time.Now()
	seconds := make([][2][]byte, 100)
	for i := range seconds {
		for end := range 2 {
			c := counting(l, end == 0, now, uint64(1000000+i), 2000)
			for j := end; j < 2*640; j += 2 { // what agents of so many tunnels find in 2.5 s
				c.Latencies = append(c.Latencies, report.LinkLatency{At: j, Number: uint64(i), RTTs: []time.Duration{40_123}})
			}
			seconds[i][end] = c.Encode(1)
		}
	}
	links := [2][]report.LinkWay{counting(l, true, now, 0, 0).Links, counting(l, false, now, 0, 0).Links}
	for i := 0; b.Loop(); i++ {
		for end := range 2 {
			c, err := report.DecodeCounts(seconds[i%100][end], 1, links[end])
			if err != nil {
				b.Fatal(err)
			}
			s.counted(vnet.HostID(fmt.Sprint(end)), c)
		}
	}
}

// What stands by while a router moves counts nothing, and breaks no promise, however long
// the move takes; nor does the second in which neighbours turn to it.
func TestProofKnowsWhatStandsBy(t *testing.T) {
	s, l := provingOf(t, 1)
	now := time.Now().Truncate(time.Minute)
	l.Mapping.Nodes = map[string]vnet.HostID{"a": "h1", "b": "h3"}
	l.Move = &vnet.Move{From: vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2"}}}
	for i := range uint64(60) {
		carries := vnet.HostID("h2")
		l.Move = &vnet.Move{From: l.Move.From, Phase: vnet.MovePrepares}
		if i >= 20 {
			l.Move.Phase = vnet.MoveSwitches
		}
		if i >= 30 {
			carries = "h3"
		}
		if i >= 40 {
			l.Move.Phase = vnet.MoveLeaves
		}
		s.proving.news.tell([]vnet.Lease{l}, nil, nil)
		s.counted("h1", counting(l, true, now, i, 2000))
		for _, host := range []vnet.HostID{"h2", "h3"} {
			c := counting(l, false, now, i, 2000)
			if host != carries {
				for j := range c.Values { // what it counted before, or nothing
					c.Values[j] = report.LinkSums{}
				}
			}
			s.counted(host, c)
		}
	}
	tested := 0
	for _, r := range s.proving.open(l.ID(), 1) {
		if r.Outcome == vnet.Broken {
			t.Errorf("%+v", r)
		}
		tested += r.Tested
	}
	if tested < 90 { // of 120 in both directions
		t.Errorf("%d seconds are tested", tested)
	}
}

// A node that stands still while it goes to another host breaks no promise of its links,
// and what is lost before and after does.
func TestProofKnowsWhatStandsStill(t *testing.T) {
	for _, movable := range []vnet.NodeMove{"", vnet.MoveCold} {
		s, l := provingOf(t, 1)
		now := time.Now().Truncate(time.Minute)
		l.Request.Nodes = []vnet.VirtualNode{{Name: "a"}, {Name: "b", Movable: movable}}
		l.Mapping.Nodes = map[string]vnet.HostID{"a": "h1", "b": "h3"}
		move := &vnet.Move{From: vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2"}}, Phase: vnet.MoveLeaves}
		for i := range uint64(30) {
			l.Move = nil
			if i >= 10 && i < 20 {
				l.Move = move
			}
			s.proving.news.tell([]vnet.Lease{l}, nil, nil)
			s.counted("h1", counting(l, true, now, i, 2000))
			c := counting(l, false, now, min(i, 10), 2000) // nothing arrives any more
			c.At = now.Add(time.Duration(i) * time.Second)
			s.counted("h3", c)
		}
		broken := 0
		for _, r := range s.proving.open(l.ID(), 1) {
			if r.Direction == vnet.Forward {
				broken += r.Broken
			}
		}
		least, most := 15, 20
		if movable != "" {
			least, most = 3, 8 // from three seconds after the move on
		}
		if broken < least || broken > most {
			t.Errorf("movable %q: %d seconds are broken", movable, broken)
		}
	}
}
