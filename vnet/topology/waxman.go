package topology

import (
	"fmt"
	"math"
	"time"

	"sublet/internal/splitmix"
	"sublet/vnet"
)

// The square that Waxman's hosts lie in, and how fast light is in fibre
// (refractive index 1.468: 4.9 us/km, rounded up for detours).
const (
	side    = 1000.0 // km
	inFibre = 5 * time.Microsecond
)

// maxWaxman bounds the hosts: every pair is looked at.
const maxWaxman = 10_000

// point is a place in km.
type point struct{ x, y float64 }

func (p point) distance(q point) float64 { return math.Hypot(p.x-q.x, p.y-q.y) }

// Waxman is a random graph of hosts in a square of 1000 km (Waxman, JSAC
// 1988): two at a distance d are joined with probability
// alpha * exp(-d / (beta * L)), L being the largest distance of any two. What
// is not connected then is joined by the shortest possible links. Links have
// the latency of their length in fibre.
func Waxman(n int, alpha, beta float64, seed uint64) (vnet.Substrate, error) {
	switch {
	case n < 1 || n > maxWaxman:
		return vnet.Substrate{}, fmt.Errorf("%d is not a number of hosts from 1 to %d", n, maxWaxman)
	case !(alpha >= 0 && alpha <= 1):
		return vnet.Substrate{}, fmt.Errorf("alpha %g is not a probability from 0 to 1", alpha)
	case !(beta > 0 && beta <= 1000):
		return vnet.Substrate{}, fmt.Errorf("beta %g is not between 0 and 1000", beta)
	}
	r := random{splitmix.Source(seed)}
	places := make([]point, n)
	for i := range places {
		places[i] = point{side * r.Float(), side * r.Float()}
	}
	sub := hosts(n, "")
	longest := 0.0
	for i, p := range places {
		for _, q := range places[:i] {
			longest = max(longest, p.distance(q))
		}
	}
	for i, p := range places {
		for j, q := range places[:i] {
			if r.Float() >= alpha*math.Exp(-p.distance(q)/(beta*longest)) {
				continue
			}
			if len(sub.Links) == vnet.MaxWires {
				return vnet.Substrate{}, fmt.Errorf("more than %d links: take a smaller alpha or beta", vnet.MaxWires)
			}
			wire(&sub, places, j, i)
		}
	}
	connect(&sub, places)
	return sub, nil
}

// wire joins two hosts by a link as long as they are apart.
func wire(sub *vnet.Substrate, places []point, a, b int) {
	join(sub, "", host(a+1), host(b+1), vnet.Gbit)
	latency := time.Duration(places[a].distance(places[b]) * float64(inFibre))
	sub.Links[len(sub.Links)-1].Latency = latency.Round(time.Microsecond)
}

// connect joins what is not connected, as Prim's algorithm would: host 1's
// part grows by the nearest host outside it, with all that it is joined to.
func connect(sub *vnet.Substrate, places []point) {
	neighbours := make([][]int, len(places))
	for _, l := range sub.Links {
		a, b := numberOf(l.Ends[0]), numberOf(l.Ends[1])
		neighbours[a], neighbours[b] = append(neighbours[a], b), append(neighbours[b], a)
	}
	near := make([]int, len(places)) // by host: the nearest of the part; -1: in it
	var reach func(at int)
	reach = func(at int) {
		near[at] = -1
		for i, other := range near {
			if other >= 0 && places[i].distance(places[at]) < places[i].distance(places[other]) {
				near[i] = at
			}
		}
		for _, n := range neighbours[at] {
			if near[n] >= 0 {
				reach(n)
			}
		}
	}
	for reach(0); ; {
		best := -1
		for i, other := range near {
			if other >= 0 && (best < 0 || places[i].distance(places[other]) < places[best].distance(places[near[best]])) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		wire(sub, places, near[best], best)
		reach(best)
	}
}

// numberOf undoes host, counting from 0.
func numberOf(name string) int {
	n := 0
	for _, digit := range name[1:] {
		n = 10*n + int(digit-'0')
	}
	return n - 1
}
