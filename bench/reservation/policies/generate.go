package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"sublet/vnet"
)

// family is a kind of substrate with the load that makes it tight.
type family struct {
	name    string
	sites   int
	wires   func(*rand.Rand, int) [][2]int
	perHour float64 // requests
}

// families of instances. Rates of arrival are such that serving every request
// at its earliest start or never loses about a quarter of them.
var families = []family{
	{"ring8", 8, ring, 11},
	{"waxman20", 20, waxman, 20},
	{"access9", 9, access, 13},
}

// Shape of all instances: a day; a third wants to begin at once, the others up
// to four hours later; a third has no slack, the others up to twice their
// duration; durations are exponential about an hour.
const (
	daySeconds  = 24 * 3600
	mostAhead   = 4 * 3600
	meanSeconds = 3600
	leastLength = 300
	mostLength  = 4 * 3600
)

// generate makes an instance that depends on nothing but the family and seed.
func generate(f family, seed uint64) instance {
	r := rand.New(rand.NewPCG(seed, uint64(len(f.name))<<32|uint64(f.sites)))
	var in instance
	for i := range f.sites {
		name := siteName(i)
		in.sub.Hosts = append(in.sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name), Site: name})
	}
	for _, w := range f.wires(r, f.sites) {
		in.sub.Links = append(in.sub.Links, vnet.SubstrateLink{Ends: [2]string{siteName(w[0]), siteName(w[1])}, Capacity: vnet.Gbit})
	}
	now := 0.0
	for {
		if now += r.ExpFloat64() * 3600 / f.perHour; now >= daySeconds {
			return in
		}
		in.asks = append(in.asks, drawAsk(r, f.sites, int(now)))
	}
}

func siteName(i int) string { return fmt.Sprintf("s%d", i) }

func drawAsk(r *rand.Rand, sites, now int) ask {
	a := ask{arrival: now, earliest: now, movable: r.IntN(2) == 0}
	if r.IntN(3) > 0 {
		a.earliest += r.IntN(mostAhead)
	}
	a.duration = min(max(int(r.ExpFloat64()*meanSeconds), leastLength), mostLength)
	a.latest = a.earliest
	if r.IntN(3) > 0 {
		a.latest += r.IntN(2 * a.duration)
	}
	size := []int{2, 2, 2, 2, 3, 3, 4}[r.IntN(7)]
	for _, s := range r.Perm(sites)[:size] {
		a.nodes = append(a.nodes, siteName(s))
	}
	for _, ends := range shapeOf(size) {
		a.links = append(a.links, askedFor{ends: ends, mbit: drawRates(r)})
	}
	return a
}

// shapeOf is a link, a star of three, or a ring of four.
func shapeOf(size int) [][2]int {
	switch size {
	case 2:
		return [][2]int{{0, 1}}
	case 3:
		return [][2]int{{0, 1}, {0, 2}}
	}
	return [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}
}

// drawRates are equal in both directions for two of three links.
func drawRates(r *rand.Rand) [2]int {
	rates := []int{50, 100, 200, 300, 400, 600}
	forward := rates[r.IntN(len(rates))]
	if r.IntN(3) > 0 {
		return [2]int{forward, forward}
	}
	return [2]int{forward, rates[r.IntN(len(rates))]}
}

// ring has chords over half of it.
func ring(_ *rand.Rand, n int) [][2]int {
	var wires [][2]int
	for i := range n {
		wires = append(wires, [2]int{i, (i + 1) % n})
	}
	for i := range n / 2 {
		wires = append(wires, [2]int{i, i + n/2})
	}
	return wires
}

// waxman joins near points more often (Waxman 1988, alpha 0.5, beta 0.25), and
// each point to the nearest before it so that all are joined.
func waxman(r *rand.Rand, n int) [][2]int {
	x, y := make([]float64, n), make([]float64, n)
	for i := range n {
		x[i], y[i] = r.Float64(), r.Float64()
	}
	distance := func(i, j int) float64 { return math.Hypot(x[i]-x[j], y[i]-y[j]) }
	var wires [][2]int
	for i := 1; i < n; i++ {
		nearest := 0
		for j := range i {
			if distance(i, j) < distance(i, nearest) {
				nearest = j
			}
		}
		for j := range i {
			if joined := r.Float64() < 0.5*math.Exp(-distance(i, j)/(0.25*math.Sqrt2)); joined || j == nearest {
				wires = append(wires, [2]int{j, i})
			}
		}
	}
	slices.SortFunc(wires, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return wires
}

// access is sites around two cores, each with a link to both.
func access(_ *rand.Rand, n int) [][2]int {
	wires := [][2]int{{0, 1}}
	for i := 2; i < n; i++ {
		wires = append(wires, [2]int{0, i}, [2]int{1, i})
	}
	return wires
}
