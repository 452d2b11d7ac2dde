package iplbd

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"sublet/datapath/iplb"
	"sublet/fabric/spread"
	"sublet/plan"
)

// A flow that does not matter, on a path of hardly any weight, stays there, and
// those that do are evened all the same.
func TestSmallFlowsAreNotInTheWay(t *testing.T) {
	list := []spread.Flow{{Rate: 60, Path: 0}, {Rate: 40, Path: 0}, {Rate: 0.3, Path: 2}}
	weights := []float64{512, 512, 1}
	if m, _ := spread.Rearrange(list, weights, 0); m.From != 2 {
		t.Fatalf("without it, the first to move is %v", m)
	}
	fixSmall(list, evenEnough*100/3)
	if m, ok := spread.Rearrange(list, weights, 0); !ok || m != (spread.Move{Flow: 0, From: 0, To: 1}) {
		t.Errorf("%v, %v", m, ok)
	}
}

// A path whose probes begin to be missing may be dead: it gets no flows until
// that is known, and can lose some. Of a long path more probes are under way.
func TestNoFlowIsMovedToADoubtedPath(t *testing.T) {
	spread := plan.Spread{Prefix: netip.MustParsePrefix("10.9.0.0/24"), Paths: make([]plan.RelayPath, 5)}
	d := &Daemon{Probing: Probing{Every: 20 * time.Millisecond, Lost: 7}, watches: map[netip.Prefix]pathProbes{spread.Prefix: {
		{index: 0, sent: 12, heard: 10},
		{index: 1, sent: 13, heard: 10},
		{index: 2, sent: 17, heard: 10, rtt: 100 * time.Millisecond},
		{index: 3, sent: 10, heard: 10, down: true},
	}}}
	open, index := d.usable(spread)
	if !slices.Equal(open, []int{0, 1, 2, 4}) || len(index) != 4 {
		t.Errorf("open %v, %v", open, index)
	}
	for i, want := range []bool{true, false, true, true, true} {
		if d.safe(spread.Prefix, i) != want {
			t.Errorf("path %d: safe is not %v", i, want)
		}
	}
	d.watches[spread.Prefix][1].index, d.watches[spread.Prefix][2].down = 4, true
	two := []iplb.Flow{{Path: 0}, {Path: 0, FlowKey: iplb.FlowKey{Protocol: 17}}, {Path: 1}}
	d.balance(spread, two, []float64{1000, 1000, 1000}) // path 4 is empty and doubted: there is no table to move anything in
	for _, w := range d.watches[spread.Prefix] {
		w.down = true
	}
	spread.Paths = spread.Paths[:1]
	d.balance(spread, two[:1], []float64{1000}) // nowhere to move to
}
