package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

// shownLoad is what top says of one direction of a link.
type shownLoad struct {
	Link       string
	Direction  int
	Latency    *float64 `json:"latency_us"`
	Variation  *float64 `json:"variation_us"`
	Unanswered *float64 `json:"unanswered_share"`
}

// The latency of a link is shown while it is idle, for both its directions; of one
// within a host none is.
func TestLatencyIsShown(t *testing.T) {
	t.Parallel()
	l := newLab(t, slowBackbone)
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h1}]
links:
  - {name: far, ends: [a, b], rate: 5Mbit}
  - {name: near, ends: [a, c], rate: 5Mbit}
`)
	eventually(t, 30*time.Second, func() error {
		out := l.must("top", "n", "-n", "1", "-o", "json")
		var loads []shownLoad
		if err := json.Unmarshal([]byte(out), &loads); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		known := 0
		for _, load := range loads {
			switch {
			case load.Link == "near" && (load.Latency != nil || load.Unanswered != nil):
				t.Fatalf("a link within a host has a latency: %s", out)
			case load.Link == "far" && load.Latency != nil && *load.Latency > 0 && load.Variation != nil && load.Unanswered != nil && *load.Unanswered < 1:
				known++
			}
		}
		if known != 2 || len(loads) != 4 {
			return errors.New(out)
		}
		return nil
	})
}
