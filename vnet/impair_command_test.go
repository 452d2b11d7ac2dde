package vnet

import (
	"testing"
	"time"
)

func TestParseImpairment(t *testing.T) {
	got, err := ParseImpairment([]string{"delay=20ms", "jitter=2ms", "distribution=normal", "loss=1%", "corrupt=0.1%", "duplicate=2%", "reorder=3%"})
	want := Impairment{20 * time.Millisecond, 2 * time.Millisecond, Normal, 10_000, 1_000, 20_000, 30_000}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, words := range [][]string{
		{"delay"}, {"dela=1ms"}, {"delay=1"}, {"delay=1ms", "delay=2ms"}, {"loss=1"}, {"loss=101%"}, {"jitter=1ms"},
		{"delay=11s"}, {"reorder=1%"}, {"delay=-1ms"}, {"delay=1ms", "jitter=1ms", "distribution=flat"},
	} {
		if i, err := ParseImpairment(words); err == nil {
			t.Errorf("%q is taken for %s", words, i)
		}
	}
}

// TestCommandedImpairmentsEndWithTheNextStage that states one of the link.
func TestCommandedImpairmentsEndWithTheNextStage(t *testing.T) {
	slow, lossy, worse := [2]Impairment{{Delay: 1}}, [2]Impairment{{Loss: 2}}, [2]Impairment{{Loss: 3}}
	l := Lease{
		Request: Request{
			Topology: Topology{Links: []VirtualLink{{Name: "l", Impair: slow}, {Name: "m"}}},
			Stages: []Stage{
				{Name: "same"},
				{Name: "other", Impair: map[string][2]Impairment{"m": worse}},
				{Name: "stated", Impair: map[string][2]Impairment{"l": worse}},
			},
		},
		Impaired: map[string]Impaired{"l": {Stage: 0, Impair: lossy}},
	}
	before := Lease{Request: l.Request}
	for stage, want := range map[int][2]Impairment{-1: lossy, 0: lossy, 1: lossy, 2: worse} {
		l.Stage, before.Stage = stage, stage
		if link, _ := l.Topology().Link("l"); link.Impair != want {
			t.Errorf("stage %d: %v, want %v", stage, link.Impair, want)
		}
		if l.Digest() == before.Digest() {
			t.Errorf("stage %d: a verdict does not become stale", stage)
		}
	}
	if l.Request.Links[0].Impair != slow {
		t.Error("the request was changed")
	}
}

// TestCommandedImpairmentsEndWithTheirLink: one that comes back is as its stage
// has it.
func TestCommandedImpairmentsEndWithTheirLink(t *testing.T) {
	slow, lossy := [2]Impairment{{Delay: 1}}, [2]Impairment{{Loss: 2}}
	l := Lease{
		Stage: 1,
		Request: Request{
			Topology: Topology{Links: []VirtualLink{{Name: "l"}}},
			Stages:   []Stage{{Name: "goes", Remove: []string{"l"}}, {Name: "comes", Add: Topology{Links: []VirtualLink{{Name: "l", Impair: slow}}}}},
		},
		Impaired: map[string]Impaired{"l": {Stage: -1, Impair: lossy}},
	}
	if link, _ := l.Topology().Link("l"); link.Impair != slow {
		t.Errorf("%v, want %v", link.Impair, slow)
	}
}

// TestCommandedLinkStatesEndWithTheNextStage that states one of the link.
func TestCommandedLinkStatesEndWithTheNextStage(t *testing.T) {
	l := Lease{
		Request: Request{
			Topology: Topology{Links: []VirtualLink{{Name: "l", Down: true}, {Name: "m"}}},
			Stages: []Stage{
				{Name: "same"},
				{Name: "other", Down: map[string]bool{"m": true}, Impair: map[string][2]Impairment{"l": {{Delay: 1}}}},
				{Name: "stated", Down: map[string]bool{"l": true, "m": false}},
			},
		},
	}
	down := func() [2]bool { return [2]bool{l.Topology().Links[0].Down, l.Topology().Links[1].Down} }
	for stage, want := range map[int][2]bool{-1: {true, false}, 0: {true, false}, 1: {true, true}, 2: {true, false}} {
		if l.Stage = stage; down() != want {
			t.Errorf("stage %d: %v are down, want %v", stage, down(), want)
		}
	}
	before := l.Digest()
	l.LinkStates = map[string]LinkState{"l": {Stage: 0, Down: false}}
	if l.Digest() == before {
		t.Error("a verdict does not become stale")
	}
	for stage, want := range map[int]bool{0: false, 1: false, 2: true} {
		if l.Stage = stage; down()[0] != want {
			t.Errorf("stage %d after a command: %v, want %v", stage, down()[0], want)
		}
	}
	bad := l.Request
	bad.Stages = []Stage{{Name: "cut", After: 1, Down: map[string]bool{"nolink": true}}}
	bad.Network, bad.Nodes, bad.Links = "net", []VirtualNode{{Name: "a"}, {Name: "b"}}, []VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}}}
	if err := bad.Check(); err == nil {
		t.Error("a stage takes a link down that is not there")
	}
}
