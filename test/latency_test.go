package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
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

// newSlowerLab is a lab whose wire takes 20 ms, of which the substrate says nothing.
func newSlowerLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, strings.Replace(slowBackbone, "200Mbit", "200Mbit, latency: 20ms", 1), "--delays")
	stated := strings.Replace(l.must("substrate", "get"), "latency: 20ms", "latency: 100us", 1)
	l.must("substrate", "apply", l.file("stated.yaml", stated))
	return l
}

// A bound of latency that the substrate cannot keep is found broken while nobody sends,
// and one that it keeps is kept; both are in the proof, and the broken one is an event, as is the wire that takes longer than
// stated.
func TestLatencyIsProved(t *testing.T) {
	t.Parallel()
	l := newSlowerLab(t)
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links:
  - {name: fair, ends: [a, b], rate: 5Mbit, latency: 20s}
  - {name: mad, ends: [a, b], rate: 5Mbit, latency: 5ms}
`)
	eventually(t, 60*time.Second, func() error {
		out := l.must("proof", "n", "-o", "json")
		var proofs []vnet.Proof
		if err := json.Unmarshal([]byte(out), &proofs); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		found := 0
		for _, p := range proofs {
			switch {
			case p.Latency == nil:
				return errors.New(out)
			case p.Link == "fair" && p.Latency.Tested > 0 && p.Latency.Broken == 0 && p.Latency.P99 >= p.Latency.P50 && p.Latency.P50 > 0:
				found++
			case p.Link == "mad" && p.Latency.Broken > 0 && p.Latency.Worst != nil && p.Latency.Bound == 5000:
				found++
			}
		}
		if found != 4 {
			return errors.New(out)
		}
		return nil
	})
	if events := l.must("events", "n"); !strings.Contains(events, "mad a to b latency") || strings.Contains(events, "fair") {
		t.Error(events)
	}
	eventually(t, 60*time.Second, func() error {
		if events := l.must("events"); !strings.Contains(events, "backbone") || !strings.Contains(events, "slow") {
			return errors.New(events)
		}
		return nil
	})
}

// A wire that is slower than stated is left by what has a bound below that and may move,
// and is not given to a new network with such a bound.
func TestSlowWiresAreLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t, strings.Replace(triangle, "ends: [h1, h2], capacity: 1Gbit, latency: 1ms", "ends: [h1, h2], capacity: 1Gbit, latency: 60ms", 1), "--delays")
	l.must("substrate", "apply", l.file("stated.yaml", strings.Replace(l.must("substrate", "get"), "latency: 60ms", "latency: 1ms", 1)))
	bounded := func(network, more string) string {
		return strings.Replace(between(network, "5Mbit", more), "rate: 5Mbit", "rate: 5Mbit, latency: 30ms", 1)
	}
	for network, more := range map[string]string{"able": "movable: true\n", "stuck": ""} { // before it is known
		l.must("up", "--no-wait", l.file(network+".yaml", bounded(network, more)))
		if is := l.pathOf(network); is != "direct" {
			t.Fatalf("%s is carried by %s", network, is)
		}
	}
	eventually(t, time.Minute, func() error {
		if is := l.pathOf("able"); is != "left right" {
			return fmt.Errorf("it is carried by %s: %s", is, l.must("events"))
		}
		return nil
	})
	if is := l.pathOf("stuck"); is != "direct" {
		t.Errorf("what may not move is carried by %s", is)
	}
	if events := l.must("events"); !strings.Contains(events, "link direct takes ") {
		t.Errorf("events:\n%s", events)
	}
	l.up(bounded("new", ""))
	if is := l.pathOf("new"); is != "left right" {
		t.Errorf("a new one is carried by %s", is)
	}
}
