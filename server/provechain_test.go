package server

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// chainSecond is what hosts count of a chain in a second, in packets of 1000 bytes, or of size.
type chainSecond struct {
	came, limited uint64 // where the rate is held
	denied        uint64 // by a firewall
	kept          uint64 // by a program
	arrived       uint64
	why           string
	size          uint64
}

// A chain's promise is that arrives what its rate lets pass: but for what firewalls deny
// and programs keep, unless these are short of processor time.
func TestProofOfChains(t *testing.T) {
	const full = 100 // packets in a second at the rate
	for name, c := range map[string]struct {
		chainSecond
		outcome vnet.Outcome
		cause   string
	}{
		"full":               {chainSecond{came: 105, limited: 5, arrived: full}, vnet.Kept, ""},
		"idle":               {chainSecond{came: 10, arrived: 10}, vnet.NotTested, ""},
		"a little below":     {chainSecond{came: 98, arrived: 98}, vnet.Kept, ""},
		"denied":             {chainSecond{came: 100, denied: 60, arrived: 40}, vnet.Kept, ""},
		"kept by a program":  {chainSecond{came: 100, kept: 60, arrived: 40}, vnet.Kept, ""},
		"short of processor": {chainSecond{came: 100, kept: 60, arrived: 40, why: "ids can use no more"}, vnet.Broken, "short of processor time on h2: ids can use no more"},
		"lost between":       {chainSecond{came: 100, arrived: 70}, vnet.Broken, "on the way"},
		"small":              {chainSecond{came: 1000, arrived: 705, size: 100}, vnet.Kept, ""}, // they pay their headers of 50 bytes
		"small, lost":        {chainSecond{came: 1000, arrived: 600, size: 100}, vnet.Broken, "on the way"},
		"more than promised": {chainSecond{came: 130, arrived: 100}, vnet.Kept, ""},
		"none arrives":       {chainSecond{came: 100}, vnet.Broken, "nothing arrives"},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := provingOf(t, 0)
			l.Request.Chains = []vnet.Chain{{Name: "web", From: "a", To: "b", Via: []string{"ids"}, Rate: full * 8000}}
			rate := [2]vnet.Bandwidth{vnet.Static(full * 8000)}
			for i, ends := range [][2]string{{"a", "ids"}, {"ids", "b"}} {
				l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: []string{"first", "second"}[i], Ends: ends, Bandwidth: rate, Chain: "web"})
			}
			s.proving.news.tell([]vnet.Lease{l}, nil, nil)
			now := time.Now().Truncate(time.Minute)
			for i := range uint64(10) {
				near, far := c.counts(l.ID(), i)
				near.At, far.At = now.Add(time.Duration(i)*time.Second), now.Add(time.Duration(i)*time.Second)
				s.counted("h1", near)
				s.counted("h2", far)
			}
			runs := s.proving.open(l.ID(), 1)
			if len(runs) != 1 {
				t.Fatalf("runs are %+v", runs)
			}
			r := runs[0]
			if r.Link != "chain web" || r.Outcome != c.outcome || !strings.Contains(r.Cause, c.cause) || (c.outcome == vnet.NotTested) != (r.Tested == 0) {
				t.Errorf("%+v", r)
			}
			promised := s.proving.promises()[ofLink{l.ID(), "chain web", vnet.Forward}] == vnet.Broken
			if broken := brokenOf(l, s.proving.promises()); promised != (len(broken) == 1) || promised != (c.outcome == vnet.Broken) {
				t.Errorf("broken are %v", broken)
			}
		})
	}
}

// counts are those of both hosts after so many seconds.
func (c chainSecond) counts(id vnet.LeaseID, seconds uint64) (near, far report.Counts) {
	way := func(part report.ChainPart, why string) report.LinkWay {
		return report.LinkWay{Lease: id, Link: vnet.ChainWay("web"), Part: part, Why: why, Enters: part == report.Begins, Leaves: part == report.Ends}
	}
	times := func(v report.LinkSums) report.LinkSums {
		for i := range v {
			v[i] *= seconds
		}
		return v
	}
	size := cmp.Or(c.size, 1000)
	in := c.came - c.limited - c.denied
	near = report.Counts{Set: 1, Links: []report.LinkWay{way(report.Begins, "")}, Values: []report.LinkSums{times(report.LinkSums{c.came, c.came * size, c.limited})}}
	far = report.Counts{Set: 2, Links: []report.LinkWay{way(report.Through, c.why), way(report.Ends, "")}, Values: []report.LinkSums{
		times(report.LinkSums{c.denied, in, in - c.kept}), times(report.LinkSums{c.arrived, c.arrived * size}),
	}}
	return near, far
}

// A chain that is no longer wanted is not broken because the host where it ends is read
// before the one where it begins.
func TestProofOfAnEnd(t *testing.T) {
	s, l := provingOf(t, 0)
	l.Request.Chains = []vnet.Chain{{Name: "web", From: "a", To: "b", Via: []string{"ids"}, Rate: 800_000}}
	rate := [2]vnet.Bandwidth{vnet.Static(800_000)}
	l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: "first", Ends: [2]string{"a", "ids"}, Bandwidth: rate, Chain: "web"}, vnet.VirtualLink{Name: "second", Ends: [2]string{"ids", "b"}, Bandwidth: rate, Chain: "web"})
	s.proving.news.tell([]vnet.Lease{l}, nil, nil)
	now := time.Now().Truncate(time.Minute)
	all := chainSecond{came: 100, arrived: 100}
	for i := range uint64(12) {
		near, far := all.counts(l.ID(), min(i, 6)) // packets end at the sixth second
		near.At, far.At = now.Add(time.Duration(i)*time.Second+300*time.Millisecond), now.Add(time.Duration(i)*time.Second)
		s.counted("h2", far)
		if i == 7 || i == 8 { // the host does not answer in time
			continue
		}
		s.counted("h1", near)
	}
	for _, r := range s.proving.open(l.ID(), 1) {
		if r.Broken != 0 {
			t.Errorf("%+v", r)
		}
	}
}
