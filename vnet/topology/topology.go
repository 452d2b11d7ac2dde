// Package topology makes substrates: by name, such as "fat-tree:4" or
// "waxman:100,0.5,0.2,1", and from GraphML files as in the Internet Topology
// Zoo. The same name gives the same substrate on every machine. A GraphML file
// may be a request as well.
//
// Hosts made by name have 4 cores and 4 GiB to lease, links carry 1 Gbit/s
// per direction; Sizes says otherwise.
package topology

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
)

// Forms describes the names that Named understands.
var Forms = []string{
	"demo", "one", "triangle", "line:HOSTS", "star:HOSTS", "fat-tree:PORTS",
	"jellyfish:SWITCHES,PORTS,SERVERS,SEED", "waxman:HOSTS,ALPHA,BETA,SEED",
}

// shape builds a substrate from the numbers behind its name.
type shape struct {
	form  string // of Forms
	build func(numbers []float64) (vnet.Substrate, error)
}

var shapes = map[string]shape{
	"demo":     {Forms[0], func([]float64) (vnet.Substrate, error) { return demo(), nil }},
	"one":      {Forms[1], func([]float64) (vnet.Substrate, error) { return line(1), nil }},
	"triangle": {Forms[2], func([]float64) (vnet.Substrate, error) { return triangle(), nil }},
	"line":     {Forms[3], func(n []float64) (vnet.Substrate, error) { return counted(n[0], line) }},
	"star":     {Forms[4], func(n []float64) (vnet.Substrate, error) { return counted(n[0], star) }},
	"fat-tree": {Forms[5], func(n []float64) (vnet.Substrate, error) { return FatTree(int(n[0])) }},
	"jellyfish": {Forms[6], func(n []float64) (vnet.Substrate, error) {
		return Jellyfish(int(n[0]), int(n[1]), int(n[2]), uint64(n[3]))
	}},
	"waxman": {Forms[7], func(n []float64) (vnet.Substrate, error) { return Waxman(int(n[0]), n[1], n[2], uint64(n[3])) }},
}

// Named makes a substrate by name (see Forms); seeds may be left out and are
// then 1. False: it is not such a name, but perhaps a file's.
func Named(name string) (vnet.Substrate, bool, error) {
	kind, rest, stated := strings.Cut(name, ":")
	s, known := shapes[kind]
	if _, wanted, _ := strings.Cut(s.form, ":"); !known || stated != (wanted != "") {
		return vnet.Substrate{}, false, nil
	}
	numbers, err := s.numbers(rest, stated)
	if err != nil {
		return vnet.Substrate{}, true, fmt.Errorf("substrate %s: %w", name, err)
	}
	sub, err := s.build(numbers)
	if err != nil {
		return vnet.Substrate{}, true, fmt.Errorf("substrate %s: %w", name, err)
	}
	sub.Fill()
	return sub, true, nil
}

// maxNumber is the largest that a float64 keeps exactly, for seeds.
const maxNumber = 1 << 53

// numbers reads what stands behind the colon.
func (s shape) numbers(rest string, stated bool) ([]float64, error) {
	if !stated {
		return nil, nil
	}
	_, wanted, _ := strings.Cut(s.form, ":")
	words, names := strings.Split(rest, ","), strings.Split(wanted, ",")
	if names[len(names)-1] == "SEED" && len(words) == len(names)-1 {
		words = append(words, "1")
	}
	if len(words) != len(names) {
		return nil, fmt.Errorf("write it as %s", s.form)
	}
	numbers := make([]float64, len(words))
	for i, word := range words {
		n, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		whole := names[i] != "ALPHA" && names[i] != "BETA"
		if err != nil || !(n >= 0 && n <= maxNumber) || whole && n != float64(int64(n)) {
			return nil, fmt.Errorf("%q is no number for %s: write it as %s", word, names[i], s.form)
		}
		numbers[i] = n
	}
	return numbers, nil
}

// Sizes replaces what hosts and links of a substrate have; zero fields change
// nothing.
type Sizes struct {
	CPU      vnet.CPU
	Memory   vnet.Bytes
	Capacity vnet.Rate     // of links, per direction
	Latency  time.Duration // of links, one way
}

// Apply gives every host and link of a substrate these sizes.
func (s Sizes) Apply(sub *vnet.Substrate) {
	for i := range sub.Hosts {
		h := &sub.Hosts[i]
		h.CPU, h.Memory = or(s.CPU, h.CPU), or(s.Memory, h.Memory)
	}
	for i := range sub.Links {
		l := &sub.Links[i]
		l.Capacity, l.Latency = or(s.Capacity, l.Capacity), or(s.Latency, l.Latency)
	}
}

func or[T ~int64](stated, other T) T {
	if stated != 0 {
		return stated
	}
	return other
}
