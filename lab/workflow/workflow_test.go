package workflow

import (
	"math"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
)

// The published times of a transfer follow from what the application is said to be.
func TestTransfersAreThePublishedOnes(t *testing.T) {
	for _, a := range Allocations {
		for n, s := range Bronze {
			got := s.Fixed.Seconds() + s.Bits/float64(a.Rates[n])
			if want := a.Published.Transfer[n]; math.Abs(got/want-1) > 0.08 {
				t.Errorf("%s, %s: %.2f s, published %.2f s", a.Name, s.Name, got, want)
			}
		}
	}
}

// Cost has the published coefficients when each stage takes what it should, with the
// slowest of the workers some way behind their mean.
func TestCostIsThePublishedOne(t *testing.T) {
	for _, a := range Allocations {
		stages := make([]time.Duration, len(Bronze))
		for n, s := range Bronze {
			stages[n] = s.Compute + time.Duration(2.2*a.Published.Transfer[n]*float64(time.Second))
		}
		resource, bandwidth, err := cost(a, stages)
		if err != nil {
			t.Fatal(err)
		}
		if p := a.Published; math.Abs(resource-p.Resource) > 0.012 || math.Abs(bandwidth-p.Bandwidth) > 0.031 {
			t.Errorf("%s: %.3f c_r + %.3f c_b, published %g and %g", a.Name, resource, bandwidth, p.Resource, p.Bandwidth)
		}
	}
}

// What is asked for is what is meant, at every scale.
func TestRequests(t *testing.T) {
	for _, s := range []Scale{{1, 1}, {50, 5}, {200, 50}} {
		for _, a := range Allocations {
			r, err := file.ParseRequest("application", []byte(text(a, s)))
			if err != nil {
				t.Fatal(err)
			}
			for n := range Bronze {
				top := r.At(n - 1)
				if len(top.Nodes) != 31 || len(top.Links) != Pairs || top.Links[7].Bandwidth[0] != vnet.Static(s.rate(a.Rates[n])) {
					t.Errorf("%s at %v, stage %d: %d nodes, %d links, %v", a.Name, s, n, len(top.Nodes), len(top.Links), top.Links[7].Bandwidth)
				}
			}
		}
		r, err := file.ParseRequest("rival", []byte(rival(s)))
		if err != nil {
			t.Fatal(err)
		}
		asked := r.Links[0].Bandwidth[0]
		whole := float64(asked.Min)*1.04 + float64(Pairs*s.rate(10*vnet.Mbit))*1.04
		if asked.Max != room(s) || whole > float64(room(s)) {
			t.Errorf("at %v the rival asks for %v of %s", s, asked, room(s))
		}
	}
}

func TestRows(t *testing.T) {
	e := experiment{Config: Config{Runs: 2}, all: make(map[cell][]one)}
	add := func(c cell, minutes ...time.Duration) {
		for _, m := range minutes {
			e.all[c] = append(e.all[c], one{transfers: [][]float64{{1, 3}, {2, 2}, {0, 0}}, stages: []time.Duration{m * time.Minute, 0, 0}, switching: time.Second})
		}
	}
	for i := range Allocations {
		add(cell{i, false}, 10, 30)
		add(cell{i, true}, 22, 22)
	}
	rows, err := e.rows()
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[0]; r.Makespan != 20 || math.Abs(r.CV-math.Sqrt2/2) > 1e-9 || r.Transfer[0] != 2 || r.Slowdown != 1 || r.Switching != 1 {
		t.Errorf("alone %+v", r)
	}
	if r := rows[5]; !r.Rival || r.Allocation != "best" || r.Makespan != 22 || r.CV != 0 || math.Abs(r.Slowdown-1.1) > 1e-9 {
		t.Errorf("beside a rival %+v", r)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range []Config{
		{Scale: Scale{0, 5}, Runs: 1}, {Scale: Scale{math.NaN(), 5}, Runs: 1}, {Scale: Scale{50, 0}, Runs: 1}, {Scale: Scale{50, 51}, Runs: 1}, {Scale: Scale{50, 5}},
	} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
