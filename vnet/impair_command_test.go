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
