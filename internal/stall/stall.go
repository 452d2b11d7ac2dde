// Package stall says how long work was kept from a processor while something
// was measured: what a test or a probe asks that measured too little, before it
// blames what it measured.
//
// Two witnesses are asked, for each sees what the other cannot. A thread on each
// processor that only sleeps is woken late when others have the processor or the
// machine stands still. The kernel's count of stolen time tells of a hypervisor
// that ran other machines, also while no thread was to be woken.
package stall

import (
	"fmt"
	"time"
)

const (
	// nap is how long the sleeping threads sleep at a time.
	nap = time.Millisecond

	// grace is what a thread may be woken late without having been kept from a
	// processor: timers are a tenth of a millisecond late on a quiet virtual
	// machine.
	grace = time.Millisecond

	// costs bounds what a part of the time without a processor explains, as a
	// multiple of it. A queue's timer that is late loses the tokens beyond its
	// burst, and TCP backs off: 0.1 s of 3 s cost 25 % (docs/research/measurements.md,
	// 1 Gbit/s beside other programs).
	costs = 10

	// least is the part of the time that explains anything at all.
	least = 0.0005
)

// Watch is one under way.
type Watch struct {
	begin   time.Time
	ticks   time.Duration
	sleeper *sleeper
}

// Start begins to watch. Stop it.
func Start() *Watch {
	return &Watch{time.Now(), Stolen(), newSleeper()}
}

// Report is how long work was kept from a processor during a watch.
type Report struct {
	Length time.Duration `json:"length_ns"`
	Woken  time.Duration `json:"woken_late_ns,omitempty"` // a thread that only sleeps, on the processor where it was longest
	Stolen time.Duration `json:"stolen_ns,omitempty"`     // by the hypervisor, of all processors
	Queued time.Duration `json:"queued_ns,omitempty"`     // the thread of this process that waited longest
}

// Stop ends the watch.
func (w *Watch) Stop() Report {
	w.sleeper.end()
	return w.soFar()
}

// soFar is what the watch has seen.
func (w *Watch) soFar() Report {
	return Report{Length: time.Since(w.begin), Woken: w.sleeper.most(), Stolen: max(0, Stolen()-w.ticks)}
}

// Lost is how long it was by the worse of the witnesses.
func (r Report) Lost() time.Duration { return max(r.Woken, r.Stolen) }

// Part is that as a part of the time watched.
func (r Report) Part() float64 {
	if r.Length <= 0 {
		return 0
	}
	return float64(r.Lost()) / float64(r.Length)
}

// Explains says whether so much may be why a part of what was expected lacked.
func (r Report) Explains(lacked float64) bool {
	return r.Part() >= least && r.Part()*costs >= lacked
}

func (r Report) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("in %s a thread that only sleeps was woken %s late in all, and the hypervisor took %s", round(r.Length), round(r.Woken), round(r.Stolen))
}
