package spread

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// tree4 is the 4-ary fat-tree: edge and aggregation switches by pod, then roots.
func tree4() vnet.Substrate {
	var sub vnet.Substrate
	link := func(a, b string) {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: a + "-" + b, Ends: [2]string{a, b}, Capacity: vnet.Gbit})
	}
	name := func(kind string, i, j int) string { return kind + string(rune('0'+i)) + string(rune('0'+j)) }
	for pod := range 4 {
		for i := range 2 {
			sub.Switches = append(sub.Switches, name("e", pod, i), name("a", pod, i), name("c", i, pod%2))
			for j := range 2 {
				host := vnet.SubstrateNode{Name: vnet.HostID(name("h", pod, 2*i+j)), Site: name("p", pod, 0)}
				sub.Hosts = append(sub.Hosts, host)
				link(string(host.Name), name("e", pod, i))
				link(name("e", pod, i), name("a", pod, j))
				link(name("a", pod, i), name("c", i, j))
			}
		}
	}
	seen := make(map[string]bool)
	switches := sub.Switches[:0]
	for _, s := range sub.Switches {
		if !seen[s] {
			switches = append(switches, s)
		}
		seen[s] = true
	}
	sub.Switches = switches
	return sub
}

// mean forwarding rate over runs, in percent.
func mean(t *testing.T, pattern, method string, d Distribution) float64 {
	t.Helper()
	f, err := NewFabric(tree4())
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePattern(pattern, f.Groups)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMethod(method)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 60
	sum, rng := 0.0, rand.New(rand.NewPCG(7, 7))
	for range runs {
		sum += 100 * f.Datagrams(p.Targets(f.Hosts(), rng), 20, d, m, rng)
	}
	return sum / runs
}

// The figures are those of an independent fluid model (facts, JSON
// expected_forwarding_rates; 400 runs).
func TestForwardingRatesOfTheFatTree(t *testing.T) {
	for _, c := range []struct {
		pattern, method string
		d               Distribution
		want, within    float64
	}{
		{"stride:1", "tree", Same, 100, 0.01},
		{"stride:2", "tree", Same, 50, 0.01},
		{"stride:4", "tree", Power, 25, 0.01},
		{"stride:8", "tree", Random, 25, 0.01},
		{"stride:2", "hash", Same, 93.6, 1.5},
		{"stride:4", "hash", Same, 89.9, 1.5},
		{"stride:4", "hash", Random, 88.4, 1.5},
		{"stride:4", "hash", Power, 84.6, 2},
		{"stride:2", "flow", Same, 100, 0.01},
		{"stride:4", "flow", Same, 100, 0.01},
		{"stride:4", "flow", Random, 98.9, 0.7},
		{"stride:4", "flow", Power, 98.0, 0.7},
		{"stride:8", "flow", Power, 98.0, 0.7},
		{"random", "flow", Same, 100, 0.01},
		{"random", "flow", Power, 98.3, 0.7},
		{"random", "tree", Same, 36.2, 4},
		{"same-id", "flow", Power, 98.2, 0.7},
		{"staggered:0.2,0.3", "flow", Same, 100, 0.01},
	} {
		if got := mean(t, c.pattern, c.method, c.d); math.Abs(got-c.want) > c.within {
			t.Errorf("%s, %s, %s: %.2f %%, want %.2f within %.2f", c.pattern, c.method, c.d, got, c.want, c.within)
		}
	}
}

func TestRearrange(t *testing.T) {
	for _, c := range []struct {
		flows []Flow
		paths int
		move  Move
		moves bool
	}{
		{[]Flow{{50, 0, false}, {30, 0, false}, {20, 0, false}, {10, 1, false}}, 2, Move{0, 0, 1}, true},
		{[]Flow{{80, 0, false}, {45, 0, false}, {20, 1, false}}, 2, Move{1, 0, 1}, true}, // not the largest
		{[]Flow{{50, 1, false}, {30, 0, false}, {20, 0, false}, {10, 1, false}}, 2, Move{}, false},
		{[]Flow{{70, 0, false}, {20, 0, false}, {40, 1, false}, {30, 2, false}}, 3, Move{1, 0, 2}, true},
		{[]Flow{{70, 0, false}, {20, 2, false}, {40, 1, false}, {30, 2, false}}, 3, Move{}, false},
		{[]Flow{{40, 0, false}, {40, 1, false}}, 2, Move{}, false},
		{nil, 2, Move{}, false},
		// What is fixed loads its path, and is left where it is.
		{[]Flow{{50, 0, true}, {30, 0, false}, {20, 1, false}}, 2, Move{1, 0, 1}, true},
		{[]Flow{{50, 0, true}, {30, 1, false}, {20, 1, false}}, 2, Move{}, false},
		{[]Flow{{90, 0, true}, {30, 1, false}, {20, 1, false}}, 3, Move{1, 1, 2}, true},
	} {
		m, ok := Rearrange(c.flows, Shared(make([]uint32, c.paths)), 0)
		if ok != c.moves || ok && m != c.move {
			t.Errorf("%v: %v, %v, want %v, %v", c.flows, m, ok, c.move, c.moves)
		}
	}
}

