package measure

import (
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// second is one in which so many Mbit/s were offered of a minimum of 100, so many
// carried, and so many frames dropped at the near end.
func second(offered, carried, dropped int) Second {
	packets := func(mbit int) uint64 { return uint64(mbit) * 1_000_000 / 12_000 }
	return Second{
		Min:   100 * vnet.Mbit,
		First: &End{Span: time.Second, Rate: vnet.Rate(offered) * vnet.Mbit, Packets: packets(offered), Dropped: uint64(dropped)},
		Last:  &End{Span: time.Second, Rate: vnet.Rate(carried) * vnet.Mbit, Packets: packets(carried)},
	}
}

// judged is what the last of equal seconds is.
func judged(n int, s Second) (vnet.Outcome, float64, string) {
	var p Prover
	p.Add(s) // from where on the minimum is known
	for range n - 1 {
		p.Add(s)
	}
	return p.Add(s)
}

func TestSecondsAreJudged(t *testing.T) {
	late, unheard, cut := second(120, 20, 0), second(120, 20, 0), second(10, 0, 0)
	late.First.Span = 3 * time.Second
	unheard.Last = nil
	known := second(120, 0, 0)
	known.Trouble = "link w1 is down"
	for _, c := range []struct {
		name string
		of   Second
		want vnet.Outcome
		says string
	}{
		{"filled and carried", second(120, 100, 1600), vnet.Kept, ""},
		{"just what was promised", second(100, 100, 0), vnet.Kept, ""},
		{"less offered than promised", second(50, 50, 0), vnet.NotTested, ""},
		{"idle", second(0, 0, 0), vnet.NotTested, ""},
		{"rate lowered", second(120, 50, 5800), vnet.Broken, "dropped at the near end"},
		{"rate lowered, TCP", second(52, 50, 160), vnet.Broken, "dropped at the near end"},
		{"wire cut", cut, vnet.Broken, "nothing arrives"},
		{"lossy wire", second(50, 40, 0), vnet.Broken, "lost on the way"},
		{"known cause", known, vnet.Broken, "link w1 is down (nothing arrives"},
		{"few frames of background", second(0, 0, 0), vnet.NotTested, ""},
		{"late reading", late, vnet.NotTested, "short of processor"},
		{"far end silent", unheard, vnet.NotTested, ""},
	} {
		outcome, _, cause := judged(wantedFor, c.of)
		if outcome != c.want || !strings.Contains(cause, c.says) || c.says == "" && cause != "" {
			t.Errorf("%s: %s %q, want %s %q", c.name, outcome, cause, c.want, c.says)
		}
	}
}

// TestEdgesAreNoAlarm: where traffic begins and ends, both ends are read at
// different instants.
func TestEdgesAreNoAlarm(t *testing.T) {
	var p Prover
	for i, s := range []Second{
		second(0, 0, 0), second(0, 0, 0), second(120, 30, 0), second(120, 120, 0), second(120, 120, 0), second(120, 120, 0),
		second(120, 20, 0), second(0, 0, 0), second(120, 0, 0), second(0, 120, 0), second(300, 100, 16000), second(10, 100, 0),
	} {
		if outcome, _, cause := p.Add(s); outcome == vnet.Broken {
			t.Errorf("second %d: broken: %s", i, cause)
		}
	}
}

// TestBrokenIsSaidWithinSeconds of the change.
func TestBrokenIsSaidWithinSeconds(t *testing.T) {
	for _, after := range []Second{second(120, 50, 5800), second(50, 0, 0), second(120, 0, 0)} {
		var p Prover
		for range 10 {
			p.Add(second(120, 100, 1600))
		}
		seconds := 0
		for outcome := vnet.Kept; outcome != vnet.Broken; seconds++ {
			if outcome, _, _ = p.Add(after); seconds > wantedFor {
				t.Fatalf("%+v is not told", after.Last)
			}
		}
		if seconds > wantedFor {
			t.Errorf("%+v is told after %d s", after.Last, seconds)
		}
	}
}

// TestMinutesAreRuns: equal minutes are one run of an hour at most, untested ones
// none, and availability is of tested time.
func TestMinutesAreRuns(t *testing.T) {
	m := Minutes{Link: "l"}
	var runs []vnet.ProofRun
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for s := range 150 * 60 {
		outcome, part, cause := vnet.Kept, 1.0, ""
		switch minute := s / 60; {
		case minute >= 80 && minute < 90:
			outcome = vnet.NotTested
		case minute == 100 && s%60 < 30:
			outcome, part, cause = vnet.Broken, 0.25, "cut"
		}
		runs = append(runs, m.Add(noon.Add(time.Duration(s)*time.Second), outcome, part, cause)...)
	}
	p := Prove(vnet.Proof{}, append(runs, m.Flush()...))
	if len(p.Runs) != 6 || p.Tested != 140*60 || p.Broken != 30 || p.Worst == nil || !p.Worst.From.Equal(noon.Add(100*time.Minute)) || p.Worst.Worst != 0.25 {
		t.Errorf("got %+v", p)
	}
	if want := 1 - 30.0/(140*60); p.Availability != want {
		t.Errorf("availability %g, want %g", p.Availability, want)
	}
	if p := Prove(vnet.Proof{}, nil); p.Availability != -1 {
		t.Errorf("of nothing: %g", p.Availability)
	}
}
