package test

import (
	"fmt"
	"testing"
	"time"
)

// chainPace is a chain as it is shown.
type chainPace struct {
	Name   string
	Rate   int64 `json:"rate_bps"`
	Paused bool
}

// While packets go from one host to another, stages give their chain another rate, pause
// it, and have it go on beside one that begins then: not one packet is lost, and those of
// a paused chain go beside it.
func TestChainStages(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(changing("fw, most", "5Mbit", "81", `  - {name: late, from: a, to: b, match: {proto: tcp}, via: [fw], rate: 1Mbit, paused: true}
stages:
  - {name: more, begins: command, chains: {web: {rate: 8Mbit}}}
  - {name: "off", begins: command, chains: {web: {paused: true}}}
  - {name: "on", begins: command, chains: {web: {paused: false, rate: 6Mbit}, late: {paused: false}}}
`))
	s.sendsNumbers("live")
	const still = 200 * time.Millisecond
	for _, c := range []struct {
		stage  string
		passes bool
		says   string
	}{
		{"", true, "[{web 5000000 false} {late 1000000 true}]"},
		{"more", true, "[{web 8000000 false} {late 1000000 true}]"},
		{"off", false, "[{web 8000000 true} {late 1000000 true}]"},
		{"on", true, "[{web 6000000 false} {late 1000000 false}]"},
	} {
		if c.stage != "" {
			s.must("stage", "live", c.stage)
		}
		eventually(t, time.Minute, func() error {
			if is := fmt.Sprint(decode[[]chainPace](t, s.must("chains", "live", "-o", "json"))); is != c.says {
				return fmt.Errorf("stage %q: chains %s, want %s", c.stage, is, c.says)
			}
			was := s.came("live", "fw")
			time.Sleep(still) // forty packets
			if is := s.came("live", "fw"); (is > was) != c.passes {
				return fmt.Errorf("stage %q: %d packets came to the firewall, then %d", c.stage, was, is)
			}
			return nil
		})
		s.asPlanned("h1", "h2")
	}
	s.allArrived("live", 100)
	s.must("down", "live")
}
