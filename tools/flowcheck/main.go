// Command flowcheck prints random multi-commodity flow problems and what
// embed/flow makes of them, one case a line in JSON, for a solver to compare
// (check.py).
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"

	"sublet/embed/flow"
	"sublet/embed/graph"
	"sublet/vnet"
	"sublet/vnet/topology"
)

var (
	count = flag.Int("n", 1000, "cases")
	seed  = flag.Uint64("seed", 1, "of the cases")
)

// problem is one case: arcs by node number with what is left of each, and
// links with what they need per direction.
type problem struct {
	Nodes  int        `json:"nodes"`
	Arcs   [][3]int64 `json:"arcs"`  // from, to, left
	Links  [][5]int64 `json:"links"` // from, to, need forward, need back, cost
	Cost   *float64   `json:"cost"`  // null: infeasible
	Shares [][]share  `json:"shares"`
}

// share is a path, by arcs, with its units of 256.
type share struct {
	Walk  []graph.Arc `json:"walk"`
	Units int         `json:"units"`
}

func main() {
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	r := rand.New(rand.NewPCG(*seed, 0))
	for range *count {
		p, err := solved(r)
		if err == nil {
			err = json.NewEncoder(out).Encode(p)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "flowcheck:", err)
			os.Exit(1)
		}
	}
}

// solved draws a case and solves it.
func solved(r *rand.Rand) (problem, error) {
	hosts := 4 + r.IntN(40)
	sub, err := topology.Waxman(hosts, 0.3+0.5*r.Float64(), 0.2+0.3*r.Float64(), r.Uint64()>>12)
	if err != nil {
		return problem{}, err
	}
	sub.Fill()
	g, err := graph.New(sub)
	if err != nil {
		return problem{}, err
	}
	p := problem{Nodes: hosts}
	left := make([][]int64, 2*len(sub.Links))
	for a := range left {
		left[a] = []int64{1_000_000 * r.Int64N(60)}
		from, to := g.Head(graph.Arc(a)^1), g.Head(graph.Arc(a))
		p.Arcs = append(p.Arcs, [3]int64{int64(from), int64(to), left[a][0]})
	}
	var links []flow.Link
	for range 1 + r.IntN(15) {
		from := r.IntN(hosts)
		to := (from + 1 + r.IntN(hosts-1)) % hosts
		need := [2]int64{1_000_000 * r.Int64N(40), 1_000_000 * r.Int64N(40)}
		l := flow.Link{From: from, To: to, Need: [2][]int64{{need[0]}, {need[1]}}, Cost: float64(need[0] + need[1] + 1), Spread: vnet.MaxLatency, Paths: vnet.MaxPaths}
		links = append(links, l)
		p.Links = append(p.Links, [5]int64{int64(from), int64(to), need[0], need[1], need[0] + need[1] + 1})
	}
	s := flow.Substrate{Graph: g, Left: func(a graph.Arc) []int64 { return left[a] }}
	if cost, ok := flow.Cost(s, links); ok {
		p.Cost = &cost
	}
	if shares, ok := flow.Split(s, links); ok {
		for _, list := range shares {
			var made []share
			for _, one := range list {
				made = append(made, share{one.Walk, one.Units})
			}
			p.Shares = append(p.Shares, made)
		}
	}
	return p, nil
}
