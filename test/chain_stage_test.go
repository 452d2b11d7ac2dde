package test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/report"
)

// chainPace is a chain as it is shown.
type chainPace struct {
	Name   string
	Rate   int64 `json:"rate_bps"`
	Paused bool
}

// paces are the rates of chains, in Mbit/s, with t of those that are paused.
func paces(chains []chainPace) string {
	var words []string
	for _, c := range chains {
		words = append(words, fmt.Sprintf("%d%.1s", c.Rate/1e6, strconv.FormatBool(c.Paused)))
	}
	return strings.Join(words, " ")
}

// cameBy is how many packets came out of each chain of a network.
func (l *lab) cameBy(network string) map[string]uint64 {
	l.t.Helper()
	came := make(map[string]uint64)
	for _, c := range decode[[]struct {
		Name string
		Hops []report.ChainHop
	}](l.t, l.must("chains", network, "-o", "json")) {
		for _, h := range c.Hops {
			if h.Hop == "out" {
				came[c.Name] += h.Packets
			}
		}
	}
	return came
}

// While packets go from one host to another, stages give their chain another rate, pause
// it, have it go on beside one that begins then, add functions to it, put them into another
// order, take them out, and change its match: not one packet is lost, and those of a paused
// chain go beside it.
func TestChainStages(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(changing("fw, most", "5Mbit", "81", `  - {name: late, from: a, to: b, match: {proto: tcp}, via: [fw], rate: 1Mbit, paused: true}
stages:
  - {name: more, begins: command, chains: {web: {rate: 8Mbit}}}
  - {name: "off", begins: command, chains: {web: {paused: true}}}
  - {name: "on", begins: command, chains: {web: {paused: false, rate: 6Mbit}, late: {paused: false}}}
  - {name: long, begins: command, chains: {web: {via: [most, fw, ids]}}}
  - {name: short, begins: command, chains: {web: {via: [most], match: {proto: udp}}}}
  - {name: first, begins: command, chains: {web: {via: [fw, most], match: {proto: udp, dst_port: 9000}, rate: 5Mbit}}}
`))
	s.sendsNumbers("live")
	const still = 200 * time.Millisecond
	for _, c := range []struct {
		stage  string
		passes string // the chain that packets go through
		says   string
	}{
		{"", "web", "5f 6t 6t 1t"},
		{"more", "web", "8f 6t 6t 1t"},
		{"off", "", "8t 6t 6t 1t"},
		{"on", "web", "6f 6t 6t 1f"},
		{"long", "web-long", "6t 6f 6t 1f"},
		{"short", "web-short", "6t 6t 6f 1f"},
		{"first", "web", "5f 6t 6t 1f"},
	} {
		if c.stage != "" {
			s.must("stage", "live", c.stage)
		}
		eventually(t, time.Minute, func() error {
			if is := paces(decode[[]chainPace](t, s.must("chains", "live", "-o", "json"))); is != c.says {
				return fmt.Errorf("stage %q: chains %s, want %s", c.stage, is, c.says)
			}
			was := s.cameBy("live")
			time.Sleep(still) // forty packets
			for chain, now := range s.cameBy("live") {
				if passes := now > was[chain]; passes != (chain == c.passes) {
					return fmt.Errorf("stage %q: %d packets came out of chain %s, then %d", c.stage, was[chain], chain, now)
				}
			}
			return nil
		})
		s.asPlanned("h1", "h2")
	}
	s.allArrived("live", 100)
	s.must("down", "live")
}

// A stage brings a function: its program starts. Later ones lead a chain through it and past
// it again, and one takes it away with its node, so that it begins afresh when it is brought
// back. Not one packet is lost.
func TestStagesBringAndTakeAwayFunctions(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, chainSubstrate)
	s.up(`network: live
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
functions:
  - {name: fw, host: h1, kind: firewall, rules: [{deny: {proto: tcp, dst_port: 81}}]}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: udp, dst_port: 9000}, via: [fw], rate: 5Mbit}
stages:
  - name: more
    begins: command
    add:
      functions:
        - name: ids
          host: h2
          cpu: 0.5
          memory: 64MiB
          probe: true
          run: ` + passesOn + `
      chains:
        - {name: rest, from: a, to: b, match: {proto: tcp}, via: [ids], rate: 1Mbit, on-failure: bypass}
  - {name: through, begins: command, chains: {web: {via: [fw, ids]}}}
  - {name: past, begins: command, chains: {web: {via: [fw]}}}
  - {name: away, begins: command, remove: [ids, rest]}
  - {name: back, begins: command, functions: {ids: {absent: false}}}
  - {name: again, begins: command, chains: {web: {via: [fw, ids]}}}
`)
	s.sendsNumbers("live")
	for _, c := range []struct {
		stage   string
		passes  string // the chain that packets go through
		running bool   // the function's program
	}{
		{"", "web", false}, {"more", "web", true}, {"through", "web-through", true}, {"past", "web", true}, {"away", "web", false}, {"back", "web", true}, {"again", "web-through", true},
	} {
		if c.stage != "" {
			s.must("stage", "live", c.stage)
		}
		eventually(t, time.Minute, func() error {
			if said := s.sublet("ps", "live/ids"); strings.Contains(said.out, "sleep infinity") != c.running {
				return fmt.Errorf("stage %q: %s%s", c.stage, said.out, said.err)
			}
			was := s.cameBy("live")[c.passes]
			time.Sleep(200 * time.Millisecond)
			if now := s.cameBy("live")[c.passes]; now == was {
				return fmt.Errorf("stage %q: %d packets came out of chain %s, and no more", c.stage, was, c.passes)
			}
			return nil
		})
		if c.stage == "away" {
			if said := s.sublet("exec", "live/ids", "--", "true"); said.code != 5 || !strings.Contains(said.err, "is absent in this stage") {
				t.Errorf("a command in an absent function: exit code %d, %s", said.code, said.err)
			}
		}
		s.asPlanned("h1", "h2")
	}
	s.allArrived("live", 100)
	s.must("down", "live")
}
