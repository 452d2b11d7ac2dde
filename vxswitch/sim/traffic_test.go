package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/vnet"
)

// rateOf counts a process over many arrivals, per second.
func rateOf(p process, seed uint64, arrivals int) float64 {
	r := rand.New(rand.NewPCG(seed, 0))
	var clock float64
	for range arrivals {
		clock += p.gap(r)
	}
	return float64(arrivals) / clock * 1e9
}

// Every process has the mean rate it is made for. 200,000 arrivals of the
// burstiest one have a standard deviation below half a percent.
func TestProcessesKeepTheirMean(t *testing.T) {
	const mean = 12345.0
	for name, p := range map[string]process{
		"poisson":  poisson{1e9 / mean},
		"constant": &constant{mean: 1e9 / mean},
		"bursty":   Bursty(mean, 2, 0.2, 10).process(),
		"on-off":   Bursty(mean, 4, 0, 10).process(),
		"uneven":   Bursty(mean, 8, 0.5, 3).process(),
	} {
		t.Run(name, func(t *testing.T) {
			if got := rateOf(p, 1, 200_000); math.Abs(got/mean-1) > 0.02 {
				t.Errorf("%s: %g packets a second, want %g", name, got, mean)
			}
		})
	}
}

// A process of two states is as bursty as stated: variance of counts beyond
// that of a Poisson process, and the parameters of the thesis give back the
// mean.
func TestMMPP(t *testing.T) {
	m := Bursty(1000, 4, 0.1, 10)
	if got := m.Mean(); math.Abs(got-1000) > 1e-9 {
		t.Errorf("mean %g", got)
	}
	if got := m.Arrival[0] / m.Transition[0]; math.Abs(got-10) > 1e-9 {
		t.Errorf("%g packets in a stay of the first state, want 10", got)
	}
	// Index of dispersion of counts at infinity (Fischer and Meier-Hellstern,
	// Performance Evaluation 18, 1993).
	want := 1 + 2*m.Transition[0]*m.Transition[1]*math.Pow(m.Arrival[0]-m.Arrival[1], 2)/
		(math.Pow(m.Transition[0]+m.Transition[1], 2)*(m.Arrival[0]*m.Transition[1]+m.Arrival[1]*m.Transition[0]))
	r := rand.New(rand.NewPCG(3, 0))
	p := m.process()
	const window, windows = 1e9, 4000 // a second is 1,000 packets, many stays
	var sum, square, clock float64
	for range windows {
		n := 0.0
		for clock < window {
			clock += p.gap(r)
			n++
		}
		clock -= window
		sum += n
		square += n * n
	}
	mean := sum / windows
	if got := (square/windows - mean*mean) / mean; math.Abs(got/want-1) > 0.1 {
		t.Errorf("index of dispersion %g, want %g", got, want)
	}
}

func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	s := Bimodal.sizer()
	var sum, small float64
	const n = 200_000
	for range n {
		size := s.draw(r)
		switch {
		case size >= 64 && size <= 100:
			small++
		case size < 1350 || size > 1500:
			t.Fatalf("size %d", size)
		}
		sum += float64(size)
	}
	if got := sum / n; math.Abs(got-Bimodal.Mean()) > 5 {
		t.Errorf("mean %g, want %g", got, Bimodal.Mean())
	}
	if math.Abs(small/n-0.5) > 0.01 {
		t.Errorf("%g small", small/n)
	}
	fixed := Fixed(1514).sizer()
	if got := fixed.draw(r); got != 1514 {
		t.Errorf("fixed size %d", got)
	}
}

func TestAlias(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	weights := []float64{1, 9, 0, 0.5, 20}
	a := newAlias(weights)
	counts := make([]float64, len(weights))
	const n = 300_000
	for range n {
		counts[a.draw(r.Uint64())]++
	}
	for i, w := range weights {
		if want := w / 30.5; math.Abs(counts[i]/n-want) > 0.005 {
			t.Errorf("choice %d: %g, want %g", i, counts[i]/n, want)
		}
	}
}

// Streams are independent of each other: one more changes no other's packets.
func TestStreamsAreIndependent(t *testing.T) {
	s := small()
	s.Traffic[0].Inputs = []int{1}
	one := all(s, 7)
	s.Traffic = append(s.Traffic, s.Traffic[0])
	s.Traffic[1].Inputs = []int{2}
	var again []Arrival
	for _, a := range all(s, 7) {
		if a.Input == 1 {
			again = append(again, a)
		}
	}
	if len(one) == 0 || len(again) != len(one) {
		t.Fatalf("%d packets, then %d", len(one), len(again))
	}
	for i := range one {
		if one[i].At != again[i].At || one[i].Size != again[i].Size {
			t.Fatalf("packet %d was %v, is %v", i, one[i], again[i])
		}
	}
}

// all arrivals of a scenario.
func all(s *Scenario, seed uint64) []Arrival {
	m := newMerge(s.sources(seed))
	var list []Arrival
	for a := (Arrival{}); m.next(&a); {
		list = append(list, a)
	}
	return list
}

// small is a switch of two ports and two virtual switches.
func small() *Scenario {
	virtual := VirtualSwitch{
		Name: "a", Ports: []int{1, 2}, Rate: 500 * vnet.Mbit, Buffer: 32000, InputQuantum: 1500,
		Scheduler: fifo, Quantum: 1500,
	}
	other := virtual
	other.Name = "b"
	return &Scenario{
		Name: "small", Duration: 20 * time.Millisecond, Drain: true, Seed: 1, Runs: 1,
		Switch:          Hosting{Ports: 2, Rate: vnet.Gbit, Crosspoint: 64000, Scheduler: fifo, Sharing: "strict", MaxFrame: 1514},
		VirtualSwitches: []VirtualSwitch{virtual, other},
		Traffic: []Traffic{{
			Inputs: []int{1, 2}, Outputs: []int{1, 2}, Weights: []float64{1, 1},
			Rate: 950 * vnet.Mbit, Arrivals: "mmpp", Peak: 2, Low: 0.2, Burst: 10, Sizes: Bimodal,
		}},
	}
}
