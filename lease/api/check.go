package api

import (
	"errors"
	"time"

	"sublet/vnet"
)

// CheckAsk is the body of POST .../check; none means the defaults.
type CheckAsk struct {
	// Duration of each measuring window; 0: long enough for the slowest link.
	Duration time.Duration `json:"duration_ns,omitempty"`
}

// Bounds of CheckAsk.Duration: a shorter window says nothing, a longer one
// keeps the network loaded for hours.
const (
	MinCheck = 100 * time.Millisecond
	MaxCheck = time.Hour
)

// CheckLine is one line of a check that is answered as application/x-ndjson:
// the phase that begins, or how it ended.
type CheckLine struct {
	Phase   string        `json:"phase,omitempty"`
	Verdict *vnet.Verdict `json:"verdict,omitempty"`
	Problem *Problem      `json:"problem,omitempty"`
}

// NDJSON is the media type of a stream of CheckLine.
const NDJSON = "application/x-ndjson"

// errBrokeOff is what a client says of a check that ended without a verdict.
var errBrokeOff = errors.New("the server broke off the check: try again")
