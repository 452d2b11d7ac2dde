package report

import "time"

// Round is what all parts of a host said at one reading.
type Round struct {
	Number  uint64    `json:"number"` // since the agent started, from 1
	At      time.Time `json:"at"`
	Samples []Sample  `json:"samples"`
}

// Size is about what a round takes of memory, in bytes.
func (r Round) Size() int {
	size := 0
	for _, s := range r.Samples {
		size += s.Size()
	}
	return size
}
