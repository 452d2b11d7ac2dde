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

func TestRunRefusesUDPWithoutARate(t *testing.T) {
	if _, err := Run(t.Context(), nil, Options{}, Load{}); err == nil {
		t.Error("no error")
	}
}
