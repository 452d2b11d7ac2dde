package report

import (
	"slices"
	"time"
)

// Latency is what probes between the ends of a tunnel found, asked from this host.
type Latency struct {
	// Number counts the probes that were answered, also those whose RTTs are not kept.
	Number uint64
	// RTTs are the round trips of the last of them, the newest last.
	RTTs []time.Duration
	// Variation is by how much the way out takes longer or shorter than for the
	// probe before (RFC 3393), smoothed as by RFC 3550, section 6.4.1.
	Variation time.Duration
	// Asked is how many probes were sent whose fate is known, Unanswered how many of
	// them were lost on the way or back.
	Asked      uint64
	Unanswered uint64
	// Recent is how many of the round trips, the last of them, are of the last 2.5 s.
	Recent int
}

// LinkLatency is what of it goes into counts, for the link with a number in the list.
type LinkLatency struct {
	At     int             `json:"at"`
	Number uint64          `json:"n"`
	RTTs   []time.Duration `json:"rtt"`
}

// Counted is what is new to who asks every second; ok: there is something.
func (l Latency) Counted(at int) (c LinkLatency, ok bool) {
	return LinkLatency{at, l.Number, l.RTTs[len(l.RTTs)-l.Recent:]}, l.Recent > 0
}

// RTT is the median of what is known; 0: nothing is.
func (l Latency) RTT() time.Duration {
	if len(l.RTTs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.RTTs))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Since are the round trips of probes that were answered after so many, oldest first.
func (l LinkLatency) Since(number uint64) []time.Duration {
	if number > l.Number { // the host began anew
		number = 0
	}
	return l.RTTs[len(l.RTTs)-int(min(l.Number-number, uint64(len(l.RTTs)))):]
}

// Names of what samples of links say of latency: of the tunnel by which a direction
// leaves this host. An RTT is there and back.
const (
	RTT        = "rtt"        // gauge: median of the last probes
	Variation  = "variation"  // gauge: of the way out
	Probes     = "probes"     // asked
	Unanswered = "unanswered" // of these
)

// Latency adds what probes found, if there is anything.
func (s *Sample) Latency(l Latency) {
	if l.Asked == 0 {
		return
	}
	s.Count(Probes, Packets, l.Asked)
	s.Count(Unanswered, Packets, l.Unanswered)
	if len(l.RTTs) > 0 {
		s.Counters = append(s.Counters,
			Counter{Name: RTT, Unit: Nanoseconds, Gauge: true, Value: uint64(l.RTT())},
			Counter{Name: Variation, Unit: Nanoseconds, Gauge: true, Value: uint64(l.Variation)})
	}
}
