package vnet

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// bronze is the application of Anhalt (thesis, section 6.3.3.1): 31 resources and 15
// virtual links, 1 Mbit/s or 10 Mbit/s each.
func bronze(rate Rate) Request {
	var r Request
	for i := range 31 {
		r.Nodes = append(r.Nodes, VirtualNode{Name: fmt.Sprintf("n%d", i)})
	}
	for i := range 15 {
		r.Links = append(r.Links, VirtualLink{Name: fmt.Sprintf("l%d", i), Bandwidth: [2]Bandwidth{Static(rate), Static(rate)}})
	}
	return r
}

// TestCostOfTheSeed: the published coefficients of c_r and c_b, in 1e5.
func TestCostOfTheSeed(t *testing.T) {
	for _, c := range []struct {
		rate                Rate
		minutes             float64
		resource, bandwidth float64
	}{
		{Mbit, 34.78, 0.65, 0.31},
		{10 * Mbit, 17.72, 0.33, 1.61},
	} {
		length := time.Duration(c.minutes * float64(time.Minute))
		got := bronze(c.rate).Cost(length, DefaultPrices)
		if math.Abs(got.Resource/1e5-c.resource) > 0.011 || math.Abs(got.Bandwidth/1e5-c.bandwidth) > 0.021 {
			t.Errorf("at %s: %.3g c_r + %.3g c_b, want %g and %g", c.rate, got.Resource/1e5, got.Bandwidth/1e5, c.resource, c.bandwidth)
		}
		if got.Total != got.Resource+got.Bandwidth {
			t.Errorf("total %g", got.Total)
		}
	}
}

// TestCostThroughStages: each stage counts for its own time.
func TestCostThroughStages(t *testing.T) {
	r := bronze(Mbit)
	r.For = time.Hour
	r.Stages = []Stage{
		{Name: "fast", After: 20 * time.Minute, Links: map[string][2]Bandwidth{"l0": {Static(11 * Mbit), Static(Mbit)}}},
		{Name: "fewer", After: 50 * time.Minute, Remove: []string{"n30"}},
	}
	p := Prices{Resource: 2, Bandwidth: 3}
	got := *r.Quote(p).Quote
	if want := 31*3000.0 + 30*600; got.Resource != want {
		t.Errorf("%g resource-seconds, want %g", got.Resource, want)
	}
	if want := 15*1200.0 + 20*2400; got.Bandwidth != want {
		t.Errorf("%g Mbit, want %g", got.Bandwidth, want)
	}
	if want := 2*got.Resource + 3*got.Bandwidth; got.Total != want {
		t.Errorf("total %g, want %g", got.Total, want)
	}
	sum := Cost{}
	for _, cut := range []time.Duration{0, 10 * time.Minute, 30 * time.Minute} {
		before := r.Cost(cut, p)
		after := r.Cost(r.For, p)
		sum = Cost{}.Plus(before, p).Plus(Cost{Resource: after.Resource - before.Resource, Bandwidth: after.Bandwidth - before.Bandwidth}, p)
		if math.Abs(sum.Total-got.Total) > 1e-6 {
			t.Errorf("cut at %s: %g, want %g", cut, sum.Total, got.Total)
		}
	}
}

// TestMetered: only running time counts, and asking twice counts once.
func TestMetered(t *testing.T) {
	r := bronze(Mbit)
	at := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	l := Lease{Request: r, State: Deploying, Stage: -1, Window: Window{Start: at}, Account: r.Quote(DefaultPrices)}
	l = l.Metered(at)
	l = l.Metered(at.Add(time.Minute))
	if l.Account.Used.Total != 0 {
		t.Errorf("while deploying %v was used", l.Account.Used)
	}
	l.State = Running
	for range 2 {
		l = l.Metered(at.Add(time.Minute + 10*time.Second))
	}
	if got := l.Account.Used; got.Resource != 310 || got.Bandwidth != 150 {
		t.Errorf("in 10 s %v was used", got)
	}
	if l.Account.Quote != nil || l.Account.Hourly.Resource != 31*3600 {
		t.Errorf("account %+v", l.Account)
	}
}
