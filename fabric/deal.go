package fabric

import "slices"

// Prices say what it costs others that a flow takes a link, by switch and
// place in Leaving: the link's cost, as much again if it is as crowded as the
// mean of all, and three times it if it is twice as crowded or more.
type Prices [][]float64

// crowded is the most that counts: where few links carry everything, long ways
// around them would seem cheap otherwise.
const crowded = 2

// Bounds of the work: for how many targets loads are added up, and for how many
// switches at all. Beyond, short paths are so many that links are hardly ever
// crowded: at 720 switches of 24 ports, weights gain nothing over even dealing.
const (
	pricedTargets  = 64
	pricedSwitches = 512
)

// Prices of a fabric where hosts, so many at each switch, send equally much to
// each other over all shortest paths. nil: as many at every switch. Of large
// fabrics a part of the targets is looked at, of very large ones none.
func (f *Fabric) Prices(hosts []int) Prices {
	var targets []int
	for to := range f.Len() {
		if weightOf(hosts, to) > 0 {
			targets = append(targets, to)
		}
	}
	loads := f.zeros()
	if f.Len() > pricedSwitches {
		return f.priced(loads)
	}
	for i := range min(len(targets), pricedTargets) {
		f.load(loads, targets[i*len(targets)/min(len(targets), pricedTargets)], hosts)
	}
	return f.priced(loads)
}

func weightOf(hosts []int, at int) float64 {
	if hosts == nil {
		return 1
	}
	return float64(hosts[at])
}

func (f *Fabric) zeros() Prices {
	p := make(Prices, f.Len())
	for i, arcs := range f.leaving {
		p[i] = make([]float64, len(arcs))
	}
	return p
}

// load adds what all send to one target, farthest first; each switch deals it
// equally to its ways there (equal-cost multipath).
func (f *Fabric) load(loads Prices, target int, hosts []int) {
	d := f.distancesTo(target)
	passing, ways := make([]float64, f.Len()), make([]int, 0, 64)
	for _, at := range d.farthestFirst() {
		passing[at] += weightOf(hosts, int(at)) * weightOf(hosts, target)
		ways = ways[:0]
		for i, a := range f.leaving[at] {
			if d.leads(int(at), a) {
				ways = append(ways, i)
			}
		}
		for _, i := range ways {
			loads[at][i] += passing[at] / float64(len(ways))
			passing[f.leaving[at][i].To] += passing[at] / float64(len(ways))
		}
	}
}

// farthestFirst lists the switches that reach a target, but for itself.
func (d *distances) farthestFirst() []int32 {
	order := make([]int32, 0, len(d.dist))
	for at, dist := range d.dist {
		if dist != unreachable && dist > 0 {
			order = append(order, int32(at))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return int(d.dist[b] - d.dist[a]) })
	return order
}

// leads says whether a shortest way goes by an arc.
func (d *distances) leads(at int, a Arc) bool {
	return d.dist[a.To] != unreachable && d.dist[a.To]+int32(a.Cost) == d.dist[at]
}

// priced makes prices of loads. A link that costs more has less capacity, as
// OSPF's costs are made, so the same load crowds it more.
func (f *Fabric) priced(loads Prices) Prices {
	sum, links := 0.0, 0.0
	for at, arcs := range f.leaving {
		for i, a := range arcs {
			loads[at][i] *= float64(a.Cost)
			sum += loads[at][i]
			links++
		}
	}
	for at, arcs := range f.leaving {
		for i, a := range arcs {
			crowd := 0.0
			if sum > 0 {
				crowd = min(loads[at][i]*links/sum, crowded)
			}
			loads[at][i] = float64(a.Cost) * (1 + crowd)
		}
	}
	return loads
}

// Subflows of a connection, at most (MPTCP_SUBFLOWS_MAX of the kernel).
const subflows = 8

// growth of a link's price with each eighth of the flows that takes it. A
// search over 0.2 to 1 found 0.5 best on random graphs of 4 to 8 ports.
const growth = 0.5

// Weights say which part of some flows takes each of the paths between two
// switches, so that they load the fabric least: one flow after the other goes
// where the links' prices add up to least, which grow by a half with each
// eighth of the flows that takes the link. Short paths get more than long
// ones, and those with links of their own more than those that share them.
// A path that gets none is kept as a spare, with the least weight there is.
// Where all get the same, weights are 0.
func (f *Fabric) Weights(paths []Path, prices Prices) []uint32 {
	counts := f.deal(paths, prices)
	weights := make([]uint32, len(counts))
	if len(counts) == 0 || slices.Max(counts) == slices.Min(counts) {
		return weights
	}
	for i, n := range counts {
		weights[i] = uint32(n)
		if slices.Min(counts) == 0 {
			weights[i] = max(uint32(n)*spare, 1)
		}
	}
	return weights
}

// spare paths get one flow where a used one gets at least as many as this: as
// few as the data plane knows of parts.
const spare = 128

// deal is how many flows each path gets: of a multiple of 8 and of the paths, so
// that equal ones can get the same.
func (f *Fabric) deal(paths []Path, prices Prices) []int {
	counts := make([]int, len(paths))
	if len(paths) == 0 {
		return counts
	}
	units := subflows * len(paths) / gcd(subflows, len(paths))
	d := f.newDeal(paths, prices)
	for range units {
		best := d.cheapest()
		counts[best]++
		for _, l := range d.links[best] {
			d.price[l] += d.first[l] * growth * subflows / float64(units)
		}
	}
	return counts
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// deal is the links of paths, by number.
type deal struct {
	links [][]int   // of each path
	first []float64 // price of a link that nobody takes yet
	price []float64
}

func (f *Fabric) newDeal(paths []Path, prices Prices) *deal {
	d := &deal{links: make([][]int, len(paths))}
	var known [][2]int // a link's switch and number; few enough to look through
	for i, p := range paths {
		d.links[i] = make([]int, len(p.Links))
		for at, link := range p.Links {
			key := [2]int{p.Nodes[at], link}
			number := slices.Index(known, key)
			if number < 0 {
				number = len(known)
				known, d.first = append(known, key), append(d.first, f.priceOf(p, at, prices))
			}
			d.links[i][at] = number
		}
	}
	d.price = slices.Clone(d.first)
	return d
}

// priceOf a path's link.
func (f *Fabric) priceOf(p Path, at int, prices Prices) float64 {
	for i, a := range f.leaving[p.Nodes[at]] {
		if a.To == p.Nodes[at+1] && a.Link == p.Links[at] {
			return prices[p.Nodes[at]][i]
		}
	}
	return maxCost
}

// enough is by how much a path must be cheaper than one before it: prices are
// sums in different orders.
const enough = 1e-9

// cheapest path.
func (d *deal) cheapest() int {
	best, least := 0, 0.0
	for i, links := range d.links {
		sum := 0.0
		for _, l := range links {
			sum += d.price[l]
		}
		if i == 0 || sum < least*(1-enough) {
			best, least = i, sum
		}
	}
	return best
}
