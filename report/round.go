package report

import "time"

// Round is what all parts of a host said at one reading.
type Round struct {
	Number  uint64    `json:"number"` // since the agent started, from 1
	At      time.Time `json:"at"`
	Samples []Sample  `json:"samples"`
}
