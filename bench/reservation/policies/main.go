// Command policies plays a set of advance reservations with several
// policies and prints a table of what each accepts. See README.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

var (
	seed   = flag.Uint64("generate", 0, "write instances of this seed into -into, and end")
	into   = flag.String("into", "bench/reservation/policies/instances", "where -generate writes")
	bounds = flag.String("bounds", "bench/reservation/policies/bounds.json", "what bound.py printed: the upper bounds")
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("reservations: ")
	flag.Parse()
	var err error
	if given := isSet("generate"); given {
		err = writeAll(*seed)
	} else {
		err = compare(flag.Args())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// writeAll writes an instance of each family.
func writeAll(seed uint64) error {
	for _, f := range families {
		file, err := os.Create(filepath.Join(*into, fmt.Sprintf("%s-%d.txt", f.name, seed)))
		if err != nil {
			return err
		}
		if err := generate(f, seed).write(file); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// bound is the most that anybody could accept, knowing everything beforehand.
type bound struct {
	Requests float64 `json:"requests"`
	Volume   float64 `json:"volume_gbit"`
}

// compare plays instances with all policies.
func compare(files []string) error {
	if len(files) == 0 {
		files, _ = filepath.Glob("bench/reservation/policies/instances/*.txt")
	}
	limits := make(map[string]bound)
	if text, err := os.ReadFile(*bounds); err == nil {
		if err := json.Unmarshal(text, &limits); err != nil {
			return fmt.Errorf("read %s: %w", *bounds, err)
		}
	}
	fmt.Println("| instance | policy | accepted | volume, Tbit | of the bound | moved | mean ms | worst ms |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, file := range files {
		in, err := read(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, p := range policies {
			r, err := run(in, p)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, p.name, err)
			}
			of := "-"
			if b, ok := limits[name]; ok {
				of = fmt.Sprintf("%.1f %%", 100*r.volume/b.Volume)
			}
			fmt.Printf("| %s | %s | %d of %d | %.2f | %s | %d | %.1f | %.0f |\n", name, p.name, r.accepted, len(in.asks), r.volume/1000, of, r.moved, float64(r.mean.Microseconds())/1000, float64(r.worst.Microseconds())/1000)
		}
		if b, ok := limits[name]; ok {
			fmt.Printf("| %s | upper bound | %.1f of %d | %.2f | 100 %% | | | |\n", name, b.Requests, len(in.asks), b.Volume/1000)
		}
	}
	return nil
}
