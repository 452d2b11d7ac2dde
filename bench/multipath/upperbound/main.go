// Command upperbound writes random graphs with draws of who sends to whom, and what
// the model says that connections get, for bound.py, which computes the most
// that any way of splitting could get:
//
//	go run ./bench/multipath/upperbound | python3 bench/multipath/upperbound/bound.py
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"sublet/fabric/spread"
	"sublet/vnet"
	"sublet/vnet/topology"
)

var (
	name    = flag.String("topology", "jellyfish:20,4,16", "random graph, without its seed")
	graphs  = flag.Int("graphs", 5, "seeds 1, 2 and so on")
	runs    = flag.Int("runs", 15, "draws for each graph, the same as sublet bench multipath's")
	methods = flag.String("methods", "ecmp,even:8,ksp:8,coupled:8", "to compare with")
)

// graph is one instance: links join switches, hosts are by switch, all links
// carry 1. Got is, by method, what all connections of a draw get together.
type graph struct {
	Topology string               `json:"topology"`
	Hosts    []int                `json:"hosts"`
	Links    [][2]int             `json:"links"`
	Draws    [][]int              `json:"draws"` // target of each host
	Got      map[string][]float64 `json:"got"`
}

func main() {
	flag.Parse()
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	var all []graph
	for seed := 1; seed <= *graphs; seed++ {
		g, err := draw(fmt.Sprintf("%s,%d", *name, seed))
		if err != nil {
			return err
		}
		all = append(all, g)
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func draw(name string) (graph, error) {
	sub, known, err := topology.Named(name)
	if !known || err != nil {
		return graph{}, errors.Join(fmt.Errorf("no topology %q", name), err)
	}
	f, err := spread.NewFabric(sub)
	if err != nil {
		return graph{}, err
	}
	g := graph{Topology: name, Hosts: f.Groups.Edge, Links: between(sub), Got: make(map[string][]float64)}
	return g, g.run(f)
}

// between lists the links between switches.
func between(sub vnet.Substrate) (links [][2]int) {
	number := make(map[string]int)
	for i, s := range sub.Switches {
		number[s] = i
	}
	for _, l := range sub.Links {
		a, first := number[l.Ends[0]]
		b, second := number[l.Ends[1]]
		if first && second {
			links = append(links, [2]int{a, b})
		}
	}
	return links
}

// subflows of a connection.
const subflows = 8

func (g *graph) run(f *spread.Fabric) error {
	p, err := spread.ParsePattern("random", f.Groups)
	if err != nil {
		return err
	}
	for i := range *runs {
		var targets []int
		for _, text := range append(strings.Split(*methods, ","), "single") {
			m, err := spread.ParseMethod(text)
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			targets = p.Targets(f.Hosts(), rng)
			g.Got[text] = append(g.Got[text], f.Stream(targets, subflows, m, rng))
		}
		g.Draws = append(g.Draws, targets)
	}
	return nil
}
