package spread

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"sublet/fabric"
)

// Method is how senders spread their flows.
type Method struct {
	Name string
	kind string
	k    int // of the k shortest paths; 0: all shortest
}

// ParseMethod reads a method: tree (the first shortest path), hash (of each
// flow, over all shortest paths, as ECMP does), flow (hash, then
// rearrangement), hash:K and flow:K (the same over the K shortest paths by
// relay.Fabric.Weights), for streams single (the first shortest path), ecmp,
// ksp:K (subflows over the K shortest paths by relay.Fabric.Weights), even:K
// (in turn, each path as often as the others) and coupled:K (the same with
// coupled congestion control).
func ParseMethod(text string) (Method, error) {
	kind, number, counted := strings.Cut(text, ":")
	m := Method{Name: text, kind: kind}
	switch kind {
	case "tree", "single", "ecmp":
		if counted {
			return m, fmt.Errorf("method %q takes no number", text)
		}
		return m, nil
	case "hash", "flow", "ksp", "even", "coupled":
		if !counted && (kind == "hash" || kind == "flow") {
			return m, nil
		}
		k, err := strconv.Atoi(number)
		if err != nil || k < 1 || k > 64 {
			return m, fmt.Errorf("method %q: state the number of paths, 1 to 64, as in %s:8", text, kind)
		}
		m.k = k
		return m, nil
	}
	return m, fmt.Errorf("method %q: choose tree, hash, flow, hash:K, flow:K, single, ecmp, ksp:K, even:K or coupled:K", text)
}

// Kind is the method's name without its number.
func (m Method) Kind() string { return m.kind }

// Streams says that the method is for TCP rather than constant rates.
func (m Method) Streams() bool {
	return !slices.Contains([]string{"tree", "hash", "flow"}, m.kind)
}

// Datagrams is the forwarding rate, received by sent, of senders at their
// link's rate with n flows each.
func (f *Fabric) Datagrams(targets []int, n int, d Distribution, m Method, rng *rand.Rand) float64 {
	var flows []load
	for from, to := range targets {
		paths := f.candidates(from, to, m)
		weights := f.Weights(paths, m)
		list := make([]Flow, n)
		for i, share := range d.Shares(n, rng) {
			list[i] = Flow{Rate: share, Path: draw(weights, rng)}
		}
		if m.kind == "flow" {
			Settle(list, Shared(weights))
		}
		for _, flow := range list {
			flows = append(flows, load{rate: flow.Rate, route: f.route(from, to, paths[flow.Path])})
		}
	}
	sum := 0.0
	for _, rate := range lossy(flows, f.capacity) {
		sum += rate
	}
	return min(sum/float64(len(targets)), 1) // sums are not exact
}

// Paths are those between two hosts' switches that a method chooses from; one
// of a single switch if it is the same.
func (f *Fabric) Paths(from, to int, m Method) []fabric.Path { return f.candidates(from, to, m) }

// candidates are the paths a method chooses from.
func (f *Fabric) candidates(from, to int, m Method) []fabric.Path {
	if m.kind == "tree" || m.kind == "single" {
		return f.paths(from, to, 0)[:1]
	}
	return f.paths(from, to, m.k)
}

// Weights are those of a method's paths; 0 counts as 1.
func (f *Fabric) Weights(paths []fabric.Path, m Method) []uint32 {
	if m.k == 0 || m.kind == "even" || m.kind == "coupled" {
		return make([]uint32, len(paths))
	}
	if f.prices == nil {
		f.prices = f.switches.Prices(f.HostsAt())
	}
	return f.switches.Weights(paths, f.prices)
}

// partsOf a total are weights, of which 0 counts as 1.
func partsOf(weights []uint32) (parts []int, total int) {
	for _, w := range weights {
		parts = append(parts, int(max(w, 1)))
		total += int(max(w, 1))
	}
	return parts, total
}

// draw takes a path by weight.
func draw(weights []uint32, rng *rand.Rand) int {
	parts, total := partsOf(weights)
	at := rng.IntN(total)
	for i, part := range parts {
		if at -= part; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// turns are the first n that paths get by weight, as the data plane gives them:
// each time the path has it that is most behind.
func turns(weights []uint32, n int) []int {
	parts, total := partsOf(weights)
	given, all := make([]int, len(weights)), make([]int, n)
	for turn := range all {
		best, most := 0, -total*n
		for i, part := range parts {
			if due := (turn+1)*part - given[i]*total; due > most {
				best, most = i, due
			}
		}
		given[best]++
		all[turn] = best
	}
	return all
}

// Stream is the sum of the rates of TCP connections with some subflows each,
// which share links max-min fairly: each for itself (uncoupled, as the seed's
// simulations of Nakamura were, thesis, section 5.5.3.1), or coupled.
func (f *Fabric) Stream(targets []int, subflows int, m Method, rng *rand.Rand) float64 {
	var flows []load
	for from, to := range targets {
		paths := f.candidates(from, to, m)
		turns := turns(f.Weights(paths, m), subflows)
		for i := range subflows {
			p := paths[turns[i]]
			if m.kind == "ecmp" {
				p = paths[rng.IntN(len(paths))]
			}
			flows = append(flows, load{weight: 1, route: f.route(from, to, p)})
		}
	}
	rates := fair(flows, f.capacity)
	if m.kind == "coupled" {
		rates = f.coupled(flows, subflows, rates)
	}
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return sum
}

// coupled weighs each subflow by its part of its connection's rate, again and
// again: the increase of linked congestion control (RFC 6356) is shared so
// among the subflows, which makes a connection take no more of a link than
// one stream would, and leave links that are crowded.
func (f *Fabric) coupled(flows []load, subflows int, rates []float64) []float64 {
	for range 30 {
		for first := 0; first < len(flows); first += subflows {
			total := 0.0
			for _, r := range rates[first : first+subflows] {
				total += r
			}
			for i := first; i < first+subflows; i++ {
				part := 1 / float64(subflows)
				if total > 0 {
					part = rates[i] / total
				}
				flows[i].weight = max(0.5*flows[i].weight+0.5*part, 1e-6)
			}
		}
		rates = fair(flows, f.capacity)
	}
	return rates
}
