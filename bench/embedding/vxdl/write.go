package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// linksOf is how many requests of a hundred have so many links, and latencies
// how often a bound (ms) stands in them, as counted in the public documents.
var (
	linksOf   = []int{1, 10, 22, 38, 19, 9, 1}
	latencies = []struct{ ms, times int }{{50, 87}, {100, 115}, {200, 93}}
)

// write makes the documents.
func write(dir string, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	n := 0
	for links, times := range linksOf {
		for range times {
			if err := save(dir, fmt.Sprint(n), request(r, n, links)); err != nil {
				return err
			}
			n++
		}
	}
	for name, p := range map[string]struct{ hosts, links int }{"physical-12": {12, 66}, "physical-6": {6, 8}, "physical-120": {120, 660}} {
		text := document(name, nodes(rand.New(rand.NewPCG(seed, 1)), p.hosts, [2]int{4, 10}, [2]int{8, 64})+
			links(rand.New(rand.NewPCG(seed, 2)), p.hosts, p.links, [2]int{4, 10}, func(r *rand.Rand) int { return []int{10, 50, 100}[r.IntN(3)] }))
		if err := save(dir, name, text); err != nil {
			return err
		}
	}
	return nil
}

func save(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name+".xml"), []byte(text), 0o600)
}

func document(id, body string) string {
	return `<description xmlns="http://www.vxdlforum.org/vxdl"><virtualInfrastructure><id>` + id + `</id>
<startDate>2013-01-19T12:00:00</startDate><totalTime>PT4H</totalTime><owner>author</owner><user>author</user>
` + body + "</virtualInfrastructure></description>\n"
}

func request(r *rand.Rand, id, count int) string {
	bound := func(r *rand.Rand) int {
		at := r.IntN(87 + 115 + 93)
		for _, l := range latencies {
			if at -= l.times; at < 0 {
				return l.ms
			}
		}
		return latencies[0].ms
	}
	return document(fmt.Sprint(id), nodes(r, 4, [2]int{3, 8}, [2]int{1, 8})+links(r, 4, count, [2]int{3, 8}, bound))
}

// nodes have cores and memory within bounds, and one of ten locations.
func nodes(r *rand.Rand, count int, cores, memory [2]int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "<vNode><id>%d</id><cpu><cores><simple>%d</simple></cores></cpu><memory><simple>%d</simple><unit>GB</unit></memory><location>%d</location></vNode>\n",
			i, between(r, cores), between(r, memory), 1+r.IntN(10))
	}
	return b.String()
}

// links join so many pairs of nodes that are drawn at random.
func links(r *rand.Rand, nodes, count int, mbps [2]int, latency func(*rand.Rand) int) string {
	var pairs [][2]int
	for i := range nodes {
		for j := range i {
			pairs = append(pairs, [2]int{j, i})
		}
	}
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	var b strings.Builder
	for _, p := range pairs[:min(count, len(pairs))] {
		rate := fmt.Sprintf("<unit>Mbps</unit><simple>%d</simple>", between(r, mbps))
		fmt.Fprintf(&b, "<vLink><id>%d-%d</id><source>%[1]d</source><destination>%[2]d</destination><bandwidth><forward>%[3]s</forward><reverse>%[3]s</reverse></bandwidth><latency><unit>ms</unit><simple>%[4]d</simple></latency></vLink>\n",
			p[0], p[1], rate, latency(r))
	}
	return b.String()
}

func between(r *rand.Rand, bounds [2]int) int { return bounds[0] + r.IntN(bounds[1]-bounds[0]+1) }