func TestRearrangementEndsAndClosesTheGap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		paths := 1 + rng.IntN(6)
		flows := make([]Flow, rng.IntN(30))
		for i := range flows {
			flows[i] = Flow{Rate: rng.Float64(), Path: rng.IntN(paths)}
		}
		before := spread(flows, paths)
		weights := Shared(make([]uint32, paths))
		Settle(flows, weights)
		if _, more := Rearrange(flows, weights, 0); more {
			t.Fatal("something still moves")
		}
		if after := spread(flows, paths); after > before+1e-12 {
			t.Fatalf("the largest load was %.3f and is %.3f", before, after)
		}
	}
}

// A path of hardly any weight, empty or with a flow that stays, is not in the way
// of evening the others; loads by weight never grow beyond what the largest was,
// and rearranging ends.
func TestRearrangementByWeight(t *testing.T) {
	weights := []float64{384, 256, 384, 1}
	flows := []Flow{{30, 0, false}, {20, 0, false}, {5, 1, false}, {15, 2, false}}
	if m, ok := Rearrange(flows, weights, 0); !ok || m != (Move{1, 0, 2}) {
		t.Errorf("beside an empty spare: %v, %v", m, ok)
	}
	if m, ok := Rearrange(append(flows, Flow{0.5, 3, true}), weights, 0); !ok || m != (Move{1, 0, 2}) {
		t.Errorf("beside a spare with a flow that stays: %v, %v", m, ok)
	}
	if m, ok := Rearrange(append(flows, Flow{10, 3, false}), weights, 0); !ok || m.From != 3 || m.To == 0 {
		t.Errorf("off a spare: %v, %v", m, ok)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		weights := make([]float64, 1+rng.IntN(6))
		for i := range weights {
			weights[i] = float64(1 + rng.IntN(1024))
		}
		flows := make([]Flow, rng.IntN(30))
		for i := range flows {
			flows[i] = Flow{Rate: rng.Float64(), Path: rng.IntN(len(weights))}
		}
		before := spreadBy(flows, weights)
		for moves := 0; ; moves++ {
			m, ok := Rearrange(flows, weights, 0)
			if !ok {
				break
			}
			if moves == 1000 {
				t.Fatalf("rearranging does not end: %v by %v", flows, weights)
			}
			flows[m.Flow].Path = m.To
		}
		if after := spreadBy(flows, weights); after > before+1e-12 {
			t.Fatalf("the largest load was %.5f and is %.5f", before, after)
		}
	}
}

// Equal flows that cannot be even stay where they are, though every look
// measures their rates a little differently: by the packets that fell into it,
// few or many, and looks come a little early or late.
func TestMeasuredRatesDoNotOscillate(t *testing.T) {
	for _, c := range []struct {
		flows, paths int
		packets      float64 // a look and flow
	}{{3, 2, 1.5}, {5, 2, 2.5}, {8, 3, 1.5}, {8, 3, 3.3}, {8, 3, 7.5}, {20, 8, 1.5}, {20, 8, 5.5}, {20, 8, 100}} {
		rng := rand.New(rand.NewPCG(3, 3))
		weights := Shared(make([]uint32, c.paths))
		flows, phases, counts := make([]Flow, c.flows), make([]float64, c.flows), make([]int, c.flows)
		for i := range flows {
			flows[i], phases[i] = Flow{Rate: c.packets, Path: i % c.paths}, rng.Float64()
		}
		now, moves := 0.0, 0
		for range 5000 {
			now += 0.96 + 0.08*rng.Float64()
			for i := range flows {
				sent := int(c.packets*now + phases[i])
				flows[i].Rate = Smooth(flows[i].Rate, float64(sent-counts[i]))
				counts[i] = sent
			}
			if m, ok := Rearrange(flows, weights, 1); ok {
				flows[m.Flow].Path = m.To
				moves++
			}
		}
		if moves > 0 {
			t.Errorf("%d flows of %.1f packets a look over %d paths: %d moves", c.flows, c.packets, c.paths, moves)
		}
	}
}

