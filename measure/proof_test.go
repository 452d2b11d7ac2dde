package measure

import (
	"encoding/json"
	"math/rand/v2"
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
	busy, lossy := second(120, 50, 5800), second(50, 40, 0)
	busy.Busy, lossy.Busy = "host h1 was short of processors", "host h1 was short of processors"
	for _, c := range []struct {
		name string
		of   Second
		want vnet.Outcome
		says string
	}{
		{"filled and carried", second(120, 100, 1600), vnet.Kept, "the queue was full"},
		{"just what was promised", second(100, 100, 0), vnet.Kept, ""},
		{"less offered than promised", second(50, 50, 0), vnet.NotTested, ""},
		{"idle", second(0, 0, 0), vnet.NotTested, ""},
		{"rate lowered", second(120, 50, 5800), vnet.Broken, "dropped at the near end"},
		{"rate lowered, TCP", second(52, 50, 160), vnet.Broken, "dropped at the near end"},
		{"wire cut", cut, vnet.Broken, "nothing arrives"},
		{"lossy wire", second(50, 40, 0), vnet.Broken, "lost on the way"},
		{"known cause", known, vnet.Broken, "link w1 is down (nothing arrives"},
		{"host busy, rate lowered", busy, vnet.Broken, "host h1 was short of processors (frames wait"},
		{"host busy, lossy wire", lossy, vnet.Broken, "frames get lost on the way"},
		{"few frames of background", second(0, 0, 0), vnet.NotTested, ""},
		{"late reading", late, vnet.NotTested, "short of processor"},
		{"far end silent", unheard, vnet.NotTested, "does not tell"},
	} {
		outcome, _, cause := judged(wantedFor, c.of)
		if outcome != c.want || !strings.Contains(cause, c.says) || c.says == "" && cause != "" {
			t.Errorf("%s: %s %q, want %s %q", c.name, outcome, cause, c.want, c.says)
		}
	}
}

// TestLossIsNamedAtOnce: a filled link of which frames get lost is broken in the first
// second, and that they get lost is said then.
func TestLossIsNamedAtOnce(t *testing.T) {
	var p Prover
	for range 5 {
		p.Add(second(100, 100, 0))
	}
	p.Add(second(100, 75, 0)) // the second before may have been carried in part
	if outcome, _, cause := p.Add(second(100, 75, 0)); outcome != vnet.Broken || !strings.Contains(cause, "lost on the way") {
		t.Errorf("lost: %s %q", outcome, cause)
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

// TestMinutesAreRuns: equal minutes are one run, of an hour at most if something was
// tested, and availability is of tested time.
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
	if len(p.Runs) != 7 || p.Tested != 140*60 || p.Broken != 30 || p.Worst == nil || !p.Worst.From.Equal(noon.Add(100*time.Minute)) || p.Worst.Worst != 0.25 {
		t.Errorf("got %+v", p)
	}
	if want := 1 - 30.0/(140*60); p.Availability != want {
		t.Errorf("availability %g, want %g", p.Availability, want)
	}
	if r := p.Runs[2]; r.Outcome != vnet.NotTested || r.Minutes != 10 || r.Tested != 0 {
		t.Errorf("what was not tested is %+v", r)
	}
	if p := Prove(vnet.Proof{}, nil); p.Availability != -1 {
		t.Errorf("of nothing: %g", p.Availability)
	}
}

// TestMinutesHaveTheirCause: that of what broke the promise, else that of what kept it
// from being tested, else that of drops.
func TestMinutesHaveTheirCause(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		outcomes []vnet.Outcome
		causes   []string
		want     vnet.Outcome
		cause    string
	}{
		{[]vnet.Outcome{vnet.NotTested, vnet.NotTested}, []string{"", "a host was short"}, vnet.NotTested, "a host was short"},
		{[]vnet.Outcome{vnet.NotTested, vnet.Kept}, []string{"a host was short", ""}, vnet.Kept, ""},
		{[]vnet.Outcome{vnet.Kept, vnet.Kept}, []string{"", "the queue was full"}, vnet.Kept, "the queue was full"},
		{[]vnet.Outcome{vnet.Kept, vnet.Broken, vnet.Broken}, []string{"the queue was full", "cut", "later"}, vnet.Broken, "cut"},
	} {
		var m Minutes
		for i, outcome := range c.outcomes {
			m.Add(noon.Add(time.Duration(i)*time.Second), outcome, 1, c.causes[i])
			m.Open() // who looks changes nothing
		}
		if runs := m.Flush(); len(runs) != 1 || runs[0].Outcome != c.want || runs[0].Cause != c.cause {
			t.Errorf("%v: %+v, want %s, %q", c.outcomes, runs, c.want, c.cause)
		}
	}
}

