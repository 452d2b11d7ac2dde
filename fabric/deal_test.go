package fabric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bundle is chains of so many links each between switches 0 and 1.
func bundle(t *testing.T, lengths ...int) *Fabric {
	t.Helper()
	links, nodes := 0, 2
	for _, n := range lengths {
		nodes += n - 1
	}
	f := NewFabric(nodes)
	next := 2
	for _, n := range lengths {
		at := 0
		for i := range n {
			to := 1
			if i < n-1 {
				to, next = next, next+1
			}
			if err := f.Join(at, to, 1, links); err != nil {
				t.Fatal(err)
			}
			at, links = to, links+1
		}
	}
	return f
}

// flat prices are all the same.
func flat(f *Fabric) Prices {
	p := f.zeros()
	for _, arcs := range p {
		for i := range arcs {
			arcs[i] = 1
		}
	}
	return p
}

func TestWeightsOfPathsWithNothingInCommon(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    []uint32
	}{
		{[]int{2}, []uint32{0}},
		{[]int{2, 2, 2}, []uint32{0, 0, 0}},
		{[]int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, make([]uint32, 10)},
		{[]int{2, 3}, []uint32{5, 3}},
		// The n-th flow on the short one costs 1 + (n-1)/2, the first on the long one 9.
		{[]int{1, 9}, []uint32{8 * spare, 1}},
	} {
		f := bundle(t, c.lengths...)
		if got := f.Weights(f.Shortest(0, 1, 16), flat(f)); !slices.Equal(got, c.want) {
			t.Errorf("chains of %v: %v, want %v", c.lengths, got, c.want)
		}
	}
	if got := NewFabric(2).Weights(nil, nil); len(got) != 0 {
		t.Errorf("no paths have weights %v", got)
	}
}

// Two of three equally long paths share their first link: they get less than
// the third, and the same.
func TestWeightsOfPathsThatShare(t *testing.T) {
	f := NewFabric(6)
	for i, e := range [][2]int{{0, 2}, {2, 3}, {2, 4}, {3, 1}, {4, 1}, {0, 5}, {5, 1}} {
		cost := 1
		if e[0] == 5 {
			cost = 2
		}
		if err := f.Join(e[0], e[1], cost, i); err != nil {
			t.Fatal(err)
		}
	}
	paths := []Path{along(t, f, 0, 2, 3, 1), along(t, f, 0, 2, 4, 1), along(t, f, 0, 5, 1)}
	prices := flat(f)
	prices[5] = []float64{1, 2}
	got := f.Weights(paths, prices)
	if math.Abs(float64(got[0])-float64(got[1])) > 1 || got[2] <= got[0] || got[2] <= got[1] {
		t.Errorf("weights are %v", got)
	}
}

// What all send to all takes as many links as the pairs are far apart.
func TestLoadsAreAllDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		f := random(rng, 4+rng.IntN(20))
		hosts := make([]int, f.Len())
		for i := range hosts {
			hosts[i] = rng.IntN(4)
		}
		loads, want := f.zeros(), 0.0
		for to := range f.Len() {
			f.load(loads, to, hosts)
			for from := range f.Len() {
				if d, ok := f.Distance(from, to); ok {
					want += float64(d * hosts[from] * hosts[to])
				}
			}
		}
		got := 0.0
		for at, arcs := range f.leaving {
			for i, a := range arcs {
				got += loads[at][i] * float64(a.Cost)
			}
		}
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("loads add up to %f, distances to %f", got, want)
		}
	}
}

// Prices are a link's cost to three times it, and the cost where a fabric is too
// large to look at.
func TestPricesAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{2, 30, 200, pricedSwitches + 1} {
		f := random(rng, n)
		for at, arcs := range f.Prices(nil) {
			for i, price := range arcs {
				cost := float64(f.leaving[at][i].Cost)
				if price < cost || price > (1+crowded)*cost || n > pricedSwitches && price != cost {
					t.Fatalf("of %d switches, a link of cost %g is priced %g", n, cost, price)
				}
			}
		}
	}
}

// On any graph, dealing costs the fabric no more than the same number of flows
// dealt evenly, and every path has a weight that the data plane takes.
func TestDealingCostsLessThanEvenly(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		f := random(rng, 3+rng.IntN(15))
		prices := f.Prices(nil)
		paths := f.Shortest(0, f.Len()-1, 1+rng.IntN(12))
		if len(paths) == 0 {
			continue
		}
		counts := f.deal(paths, prices)
		even, units := make([]int, len(paths)), 0
		for _, n := range counts {
			units += n
		}
		for i := range even {
			even[i] = units / len(paths)
		}
		if ours, theirs := f.outlay(paths, counts, prices), f.outlay(paths, even, prices); ours > theirs*1.0001 {
			t.Fatalf("%v cost %f, dealt evenly %f", counts, ours, theirs)
		}
		weights := f.Weights(paths, prices)
		if slices.Max(weights) > 0 && slices.Min(weights) == 0 {
			t.Fatalf("weights %v of %v", weights, counts)
		}
	}
}

// outlay is the sum of the prices that flows find one after the other.
func (f *Fabric) outlay(paths []Path, counts []int, prices Prices) (sum float64) {
	d, units := f.newDeal(paths, prices), 0
	for _, n := range counts {
		units += n
	}
	for i, n := range counts {
		for range n {
			for _, l := range d.links[i] {
				sum += d.price[l]
				d.price[l] += d.first[l] * growth * subflows / float64(units)
			}
		}
	}
	return sum
}
