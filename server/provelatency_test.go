package server

import (
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// latencyOf is a server that judges a link of two tunnels by h2, with a bound of 10 ms.
func latencyOf(t *testing.T) (*Server, vnet.Lease) {
	s, l := provingOf(t, 1)
	l.Request.Links[0].Latency = 10 * time.Millisecond
	l.VNIs = map[string][]vnet.VNI{"l0": {5, 6}}
	l.Rates = map[string][2]vnet.Rate{"l0": {8 * vnet.Kbit, 8 * vnet.Kbit}}
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	return s, l
}

// second is what three hosts count of an idle link, and what the first two find.
func (s *Server) second(l vnet.Lease, at time.Time, i, bytes uint64, rtts ...time.Duration) {
	for _, host := range []vnet.HostID{"h1", "h2", "h3"} {
		c := counting(l, host == "h1", at, i, bytes)
		if host == "h2" {
			for j := range c.Links {
				c.Links[j].Enters, c.Links[j].Leaves = false, false
			}
		}
		for d := range vnet.Directions {
			if (host == "h3") == (d == 1) || host == "h2" {
				c.Latencies = append(c.Latencies, report.LinkLatency{At: d, Number: i, RTTs: rtts})
			}
		}
		s.counted(host, c)
	}
}

// latencyRuns are those of the first direction.
func latencyRuns(s *Server, l vnet.Lease) (list []vnet.ProofRun) {
	for _, r := range s.proving.open(l.ID(), 1) {
		if r.Of == vnet.OfLatency && r.Direction == vnet.Forward {
			list = append(list, r)
		}
	}
	return list
}

// The latency of a link over several hosts is the sum of its tunnels', and judged
// against the link's bound; a minimum that nobody wants is not tested beside it.
func TestLatencyIsProved(t *testing.T) {
	s, l := latencyOf(t)
	now := time.Now().Truncate(time.Minute)
	for i := range uint64(20) {
		s.second(l, now, i, 0, 8*time.Millisecond)
	}
	runs := latencyRuns(s, l)
	if len(runs) != 1 || runs[0].Outcome != vnet.Kept || runs[0].Tested < 15 || runs[0].P50 != 8000 || runs[0].P99 != 8000 {
		t.Fatalf("two tunnels of 8 ms there and back: %+v", runs)
	}
	for i := range uint64(10) {
		s.second(l, now, 20+i, 0, 14*time.Millisecond)
	}
	runs = latencyRuns(s, l)
	if len(runs) != 1 || runs[0].Outcome != vnet.Broken || runs[0].Broken < 6 || runs[0].Cause == "" {
		t.Fatalf("two tunnels of 14 ms there and back: %+v", runs)
	}
	if states := s.proving.latencies(); states[ofLink{l.ID(), "l0", 0}] != vnet.Broken || states[ofLink{l.ID(), "l0", 1}] != vnet.Broken {
		t.Errorf("the states are %v", states)
	}
	for _, r := range s.proving.open(l.ID(), 1) {
		if r.Of == "" && r.Tested > 0 {
			t.Errorf("of the minimum: %+v", r)
		}
	}
}

// What waits in the link's own queue says nothing of the promise, nor what nobody
// measured.
func TestLatencyIsNotTested(t *testing.T) {
	s, l := latencyOf(t)
	now := time.Now().Truncate(time.Minute)
	for i := range uint64(10) {
		s.second(l, now, i, 600, 80*time.Millisecond)
	}
	if runs := latencyRuns(s, l); len(runs) != 1 || runs[0].Outcome != vnet.NotTested || runs[0].P50 != 0 || runs[0].Cause == "" {
		t.Errorf("while it is filled: %+v", runs)
	}
	s, l = latencyOf(t)
	for i := range uint64(10) {
		s.second(l, now, i, 0)
	}
	if runs := latencyRuns(s, l); len(runs) != 1 || runs[0].Outcome != vnet.NotTested || runs[0].Tested != 0 {
		t.Errorf("while probes get lost: %+v", runs)
	}
	s, l = provingOf(t, 1)
	l.Request.Links[0].Latency = time.Microsecond
	l.Rates = map[string][2]vnet.Rate{"l0": {8 * vnet.Kbit, 8 * vnet.Kbit}}
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	for i := range uint64(10) {
		s.second(l, now, i, 0)
	}
	if runs := latencyRuns(s, l); len(runs) != 1 || runs[0].Outcome != vnet.NotTested || runs[0].Cause != "both ends are on one host: nothing is measured there" {
		t.Errorf("within a host: %+v", runs)
	}
}