// spreadBy is the largest load by weight.
func spreadBy(flows []Flow, weights []float64) float64 {
	load, most := make([]float64, len(weights)), 0.0
	for _, f := range flows {
		load[f.Path] += f.Rate / weights[f.Path]
		most = max(most, load[f.Path])
	}
	return most
}

// spread is the largest load.
func spread(flows []Flow, paths int) float64 {
	load, most := make([]float64, paths), 0.0
	for _, f := range flows {
		load[f.Path] += f.Rate
		most = max(most, load[f.Path])
	}
	return most
}

func TestPowerLawSchedule(t *testing.T) {
	shares := Power.Shares(20, nil)
	for i, want := range []float64{1, 1, 1, 1, 1, 3, 6, 9, 14, 20, 27, 36, 47, 60, 76, 93, 113, 136, 161, 189} {
		if got := shares[i] * 995; math.Abs(got-want) > 1e-9 {
			t.Errorf("flow %d has %.3f slots, want %.0f", i, got, want)
		}
	}
}

// Max-min fairness: on a full link of every flow nobody has more than it.
func TestFairSharesAreMaxMin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		capacity := make([]float64, 1+rng.IntN(6))
		for i := range capacity {
			capacity[i] = rng.Float64() + 0.1
		}
		flows := make([]load, 1+rng.IntN(8))
		for i := range flows {
			flows[i] = load{weight: 1, route: rng.Perm(len(capacity))[:1+rng.IntN(len(capacity))]}
		}
		rates := fair(flows, capacity)
		sum := make([]float64, len(capacity))
		for i, f := range flows {
			for _, l := range f.route {
				sum[l] += rates[i]
			}
		}
		for i, f := range flows {
			bound := false
			for _, l := range f.route {
				if sum[l] > capacity[l]+1e-9 {
					t.Fatalf("link %d carries %.3f of %.3f", l, sum[l], capacity[l])
				}
				bound = bound || sum[l] > capacity[l]-1e-9 && rates[i] >= widest(flows, rates, l)-1e-9
			}
			if !bound {
				t.Fatalf("flow %d could have more than %.3f", i, rates[i])
			}
		}
	}
}

// widest is the largest rate of a link's flows.
func widest(flows []load, rates []float64, link int) float64 {
	most := 0.0
	for i, f := range flows {
		for _, l := range f.route {
			if l == link {
				most = max(most, rates[i])
			}
		}
	}
	return most
}

func TestPatternsAreOneToOne(t *testing.T) {
	f, err := NewFabric(tree4())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"stride:3", "random", "same-id", "staggered:0.5,0.3"} {
		p, err := ParsePattern(text, f.Groups)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(50) {
			got := make(map[int]bool)
			for x, to := range p.Targets(16, rand.New(rand.NewPCG(seed, 0))) {
				if got[to] || x == to {
					t.Fatalf("%s, seed %d: %d sends to %d, which is taken or itself", text, seed, x, to)
				}
				got[to] = true
			}
		}
	}
}

