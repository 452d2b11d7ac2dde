package emulate

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sublet/fabric/spread"
)

// Flows get their shares of every stretch of packets, to within one packet
// each: none sends in bursts.
func TestRotationInterleaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d := rapid.SampledFrom(spread.Distributions).Draw(t, "distribution")
		shares := d.Shares(rapid.IntRange(1, 20).Draw(t, "flows"), rng)
		r, sent := newRotation(shares, rng.Float64), make([]float64, len(shares))
		for packets := 1.0; packets <= 500; packets++ {
			sent[r.next()]++
			for i, share := range shares {
				if off := math.Abs(sent[i] - share*packets); off > 2 {
					t.Fatalf("%s: flow %d of %d sent %.0f of %.0f packets, its share is %.4f", d, i, len(shares), sent[i], packets, share)
				}
			}
		}
	})
}

func TestForeignDatagramsDoNotCount(t *testing.T) {
	for _, b := range [][]byte{nil, {1, 2, 3}, make([]byte, 100), {0x5b, 0x1f, 0x10, 0xe5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0x5b, 0x1f, 0x10, 0xe5, 0, 0, 0, 7, 1}} {
		if _, counts := parse(b); counts {
			t.Errorf("% x counts", b)
		}
	}
	if run, counts := parse([]byte{0x5b, 0x1f, 0x10, 0xe5, 0, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0}); !counts || run != 7 {
		t.Errorf("run %d, counts %t", run, counts)
	}
}

func TestProcessorTimes(t *testing.T) {
	before, err := readJiffies()
	if err != nil || before.all == 0 || before.idle > before.all {
		t.Fatalf("%+v, %v", before, err)
	}
	if idle, err := idleSince(jiffies{}); err != nil || idle < 0 || idle > 1 {
		t.Errorf("idle %v, %v", idle, err)
	}
}
