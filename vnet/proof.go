package vnet

import "time"

// NotTested is the outcome of a time in which nobody offered as much as was
// promised, or nobody could tell.
const NotTested Outcome = "not tested"

// ProofRun is a number of minutes in which one direction of a link did alike.
type ProofRun struct {
	Link      string    `json:"link"`
	Direction Direction `json:"direction"`
	From      time.Time `json:"from"`
	Minutes   int       `json:"minutes"`
	Outcome   Outcome   `json:"verdict"`
	Tested    int       `json:"tested_s"` // seconds in which the minimum was wanted
	Broken    int       `json:"broken_s"` // of these, those in which it was not there
	// Worst is the least part of the minimum that was carried in a second in which
	// it was wanted; 1 and more: it was there.
	Worst float64 `json:"worst"`
	// Cause is, as far as it is known, why the minimum was not there, or was not
	// tested, or why frames were dropped although it was.
	Cause string `json:"cause,omitempty"`
	// Of is what was promised: Latency, or "" for the minimum. Of latency, tested are
	// the seconds in which probes passed and the link's own frames hardly waited,
	// broken those in which half the median round trip was over the bound, and Worst
	// is the least part that the bound was of it; P50 and P99 are the largest
	// percentiles that one of the minutes had, in us.
	Of  string  `json:"of,omitempty"`
	P50 float64 `json:"latency_us_p50,omitempty"`
	P99 float64 `json:"latency_us_p99,omitempty"`
}

// OfLatency is ProofRun.Of of a promise of latency.
const OfLatency = "latency"

// LatencyProof is what is known of the bound of a link's latency over a time, as seen
// from the end where a direction begins.
type LatencyProof struct {
	Bound  float64 `json:"bound_us"` // now; 0: none
	Tested int     `json:"tested_s"`
	Broken int     `json:"broken_s"`
	// Availability is the part of the tested seconds in which the bound was kept;
	// none were tested: -1.
	Availability float64 `json:"availability"`
	// P50 and P99 are the largest percentiles of a minute, in us.
	P50   float64    `json:"latency_us_p50,omitempty"`
	P99   float64    `json:"latency_us_p99,omitempty"`
	Worst *ProofRun  `json:"worst,omitempty"` // the broken minutes with the highest latency
	Runs  []ProofRun `json:"runs"`            // by time
}

// Proof is what is known of the promise of one direction of a link over a time.
type Proof struct {
	Link      string    `json:"link"`
	Direction Direction `json:"direction"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Min       Rate      `json:"min_bps"` // now; 0: nothing is promised now
	Tested    int       `json:"tested_s"`
	Broken    int       `json:"broken_s"`
	// Availability is the part of the tested seconds in which the minimum was
	// there; none were tested: -1.
	Availability float64    `json:"availability"`
	Worst        *ProofRun  `json:"worst,omitempty"` // the minutes in which least was carried of a broken promise
	Runs         []ProofRun `json:"runs"`            // by time
	// Paused is since when nothing is tested, as the network is paused; nil: it is not.
	Paused *time.Time `json:"paused_since,omitempty"`
	// ChainPaused says that the stage that runs has paused the chain: nothing is promised
	// of it now.
	ChainPaused bool `json:"chain_paused,omitempty"`
	// Latency is what is known of the link's bound; nil: it has none.
	Latency *LatencyProof `json:"latency,omitempty"`
}

// Happening is an event: something that became different and that somebody may
// want to be told.
type Happening struct {
	Number uint64    `json:"number"`
	Time   time.Time `json:"time"`
	Lease  LeaseID   `json:"lease,omitzero"`
	Kind   string    `json:"kind"` // state, promise, repair, move, change, end, maintenance, host, link or server
	What   string    `json:"what"` // the lease, or the link and its direction, the host, ...
	State  string    `json:"state"`
	By     string    `json:"by,omitempty"` // who caused it: a tenant, operator, a host's report, the clock
	Why    string    `json:"why,omitempty"`
}
