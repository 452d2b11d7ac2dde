package iplbd

import (
	"testing"

	"sublet/multipath"
)

// A flow that does not matter, on a path of hardly any weight, stays there, and
// those that do are evened all the same.
func TestSmallFlowsAreNotInTheWay(t *testing.T) {
	list := []multipath.Flow{{Rate: 60, Path: 0}, {Rate: 40, Path: 0}, {Rate: 0.3, Path: 2}}
	weights := []float64{512, 512, 1}
	if m, _ := multipath.Rearrange(list, weights); m.From != 2 {
		t.Fatalf("without it, the first to move is %v", m)
	}
	fixSmall(list, evenEnough*100/3)
	if m, ok := multipath.Rearrange(list, weights); !ok || m != (multipath.Move{Flow: 0, From: 0, To: 1}) {
		t.Errorf("%v, %v", m, ok)
	}
}
