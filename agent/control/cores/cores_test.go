package cores

import (
	"math"
	"slices"
	"testing"

	"sublet/internal/splitmix"
)

// brute is the least greatest load of all placements.
func brute(weights, load []float64) float64 {
	if len(weights) == 0 {
		return slices.Max(load)
	}
	best := math.Inf(1)
	for j := range load {
		load[j] += weights[0]
		best = min(best, brute(weights[1:], load))
		load[j] -= weights[0]
	}
	return best
}

// Exact placement is the best of all, with and without load on cores, and its
// loads are those of its cores.
func TestExactAgainstAllPlacements(t *testing.T) {
	random := splitmix.Source(1)
	worse := 0
	for range 400 {
		n, m := 1+int(random.Next()%7), 1+int(random.Next()%4)
		weights, busy := make([]float64, n), make([]float64, m)
		for i := range weights {
			weights[i] = float64(1 + random.Next()%9)
		}
		for j := range busy {
			busy[j] = float64(random.Next() % 3)
		}
		p, err := Exact(weights, busy, Steps)
		if err != nil {
			t.Fatal(err)
		}
		if want := brute(weights, slices.Clone(busy)); !same(p.Most, want) || !p.Proved {
			t.Fatalf("%v on %v: %g (proved: %v), the best is %g", weights, busy, p.Most, p.Proved, want)
		}
		load := slices.Clone(busy)
		for i, j := range p.Core {
			load[j] += weights[i]
		}
		if !slices.EqualFunc(load, p.Load, same) || !same(slices.Max(load), p.Most) {
			t.Fatalf("loads %v are not those of the placement %v", p.Load, load)
		}
		g, _ := Greedy(weights, busy)
		if !same(g.Most, p.Most) {
			worse++
		}
		if slices.Max(busy) == 0 && g.Most > p.Most*(4.0/3-1/(3*float64(m)))+1e-9 {
			t.Fatalf("%v on %d cores: greedy %g is beyond Graham's bound of %g", weights, m, g.Most, p.Most)
		}
	}
	if worse == 0 {
		t.Error("greedy placement was always the best: the cases show nothing")
	}
}

// The smallest cases in which greedy placement is not the best.
func TestWhereGreedyFails(t *testing.T) {
	for _, row := range []struct {
		weights       []float64
		cores         int
		greedy, exact float64
	}{
		{[]float64{5, 5, 4, 4, 3, 3, 3}, 3, 11, 9},
		{[]float64{3, 3, 2, 2, 2}, 2, 7, 6},
		{[]float64{4, 3}, 4, 4, 4},
	} {
		g, _ := Greedy(row.weights, make([]float64, row.cores))
		e, _ := Exact(row.weights, make([]float64, row.cores), Steps)
		if g.Most != row.greedy || e.Most != row.exact || !e.Proved {
			t.Errorf("%v: greedy %g, exact %g, want %g and %g", row.weights, g.Most, e.Most, row.greedy, row.exact)
		}
	}
}

// A search that ends early is at least as good as greedy placement, says that it
// proved nothing, and does the same again.
func TestStepsAreBounded(t *testing.T) {
	random := splitmix.Source(7)
	weights := make([]float64, 60)
	for i := range weights {
		weights[i] = 0.2 + 0.8*random.Float()
	}
	busy := make([]float64, 7)
	g, _ := Greedy(weights, busy)
	a, _ := Exact(weights, busy, 5000)
	b, _ := Exact(weights, busy, 5000)
	if a.Most > g.Most || a.Proved || !slices.Equal(a.Core, b.Core) {
		t.Errorf("greedy %g, bounded %g (proved: %v), again %g", g.Most, a.Most, a.Proved, b.Most)
	}
}

// Cores that carry interrupts are kept clear.
func TestBusyCoresAreKeptClear(t *testing.T) {
	p, _ := Exact([]float64{0.3, 0.2, 0.2}, []float64{0.9, 0, 0}, Steps)
	if slices.Contains(p.Core, 0) {
		t.Errorf("functions are on %v, of which the first is full", p.Core)
	}
}

func TestBadWeights(t *testing.T) {
	for _, bad := range [][2][]float64{{{1}, {}}, {{-1}, {0}}, {{math.NaN()}, {0}}, {{1}, {math.Inf(1)}}} {
		if _, err := Exact(bad[0], bad[1], Steps); err == nil {
			t.Errorf("%v on %v is taken", bad[0], bad[1])
		}
	}
}

// Passes are those of the thesis's two topologies (section 5.2.4).
func TestPasses(t *testing.T) {
	for _, row := range []struct {
		at   []int
		want []float64
	}{
		{[]int{0, 1}, []float64{2, 2, 1, 1, 1}},
		{[]int{1, 1}, []float64{1, 3, 1, 1, 1}},
	} {
		if got := line(3, row.at); !slices.Equal(got.Passes, row.want) {
			t.Errorf("%s: passes %v, want %v", got, got.Passes, row.want)
		}
	}
	found := map[string]bool{}
	for _, topology := range Representative(3, 2, 2) {
		found[topology.String()] = true
	}
	if !found["F1 at S1, F2 at S2"] || len(found) > 5 {
		t.Errorf("representative topologies: %v", found)
	}
}

// The best pair is at least as good as each topology by itself.
func TestBestPair(t *testing.T) {
	topologies := Representative(3, 2, 2)
	costs, busy := []float64{1e-6, 1e-6}, make([]float64, 3)
	best, err := Best(topologies, 1e-6, costs, busy, Steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range topologies {
		one, _ := Best([]Topology{each}, 1e-6, costs, busy, Steps)
		if one.Rate > best.Rate {
			t.Errorf("%s carries %g, the best %g", each, one.Rate, best.Rate)
		}
	}
	if !same(best.Rate*3e-6, 1) { // seven passes on three cores
		t.Errorf("the best carries %g packets a second", best.Rate)
	}
	if _, err := Best(topologies, 1e-6, costs, []float64{1, 1, 1}, Steps); err == nil {
		t.Error("full cores carry something")
	}
}

// All published cases are solved for sure.
func TestPublishedCases(t *testing.T) {
	cases := Published()
	if len(cases) != 27 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		p, err := Exact(c.Weights, make([]float64, c.Cores), Steps)
		if err != nil || !p.Proved || !same(p.Most, brute(c.Weights[:min(len(c.Weights), 8)], make([]float64, c.Cores))) && len(c.Weights) <= 8 {
			t.Errorf("%d nodes on %d cores: %+v, %v", c.Nodes, c.Cores, p, err)
		}
	}
}