// Two hosts send to each other over a short path and two long ones that share
// links: even dealing puts a third of the subflows on each, weights most on the
// short one and the rest on both of the others.
func TestSubflowsByWeight(t *testing.T) {
	sub := vnet.Substrate{Switches: []string{"a", "b", "c", "d", "e", "f"}, Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}}
	for _, ends := range [][2]string{{"h1", "a"}, {"h2", "b"}, {"a", "b"}, {"a", "c"}, {"c", "d"}, {"c", "e"}, {"d", "f"}, {"e", "f"}, {"f", "b"}} {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: ends[0] + ends[1], Ends: ends, Capacity: vnet.Gbit})
	}
	f, err := NewFabric(sub)
	if err != nil {
		t.Fatal(err)
	}
	ksp, _ := ParseMethod("ksp:3")
	even, _ := ParseMethod("even:3")
	paths := f.Paths(0, 1, ksp)
	if w := f.Weights(paths, even); !slices.Equal(w, []uint32{0, 0, 0}) {
		t.Errorf("even weights are %v", w)
	}
	w := f.Weights(paths, ksp)
	if len(paths) != 3 || w[0] <= w[1]+w[2] || w[1]-w[2] > 1 {
		t.Fatalf("%d paths with weights %v", len(paths), w)
	}
	given := make([]int, 3)
	for _, at := range turns(w, 24) {
		given[at]++
	}
	if given[0] <= 12 || given[2] == 0 {
		t.Errorf("24 turns by weights %v: %v", w, given)
	}
}

// randomGraph has four ports a switch.
func randomGraph(t *testing.T) *Fabric {
	t.Helper()
	sub, _, err := topology.Named("jellyfish:20,4,16,1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(sub)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// On a random graph of four ports, weights are worth more than the seed's
// eighth path costs, and with them no path more makes a gain less.
func TestGainOfWeights(t *testing.T) {
	f := randomGraph(t)
	gain := func(method string) (sum float64) {
		m, _ := ParseMethod(method)
		single, _ := ParseMethod("single")
		for run := range uint64(10) {
			rng := rand.New(rand.NewPCG(1, run))
			targets := oneToOne(f.Hosts(), rng)
			sum += f.Stream(targets, 8, m, rng) / f.Stream(targets, 8, single, rng) / 10
		}
		return sum
	}
	even, three, eight := gain("even:8"), gain("ksp:3"), gain("ksp:8")
	if eight < even+0.05 || eight < three || eight < 1.15 {
		t.Errorf("gains are %.3f evenly, %.3f by weight, %.3f with three paths", even, eight, three)
	}
}

// Flows over the K shortest paths by weight lose less of a random graph than over
// the shortest ones only, and in a fat-tree, whose paths are equal, no more.
func TestDatagramsOverLongerPaths(t *testing.T) {
	f := randomGraph(t)
	rate := func(method string) (sum float64) {
		m, err := ParseMethod(method)
		if err != nil || m.Streams() {
			t.Fatalf("%s: %v", method, err)
		}
		rng := rand.New(rand.NewPCG(3, 3))
		for range 20 {
			sum += f.Datagrams(oneToOne(f.Hosts(), rng), 20, Same, m, rng) / 20
		}
		return sum
	}
	if short, hashed, even := rate("flow"), rate("hash:8"), rate("flow:8"); even < short+0.01 || even < hashed {
		t.Errorf("shortest %.3f, of eight hashed %.3f, evened %.3f", short, hashed, even)
	}
	if got := mean(t, "stride:4", "flow:4", Same); got < 99.99 {
		t.Errorf("in a fat-tree flow:4 is %.2f %%", got)
	}
}

func TestHostsThatCannotReachEachOther(t *testing.T) {
	sub := vnet.Substrate{Switches: []string{"a", "b"}, Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}}
	for _, ends := range [][2]string{{"h1", "a"}, {"h2", "b"}} {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: ends[0] + ends[1], Ends: ends, Capacity: vnet.Gbit})
	}
	if _, err := NewFabric(sub); err == nil {
		t.Error("a fabric in two parts is taken")
	}
	if _, err := ParsePattern("random", Groups{Edge: []int{0}, Pod: []int{0}}); err == nil {
		t.Error("one host sends to itself")
	}
}

func TestBadWords(t *testing.T) {
	for _, pattern := range []string{"", "stride", "stride:0", "stride:x", "stride:1x", "staggered:1,1", "staggered:0.5", "all", "stride:4", "stride:8", "same-id"} {
		if _, err := ParsePattern(pattern, Groups{Edge: make([]int, 4), Pod: make([]int, 4)}); err == nil {
			t.Errorf("pattern %q is taken", pattern)
		}
	}
	for _, method := range []string{"", "ksp", "ksp:0", "ksp:65", "ksp:x", "even", "even:65", "hash:0", "flow:x", "tree:2", "best"} {
		if _, err := ParseMethod(method); err == nil {
			t.Errorf("method %q is taken", method)
		}
	}
}
