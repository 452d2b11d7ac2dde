package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// Over a split link everything leaves in order and is accounted for, whatever
// the buffers, delays and weights.
func TestSplitKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := small()
		s.Duration = 2 * time.Millisecond
		s.Drain = rapid.Bool().Draw(t, "drain")
		s.Switch.Crosspoint = 400_000
		s.VirtualSwitches[0].Buffer = vnet.Bytes(rapid.IntRange(1500, 200_000).Draw(t, "near"))
		s.Split = &Split{Of: 0, Input: 1, Rate: vnet.Gbit, Stall: time.Duration(rapid.IntRange(0, 2000).Draw(t, "stall")) * time.Microsecond}
		for o := range 2 {
			s.Split.Paths = append(s.Split.Paths, Path{
				Output: o + 1, Weight: rapid.IntRange(1, 5).Draw(t, "weight"),
				Delay:  time.Duration(rapid.IntRange(0, 1000).Draw(t, "delay")) * time.Microsecond,
				Buffer: vnet.Bytes(rapid.IntRange(1500, 200_000).Draw(t, "far")),
			})
		}
		arrived, left := 0, 0
		var last uint64
		var now time.Duration
		o, err := Run(s, rapid.Uint64().Draw(t, "seed"), Watch{
			Arrived: func(a *Arrival) {
				if a.Switch == 0 && a.Input == 1 {
					arrived++
				}
			},
			Departed: func(d *Departure, hop int) {
				if d.At < now {
					t.Fatalf("%v leaves after one at %v", d, now)
				}
				if now = d.At; hop != 2 {
					return
				}
				if left > 0 && d.Sequence <= last {
					t.Fatalf("%d leaves after %d", d.Sequence, last)
				}
				last = d.Sequence
				left++
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		f := o.Split.Figures
		if o.Split.Reordered > 0 || int(f[OfferedPackets]) != arrived || int(f[DeliveredPackets]) != left {
			t.Errorf("%d arrived, %d left: %v", arrived, left, f)
		}
		if q := f[QueuedPackets]; q < 0 || s.Drain && q != 0 {
			t.Errorf("%g queued", q)
		}
	})
}

// Back-to-back frames of a line take exactly their time, at any rate.
func TestLineIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1000, 1e11).Draw(t, "rate")
		l := newLine(vnet.Rate(rate))
		bits := int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "frames") {
			size := rapid.Int32Range(64, 9000).Draw(t, "size")
			l.send(l.free, size)
			bits += int64(size) * 8
			// The end is exact, rounded up: bits*1e9/rate, in 128 bits.
			if exact := ceil(uint64(bits), uint64(rate)); l.free != exact {
				t.Fatalf("free at %d, want %d", l.free, exact)
			}
		}
	})
}

// ceil of bits*1e9/rate; bits are below 2^23.
func ceil(bits, rate uint64) time.Duration {
	return time.Duration((bits*1e9 + rate - 1) / rate)
}
