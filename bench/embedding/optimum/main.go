// Command optimum embeds once more what exact.py has decided, each request in
// the state in which it was decided, and compares with the proven optima. The
// answers are solved once, in hours; this takes seconds after each change of
// the search:
//
//	python3 bench/embedding/optimum/exact.py FILE OUT > ANSWERS
//	go run ./bench/embedding/optimum FILE OUT ANSWERS
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"strconv"

	"sublet/embed"
	"sublet/embed/replay"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("exact: ")
	if len(os.Args) != 4 {
		log.Fatal("state three files: the instance, the mappings of a run, what exact.py printed")
	}
	t, err := compare(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	t.print()
}

func compare(instance, mappings, answers string) (*tally, error) {
	text, err := os.ReadFile(instance)
	if err != nil {
		return nil, err
	}
	in, err := replay.Parse(instance, text)
	if err != nil {
		return nil, err
	}
	held, err := mapped(mappings)
	if err != nil {
		return nil, err
	}
	optima, err := read(answers)
	if err != nil {
		return nil, err
	}
	t := &tally{optima: optima}
	asks := func(id int) bool { _, decided := optima[id]; return decided }
	return t, replay.States(in, held, embed.Options{}, asks, t.add)
}

// mapped reads the mappings of a run, by request.
func mapped(name string) (map[int]replay.Mapping, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	held := make(map[int]replay.Mapping)
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var m replay.Mapping
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		held[m.ID] = m
	}
	return held, nil
}

// line of exact.py about a request that it decided; None: it is impossible.
var line = regexp.MustCompile(`(?m)^request (\d+): .* optimum ([\d.]+|None),`)

// impossible is the optimum of what cannot be placed.
const impossible = -1.

// read lists the optima that were proven, by request.
func read(name string) (map[int]float64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	optima := make(map[int]float64)
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		id, _ := strconv.Atoi(m[1])
		if optima[id], err = strconv.ParseFloat(m[2], 64); err != nil {
			optima[id] = impossible
		}
	}
	if len(optima) == 0 {
		return nil, errors.New(name + " has no line of exact.py that decides a request")
	}
	return optima, nil
}

// tally is what was found.
type tally struct {
	optima                              map[int]float64
	impossible, placed, missed, optimal int
	over                                int // by more than 5 %
	sum, most                           float64
}

// add compares a request's cost, demand times hops, with its optimum.
func (t *tally) add(id int, cost float64, found bool) error {
	best, decided := t.optima[id]
	switch {
	case !decided:
	case best == impossible && found:
		return fmt.Errorf("request %d is proven impossible, and was placed", id)
	case best == impossible:
		t.impossible++
	case !found:
		t.missed++
		fmt.Printf("request %d was not placed; the optimum is %g\n", id, best)
	case cost < best:
		return fmt.Errorf("request %d costs %g, less than the optimum of %g", id, cost, best)
	default:
		t.placed++
		t.gap(id, cost, best)
	}
	return nil
}

func (t *tally) gap(id int, cost, best float64) {
	if cost == best {
		t.optimal++
		return
	}
	gap := (cost - best) / best
	t.sum, t.most = t.sum+gap, max(t.most, gap)
	if gap > 0.05 {
		t.over++
	}
	fmt.Printf("request %d costs %g, %.2f %% above the optimum of %g\n", id, cost, 100*gap, best)
}

func (t *tally) print() {
	fmt.Printf("%d decided, %d of them impossible; of %d that can be placed %d were, %d at the optimum; above it: mean %.3f %%, most %.2f %%, %d by more than 5 %%\n",
		len(t.optima), t.impossible, t.placed+t.missed, t.placed, t.optimal, 100*t.sum/float64(max(1, t.placed)), 100*t.most, t.over)
}
