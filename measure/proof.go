package measure

import (
	"cmp"
	"time"

	"sublet/vnet"
)

// What makes a second a broken one.
const (
	// wantedFor is in how many seconds one after the other the minimum must have
	// been offered: the ends of a link are read at different instants.
	wantedFor = 3
	// there is the part of the minimum that must be carried: readings lie up to
	// some ms beside the second that they are about.
	there = 0.97
	// longest is the time between two readings beyond which a host is said to be
	// short of processor: what it counted then tells nothing of its links.
	longest = 1700 * time.Millisecond
	// mostLost is the part of the frames that may be missing of a link that is not
	// filled, and fewest how many must be missing at least.
	mostLost = 0.02
	fewest   = 20
)

// End is what was counted at one end of a link in about a second.
type End struct {
	Span    time.Duration
	Rate    vnet.Rate // of frames that came in there
	Packets uint64    // the same
	Dropped uint64    // of these, because the rate's queue was full
}

// Second is what is known of one direction of a link after one more second.
type Second struct {
	Min     vnet.Rate
	Part    float64 // of Min that is promised for frames as small as those that enter; 0: all
	First   *End    // where frames enter; nil: no word of it
	Last    *End    // where they leave; nil: no word of it
	Trouble string  // that is known of the link; "": none
	Busy    string  // the same of processors of its hosts, of which queues fill
}

// Prover judges one direction of a link, second by second. The zero value is ready.
type Prover struct {
	min     vnet.Rate
	wanted  int // seconds one after the other in which the minimum was offered
	filled  int // the same, in which frames were dropped and less than the minimum carried
	missing int // the same, in which frames got lost on the way
	before  vnet.Rate
}

// Add judges a second: whether the minimum was there if it was wanted, what part
// of it, and why it was not, or was not tested although it may have been wanted, or
// frames were dropped all the same.
func (p *Prover) Add(s Second) (outcome vnet.Outcome, part float64, cause string) {
	if s.First == nil || s.Last == nil {
		*p = Prover{}
		return vnet.NotTested, 1, "a host does not tell what it counts"
	}
	if s.Min == 0 || s.Min != p.min {
		*p = Prover{min: s.Min}
		return vnet.NotTested, 1, ""
	}
	if max(s.First.Span, s.Last.Span) > longest {
		*p = Prover{min: s.Min}
		return vnet.NotTested, 1, "a host was short of processor: its counters were read late"
	}
	carried := max(s.Last.Rate, p.before) // the far end may be read just before traffic began
	p.before = s.Last.Rate
	promised := float64(s.Min)
	if s.Part > 0 {
		promised *= s.Part
	}
	short := float64(carried) < there*promised
	p.wanted = next(p.wanted, float64(s.First.Rate) >= promised)
	p.filled = next(p.filled, short && float64(s.First.Dropped) > mostLost*float64(s.First.Packets) && s.First.Dropped >= fewest)
	p.missing = next(p.missing, lostOnTheWay(s))
	part = float64(carried) / promised
	switch {
	case p.missing >= wantedFor && s.Last.Packets == 0:
		return vnet.Broken, 0, whyOf(s.Trouble, "nothing arrives at the far end")
	case p.wanted >= wantedFor && short && s.First.Dropped >= fewest, p.filled >= wantedFor:
		return vnet.Broken, part, whyOf(cmp.Or(s.Trouble, s.Busy), "frames wait and are dropped at the near end although less than the minimum is carried")
	case p.missing >= wantedFor && short, p.missing > 0 && p.wanted >= wantedFor && short:
		return vnet.Broken, min(part, 1), whyOf(s.Trouble, "frames get lost on the way")
	case p.wanted >= wantedFor && short:
		return vnet.Broken, part, whyOf(cmp.Or(s.Trouble, s.Busy), "less arrives than the minimum")
	case p.wanted >= wantedFor && s.First.Dropped >= fewest:
		return vnet.Kept, part, "the queue was full: more was offered than the rate allows"
	case p.wanted >= wantedFor:
		return vnet.Kept, part, ""
	}
	return vnet.NotTested, 1, ""
}

// next counts seconds one after the other.
func next(count int, again bool) int {
	if !again {
		return 0
	}
	return count + 1
}

// lostOnTheWay says that frames which were sent did not arrive.
func lostOnTheWay(s Second) bool {
	sent := s.First.Packets - min(s.First.Dropped, s.First.Packets)
	if s.Last.Packets >= sent {
		return false
	}
	lost := sent - s.Last.Packets
	return lost >= fewest && float64(lost) > mostLost*float64(sent)
}

// whyOf is what is known of the cause, else what shows of it.
func whyOf(trouble, shows string) string {
	if trouble != "" {
		return trouble + " (" + shows + ")"
	}
	return shows
}