// dayOf is what the ends of a link of 100 Mbit/s count in each second of a day in
// which nothing, something, just the minimum, or more than the maximum of 120 is
// offered, for times that end anywhere in a second. An end is read up to 10 ms beside
// the second.
func dayOf(r *rand.Rand, do func(s Second)) {
	offered, left := 0.0, 0.0 // Mbit/s, and for how many ms yet
	var sums [2]float64       // Mbit that each end has counted since it was read
	dropped := 0.0
	for ms := 0; ms < 24*60*60*1000; ms++ {
		if left--; left < 0 {
			offered, left = []float64{0, 0, 95 * r.Float64(), 100.5, 100.5 + 300*r.Float64()}[r.IntN(5)], 30e3+600e3*r.Float64()
		}
		sums[0] += offered / 1000
		sums[1] += min(offered, 120) / 1000
		dropped += max(offered-120, 0) / 1000
		if ms%1000 != 500 {
			continue
		}
		s := Second{Min: 100 * vnet.Mbit, First: counted(sums[0]), Last: counted(sums[1])}
		s.First.Dropped = counted(dropped).Packets
		sums, dropped = [2]float64{}, 0
		for i, end := range []*End{s.First, s.Last} { // moved to the next second, or from it
			late := 0.001 * (float64(r.IntN(21)) - 10)
			moved := late * []float64{offered, min(offered, 120)}[i]
			*end = End{Span: end.Span, Rate: end.Rate + vnet.Rate(moved*1e6), Packets: counted(float64(end.Rate)/1e6 + moved).Packets, Dropped: end.Dropped}
			sums[i] = -moved
		}
		do(s)
	}
}

// counted is what an end counts of so many Mbit/s, in frames of 1,500 bytes.
func counted(mbit float64) *End {
	return &End{Span: time.Second, Rate: vnet.Rate(mbit * 1e6), Packets: uint64(mbit * 1e6 / 12_000)}
}

// TestADayWithoutAlarm: nothing is said to be broken of a link on which all is well,
// and what is kept of its day is small.
func TestADayWithoutAlarm(t *testing.T) {
	for seed := range uint64(3) {
		var p Prover
		m := Minutes{Link: "a-b"}
		var runs []vnet.ProofRun
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		dayOf(rand.New(rand.NewPCG(seed, 24)), func(s Second) {
			outcome, part, cause := p.Add(s)
			if outcome == vnet.Broken {
				t.Fatalf("seed %d, %s: broken, %.2f of the minimum: %s; %+v %+v", seed, at.Format(time.TimeOnly), part, cause, s.First, s.Last)
			}
			runs = append(runs, m.Add(at, outcome, part, cause)...)
			at = at.Add(time.Second)
		})
		proof := Prove(vnet.Proof{}, append(runs, m.Flush()...))
		if proof.Availability != 1 || proof.Tested < 4*60*60 {
			t.Errorf("seed %d: available %g of %d s", seed, proof.Availability, proof.Tested)
		}
		text, err := json.Marshal(proof.Runs)
		if err != nil || len(text) > 64<<10 {
			t.Errorf("seed %d: %d bytes in %d runs, %v", seed, len(text), len(runs), err)
		}
		minutes := 0
		for _, r := range proof.Runs {
			minutes += r.Minutes
		}
		if minutes != 24*60 {
			t.Errorf("seed %d: verdicts of %d minutes", seed, minutes)
		}
	}
}
