package control

import (
	"math"
	"strings"
	"testing"
	"time"
)

func near(a, b, part float64) bool { return math.Abs(a-b) <= part*math.Abs(b) }

// one is a chain of 8 Mbit/s through a function that takes 1 us for a packet:
// of packets of 1000 bytes 1000 a second, a thousandth of a core.
func one(t *testing.T, share float64) *Controller {
	t.Helper()
	c, err := New([]Function{{Name: "f", Profile: Profile{Fixed: 1e-4}, Share: share}}, []Chain{{Name: "c", Rate: 8e6, Via: []int{0}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// step gives it samples of packets of a size that arrive at a rate.
func step(c *Controller, n int, rate, size, cost float64) {
	for range n {
		came := rate / 8 / size * 0.1
		took := min(came, c.Shares()[0]*0.1/cost)
		c.Step(0.1, []Count{{came, came * size}}, []Sample{{Used: took * cost, Arrived: []Count{{came, came * size}}, Served: []Count{{took, took * size}}, Dropped: came - took}})
	}
}

func TestHoldsARate(t *testing.T) {
	c := one(t, 0.05)
	step(c, 30, 10e6, 1000, 1e-4)
	if got := c.Shares()[0]; !near(got, 0.1, 0.01) {
		t.Errorf("share %.4f for 1000 packets a second of 100 us", got)
	}
	step(c, 5, 10e6, 500, 1e-4)
	if got := c.Shares()[0]; !near(got, 0.2, 0.02) {
		t.Errorf("share %.4f half a second after packets of half the size came", got)
	}
}

// A chain without traffic says nothing of what its functions need.
func TestIdlenessWindsNothingUp(t *testing.T) {
	c := one(t, 0.1)
	step(c, 30, 10e6, 1000, 1e-4)
	before := c.Shares()[0]
	step(c, 600, 0, 1000, 1e-4)
	step(c, 600, 0.2e6, 1000, 3e-4)
	if got := c.Shares()[0]; got != before {
		t.Errorf("share %.4f after idleness, %.4f before", got, before)
	}
}

// The first packets may be counted as served before the time that they took is: a function
// that costs twice what its profile says gets it nevertheless, and one of a small share
// that uses all of it in one sample and none in the next is not taken for one whose time
// others take.
func TestTimeThatIsCountedLate(t *testing.T) {
	c, err := New([]Function{{Name: "f", Profile: Profile{Fixed: 1e-5}, Share: 0.01, Most: 0.01, Limited: true}}, []Chain{{Name: "c", Rate: 8e6, Via: []int{0}}}, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	c.Lend(0.5)
	came := []Count{{100, 100e3}} // a tenth of a second
	c.Step(0.1, came, []Sample{{Arrived: came, Served: came}})
	waits := 0.0
	for n := range 200 {
		quota, period := Quota(c.Shares()[0])
		begun := func(n int) float64 { return math.Floor(float64(n) * 0.1 / period.Seconds()) }
		took := min(waits+100, (begun(n+1)-begun(n))*quota.Seconds()/2e-5)
		waits += 100 - took
		dropped := max(0, waits-600)
		waits -= dropped
		c.Step(0.1, came, []Sample{{Used: took * 2e-5, Arrived: came, Served: []Count{{took, took * 1e3}}, Dropped: dropped}})
	}
	if got := c.Shares()[0]; got < 0.02 || got > 0.025 || len(c.Shortages()) > 0 {
		t.Errorf("share %.4f for 1000 packets a second of 20 us; short: %+v", got, c.Shortages())
	}
}

// That others take a function's time is said for as long as they do.
func TestTakenTimeIsSaid(t *testing.T) {
	c := one(t, 0.1)
	came := []Count{{100, 100e3}}
	for n := range 60 {
		took := 100.0
		if n < 30 {
			took = 50
		}
		c.Step(0.1, came, []Sample{{Used: took * 1e-4, Arrived: came, Served: []Count{{took, took * 1e3}}, Dropped: 100 - took}})
		if n == 29 && len(c.Shortages()) != 1 {
			t.Errorf("short: %+v, while half of its time is taken", c.Shortages())
		}
	}
	if list := c.Shortages(); len(list) > 0 {
		t.Errorf("short: %+v, three seconds after all that came was served", list)
	}
}

// What cannot be had is said, with what can.
func TestShortageIsNamed(t *testing.T) {
	c := one(t, 0.1)
	step(c, 30, 10e6, 1000, 2e-3)
	list := c.Shortages()
	if len(list) != 1 || !near(list[0].Rate, 4e6, 0.02) || !strings.Contains(list[0].Why, "f can use no more processor") {
		t.Fatalf("%+v", list)
	}
	if got := c.Shares()[0]; got != 1 {
		t.Errorf("share %.3f", got)
	}
}

func TestAdmit(t *testing.T) {
	functions := []Function{{Name: "fw", Profile: Profile{Fixed: 1e-6}}, {Name: "nat", Profile: Profile{Fixed: 1e-6}}}
	chain := func(rate float64, priority int) Chain {
		return Chain{Name: "c", Rate: rate, Via: []int{0, 1}, Priority: priority}
	}
	for _, row := range []struct {
		name   string
		chains []Chain
		cores  float64
		want   []float64
	}{
		{"fits", []Chain{chain(8e8, 0)}, 2, []float64{1}},
		{"more than a core for a function", []Chain{chain(16e9, 0)}, 8, []float64{1 / (2 * 1.05)}},
		{"equals share", []Chain{chain(8e9, 0), chain(8e9, 0)}, 8, []float64{1 / (2 * 1.05), 1 / (2 * 1.05)}},
		{"the higher goes first", []Chain{chain(4e9, 0), chain(4e9, 1)}, 8, []float64{1/(0.5*1.05) - 1, 1}},
		{"cores together", []Chain{chain(4e9, 0)}, 0.5, []float64{0.5 / (0.5 + 0.5*1.05)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			parts, why, err := Admit(functions, row.chains, row.cores, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for j, want := range row.want {
				if !near(parts[j], want, 0.001) && row.name != "more than a core for a function" || parts[j] < 1 && why[j] == "" {
					t.Errorf("chain %d: %.3f of its rate (%s), want %.3f", j, parts[j], why[j], want)
				}
			}
		})
	}
	if _, _, err := Admit(functions, []Chain{{Name: "c", Rate: 1, Via: []int{7}}}, 1, 1000); err == nil {
		t.Error("a function that is not there is taken")
	}
}

func TestQuota(t *testing.T) {
	for _, row := range []struct {
		share         float64
		quota, period time.Duration
	}{
		{1, 20 * time.Millisecond, 20 * time.Millisecond},
		{0.22345, 4469 * time.Microsecond, 20 * time.Millisecond},
		{0.03, time.Millisecond, 33333 * time.Microsecond},
		{0.005, time.Millisecond, 200 * time.Millisecond},
		{0.0001, time.Millisecond, time.Second},
		{0, time.Millisecond, time.Second},
	} {
		if quota, period := Quota(row.share); quota != row.quota || period != row.period {
			t.Errorf("%g: %s in %s, want %s in %s", row.share, quota, period, row.quota, row.period)
		}
	}
}

func TestFit(t *testing.T) {
	p, worst, err := Fit([]Point{{64, 1.064e-6}, {512, 1.512e-6}, {1500, 2.5e-6}})
	if err != nil || !near(p.Fixed, 1e-6, 1e-6) || !near(p.PerByte, 1e-9, 1e-6) || worst > 1e-6 {
		t.Errorf("%+v, off by %g, %v", p, worst, err)
	}
	if p, _, _ := Fit([]Point{{64, 2e-6}, {1500, 1e-6}}); p.PerByte != 0 || p.Fixed <= 0 {
		t.Errorf("costs that fall with the size: %+v", p)
	}
	for _, bad := range [][]Point{nil, {{0, 1}}, {{1, 0}}, {{1, math.NaN()}}, {{math.Inf(1), 1}}} {
		if _, _, err := Fit(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
