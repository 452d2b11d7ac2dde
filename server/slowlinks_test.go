package server

import (
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// A path that takes longer than the substrate says is told within seconds, once, and
// that it is as stated again; nothing is told of single seconds.
func TestSlowLinksAreTold(t *testing.T) {
	s, l := latencyOf(t)
	l.Mapping.Links = map[string]vnet.Path{"l0": {"w1", "w2"}}
	sub := vnet.Substrate{Links: []vnet.SubstrateLink{{Name: "w1", Latency: time.Millisecond}, {Name: "w2", Latency: 2 * time.Millisecond}}}
	s.proving.news.tell([]vnet.Lease{l}, nil, &sub)
	now, i := time.Now().Truncate(time.Minute), uint64(0)
	told := func(seconds int, rtt time.Duration) string {
		for range seconds {
			s.second(l, now, i, 0, rtt)
			i++
		}
		list, err := s.journal.happened("", time.Time{}, func(h vnet.Happening) bool { return h.Kind == "link" })
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, h := range list {
			text = append(text, h.What+" "+h.State+": "+h.Why)
		}
		return strings.Join(text, "; ")
	}
	const ms = time.Millisecond
	if got := told(10, 3*ms); got != "" {
		t.Errorf("as stated: %s", got)
	}
	if got := told(2, 9*ms) + told(10, 3*ms); got != "" {
		t.Errorf("slow for two seconds: %s", got)
	}
	slow := "w1, w2 slow: takes 9ms, and 3ms by the substrate"
	if got := told(3, 9*ms); got != slow {
		t.Errorf("slow: %s", got)
	}
	if got := told(10, 3*ms); got != slow+"; w1, w2 as stated: takes 3ms, and 3ms by the substrate" && got != "w1, w2 as stated: takes 3ms, and 3ms by the substrate; "+slow {
		t.Errorf("and not: %s", got)
	}
}
