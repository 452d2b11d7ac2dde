package measure

import (
	"testing"
	"time"

	"sublet/vnet"
)

const ms = time.Millisecond

// A bound is broken when half the median round trip of three seconds with probes, or half
// the round trip of four probes, one after the other, was over it, whatever seconds without
// lie between.
func TestLatencyIsJudgedBySeconds(t *testing.T) {
	var p LatencyProver
	good, slow, none := []time.Duration{10 * ms, 90 * ms, 10 * ms}, []time.Duration{30 * ms, 10 * ms, 30 * ms}, []time.Duration(nil)
	all := []time.Duration{30 * ms, 30 * ms}
	for i, c := range []struct {
		rtts     []time.Duration
		untested string
		trouble  string
		outcome  vnet.Outcome
		part     float64
		cause    string
	}{
		{good, "", "", vnet.Kept, 2, ""},
		{slow, "", "", vnet.NotTested, 1, ""},
		{slow, "", "", vnet.NotTested, 1, ""},
		{good, "", "", vnet.Kept, 2, ""},
		{slow, "", "", vnet.NotTested, 1, ""},
		{none, "", "", vnet.NotTested, 1, ""},
		{slow, "", "", vnet.NotTested, 1, ""},
		{slow, "", "", vnet.Broken, 2. / 3, isOver},
		{slow, "", "w1 is down", vnet.Broken, 2. / 3, "w1 is down (" + isOver + ")"},
		{slow, "it is filled", "", vnet.NotTested, 1, "it is filled"},
		{slow, "", "", vnet.NotTested, 1, ""},
		{good, "", "", vnet.Kept, 2, ""},
		{all, "", "", vnet.NotTested, 1, ""},
		{none, "", "", vnet.NotTested, 1, ""},
		{all, "", "", vnet.Broken, 2. / 3, isOver},
	} {
		outcome, part, cause := p.Add(LatencySecond{Bound: 10 * ms, RTTs: c.rtts, Untested: c.untested, Trouble: c.trouble})
		if outcome != c.outcome || part != c.part || cause != c.cause {
			t.Errorf("second %d is %s, %g, %q; want %s, %g, %q", i, outcome, part, cause, c.outcome, c.part, c.cause)
		}
	}
	p = LatencyProver{bound: 10 * ms}
	for i, want := range []vnet.Outcome{vnet.NotTested, vnet.NotTested, vnet.Broken} {
		if outcome, _, _ := p.Add(LatencySecond{Bound: 10 * ms, RTTs: all, Busy: "a host is short of processors"}); outcome != want {
			t.Errorf("second %d on a busy host is %s, want %s", i, outcome, want)
		}
	}
	if outcome, _, _ := p.Add(LatencySecond{RTTs: slow}); outcome != vnet.NotTested {
		t.Errorf("without a bound: %s", outcome)
	}
}

// Minutes have their percentiles, and runs the largest of them.
func TestMinutesOfLatency(t *testing.T) {
	m := Minutes{Link: "l", Of: vnet.OfLatency}
	begin := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	for second := range 180 {
		m.Add(begin.Add(time.Duration(second)*time.Second), vnet.Kept, 2, "")
		rtt := 2 * ms
		if second == 70 || second == 71 { // two of 120 in that minute
			rtt = 40 * ms
		}
		m.Measured([]time.Duration{rtt, 2 * ms})
	}
	runs := m.Flush() // of the minutes that are over, and of the last one
	if len(runs) != 2 || runs[0].Of != vnet.OfLatency || runs[0].Minutes != 2 || runs[0].P50 != 1000 || runs[0].P99 != 20_000 {
		t.Fatalf("%+v", runs)
	}
	p := ProveLatency(4*ms, runs)
	if p.Bound != 4000 || p.Tested != 180 || p.Broken != 0 || p.Availability != 1 || p.P50 != 1000 || p.P99 != 20_000 || p.Worst != nil {
		t.Errorf("%+v", p)
	}
	if p := ProveLatency(4*ms, nil); p.Availability != -1 {
		t.Errorf("of nothing: %+v", p)
	}
}
