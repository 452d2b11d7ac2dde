package probe

import (
	"testing"
	"time"

	"sublet/vnet"
)

// What a load offers is what arrives on a free link, and a sixth of 1.2 times
// a shaped link's rate is lost.
func TestRunOffersAndLoses(t *testing.T) {
	const rate = 50 * vnet.Mbit
	l := newLab(t, "n1", "n2")
	l.connect(left, right, wire{rate: rate}, wire{})
	opt := Options{Targets: static("a", left, right, rate)[:1], Duration: 2 * time.Second}
	for _, c := range []struct {
		load       Load
		rate, loss float64 // of the link's rate, of what was sent
	}{
		{Load{Part: 0.5}, 0.5, 0},
		{Load{Part: 1.2}, 1, 1 - 1/1.2},
		{Load{TCP: true, Part: 0.5}, 0.5, 0},
		{Load{TCP: true}, 1, 0},
	} {
		for try := 1; ; try++ {
			flows, err := Run(t.Context(), l.start, opt, c.load)
			must(t, err)
			f := flows[0]
			t.Logf("%+v: %.2f Mbit/s, loss %.4f, late by %s", c.load, f.Rate.Mbps(), f.Loss, f.Late)
			if within(f.Rate, vnet.Rate(c.rate*float64(rate)), 0.02) && f.Loss >= c.loss-0.03 && f.Loss <= c.loss+0.01 {
				break
			}
			if late := float64(f.Late) > 0.01*float64(opt.Duration); !late || try == 3 {
				if late {
					t.Skipf("the machine is too busy: a probe waited %s for a processor", f.Late)
				}
				t.Errorf("%+v: %.2f Mbit/s and loss %.4f, want %.2f and %.4f", c.load, f.Rate.Mbps(), f.Loss, c.rate*rate.Mbps(), c.loss)
				break
			}
		}
	}
}

// Acknowledgements of a fast flow that ends where a slow one begins, or begins
// where it ends, take their part of the slow one's link.
func TestAcknowledgementsOfOthersCount(t *testing.T) {
	const slow, fast = 2 * vnet.Mbit, 50 * vnet.Mbit
	l := newLab(t, "n1", "n2")
	l.connect(left, right, wire{rate: fast}, wire{rate: slow})
	forth, back := static("forth", left, right, fast)[0], static("back", left, right, slow)[1]
	opt := Options{Targets: []Target{forth, back}, Duration: 3 * time.Second}
	for try := 1; ; try++ {
		flows, err := Run(t.Context(), l.start, opt, Load{TCP: true})
		must(t, err)
		got := flows[1]
		alone := got.Payload * 1514 / 1448
		t.Logf("%s: %.3f Mbit/s, %.3f without others' acknowledgements, late by %s", got.Link, got.Rate.Mbps(), alone.Mbps(), got.Late)
		if within(got.Rate, slow, 0.02) { // their selective acknowledgements are larger and not counted
			if float64(alone) > 0.97*float64(slow) {
				t.Errorf("%.3f Mbit/s of data leave no room for acknowledgements: nothing is shown", alone.Mbps())
			}
			return
		}
		if try == 3 {
			if float64(got.Late) > 0.005*float64(opt.Duration) {
				t.Skipf("the machine is too busy: a probe waited %s for a processor", got.Late)
			}
			t.Fatalf("%.3f Mbit/s, want %.3f", got.Rate.Mbps(), slow.Mbps())
		}
	}
}

// Of several windows the one nearest to what was asked for counts.
func TestBetterRates(t *testing.T) {
	for _, c := range []struct {
		rate, than vnet.Rate
		want       bool
	}{{95, 90, true}, {90, 95, false}, {101, 105, true}, {105, 101, false}, {90, 105, true}, {100, 105, true}, {105, 90, true}} {
		bounded, open := &trial{Target: Target{Alloc: 100}}, &trial{Target: Target{Alloc: 100, Open: true}}
		if got := bounded.better(c.rate, c.than); got != c.want {
			t.Errorf("%d better than %d of 100: %v", c.rate, c.than, got)
		}
		if got := open.better(c.rate, c.than); got != (c.rate > c.than) {
			t.Errorf("%d better than %d where nothing limits: %v", c.rate, c.than, got)
		}
	}
}

func TestRunRefusesUDPWithoutARate(t *testing.T) {
	if _, err := Run(t.Context(), nil, Options{}, Load{}); err == nil {
		t.Error("no error")
	}
}