// Minutes adds up the seconds of one direction of a link to runs of minutes.
type Minutes struct {
	Link      string
	Direction vnet.Direction
	Of        string        // vnet.ProofRun.Of
	run       vnet.ProofRun // minutes that are over
	now       vnet.ProofRun // the one that is not
	measured  []float64     // latencies of it, in us
	untested  string        // the first cause of it for a second that was not tested
}

// After so many minutes a run is handed over even if the next minutes are like it.
const (
	longestRun  = 60
	longestIdle = 24 * 60 // of minutes in which nothing was tested
)

// Add notes a judged second, and returns runs that are over.
func (m *Minutes) Add(at time.Time, outcome vnet.Outcome, part float64, cause string) (over []vnet.ProofRun) {
	if start := at.Truncate(time.Minute).UTC(); !start.Equal(m.now.From) {
		over = m.close()
		m.now = vnet.ProofRun{Link: m.Link, Direction: m.Direction, Of: m.Of, From: start, Minutes: 1, Outcome: vnet.NotTested, Worst: 1}
		m.untested, m.measured = "", nil
	}
	if outcome == vnet.NotTested {
		m.untested = cmp.Or(m.untested, cause)
		return over
	}
	m.now.Tested++
	m.now.Worst = min(m.now.Worst, part)
	switch {
	case outcome == vnet.Broken && m.now.Broken == 0: // what broke it counts, not what was before
		m.now.Outcome, m.now.Cause = vnet.Broken, cause
	case m.now.Outcome == vnet.NotTested:
		m.now.Outcome, m.now.Cause = vnet.Kept, cause
	}
	if outcome == vnet.Broken {
		m.now.Broken++
	}
	m.now.Cause = cmp.Or(m.now.Cause, cause)
	return over
}

// Measured notes round trips of the present minute.
func (m *Minutes) Measured(rtts []time.Duration) {
	if room := mostMeasured - len(m.measured); len(rtts) <= room {
		m.measured = append(m.measured, oneWay(rtts)...)
	}
}

// mostMeasured is how many round trips of a minute are noted: hosts are not trusted to
// send few probes.
const mostMeasured = 1000

// close takes the minute that is over into the run, if it is like it.
func (m *Minutes) close() (over []vnet.ProofRun) {
	if m.now.Minutes == 0 {
		return nil
	}
	m.settle()
	if m.run.Minutes > 0 && !m.continues() {
		over, m.run = []vnet.ProofRun{m.run}, vnet.ProofRun{}
	}
	if m.run.Minutes == 0 {
		m.run = m.now
	} else {
		m.run = joined(m.run, m.now)
	}
	m.now = vnet.ProofRun{}
	return over
}

// settle gives the present minute its cause if nothing was tested in it, and its
// percentiles.
func (m *Minutes) settle() {
	m.now.P50, m.now.P99 = Percentile(m.measured, 50), Percentile(m.measured, 99)
	if m.now.Tested == 0 {
		m.now.Cause = m.untested
	}
}

// continues says whether the minute that is over is like the run before it. Of minutes
// that were kept the cause of drops is that of the run: it comes and goes.
func (m *Minutes) continues() bool {
	longest := longestRun
	if m.run.Outcome == vnet.NotTested {
		longest = longestIdle
	}
	follows := m.run.From.Add(time.Duration(m.run.Minutes) * time.Minute).Equal(m.now.From)
	return follows && m.run.Outcome == m.now.Outcome && (m.run.Cause == m.now.Cause || m.run.Outcome == vnet.Kept) && m.run.Minutes < longest
}

func joined(a, b vnet.ProofRun) vnet.ProofRun {
	a.Minutes, a.Tested, a.Broken, a.Worst = a.Minutes+b.Minutes, a.Tested+b.Tested, a.Broken+b.Broken, min(a.Worst, b.Worst)
	a.Cause = cmp.Or(a.Cause, b.Cause)
	a.P50, a.P99 = max(a.P50, b.P50), max(a.P99, b.P99)
	return a
}

// Open are the runs that are not over, with the present minute.
func (m *Minutes) Open() (list []vnet.ProofRun) {
	m.settle()
	for _, r := range []vnet.ProofRun{m.run, m.now} {
		if r.Minutes > 0 {
			list = append(list, r)
		}
	}
	return list
}

// Flush hands over what was added up.
func (m *Minutes) Flush() []vnet.ProofRun {
	list := m.Open()
	m.run, m.now = vnet.ProofRun{}, vnet.ProofRun{}
	return list
}

// Prove sums runs of one direction of a link up.
func Prove(p vnet.Proof, runs []vnet.ProofRun) vnet.Proof {
	p.Runs, p.Availability = runs, -1
	for i, r := range runs {
		p.Tested, p.Broken = p.Tested+r.Tested, p.Broken+r.Broken
		if r.Broken > 0 && (p.Worst == nil || r.Worst < p.Worst.Worst) {
			p.Worst = &runs[i]
		}
	}
	if p.Tested > 0 {
		p.Availability = 1 - float64(p.Broken)/float64(p.Tested)
	}
	return p
}
