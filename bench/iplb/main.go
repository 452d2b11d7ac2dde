// Command iplb measures what relay headers cost: packets that one processor
// sends, forwards and receives over four routers in a second of its time, with
// headers and on the same path without any program, in turn; and a TCP stream
// in large segments likewise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"sublet/bench/rig"
	"sublet/datapath/iplb"
	"sublet/measure/blast"
)

var (
	rounds = flag.Int("rounds", 30, "rounds, interleaved")
	window = flag.Duration("window", 60*time.Millisecond, "of each measurement")
	size   = flag.Int("size", 512, "of frames, bytes")
	only   = flag.String("only", "", "variants whose name has this")
	what   = flag.String("figure", "", "figures whose name has this")
	cpu    = flag.Int("cpu", 0, "processor that does everything")
)

func main() { rig.Main("iplb", run) }

// variant is a way of packets; relays 0: the fabric's own.
type variant struct {
	name     string
	form     iplb.Form
	relays   int
	shortcut bool // relays send past the stack
}

// variants: that without programs says how far measurements differ by
// themselves, that without headers what choosing costs.
var variants = []variant{
	{name: nothing},
	{name: "chosen, no header"},
	{"IPIP, 1 relay", iplb.IPIP, 1, false}, {"IPIP, 4 relays", iplb.IPIP, 4, false},
	{"GRE, 1 relay", iplb.GRE, 1, false},
	{"UDP, 1 relay", iplb.List, 1, false}, {"UDP, 4 relays", iplb.List, 4, false},
	{"IPIP, 1 relay, shortcut", iplb.IPIP, 1, true}, {"IPIP, 4 relays, shortcut", iplb.IPIP, 4, true},
	{"UDP, 1 relay, shortcut", iplb.List, 1, true}, {"UDP, 4 relays, shortcut", iplb.List, 4, true},
}

// nothing is a variant without programs.
const nothing = "nothing"

// figure is one thing that is measured of a line.
type figure struct {
	name    string
	unit    string
	measure func(*line) (float64, error)
}

// figures: packets through all routers, packets that only leave the sender, and
// a stream. One processor does everything.
var figures = []figure{
	{"packets over the path", "packets/s", func(l *line) (float64, error) { return blast.Arrive(l.from, l.to, *size, *cpu, *window) }},
	{"packets, sender alone", "packets/s", func(l *line) (float64, error) { return blast.Reach(l.from, l.to, l.first, *size, *cpu, *window) }},
	{"TCP in large segments", "bit/s", func(l *line) (float64, error) { return blast.Stream(l.from, l.to, *cpu, *cpu, *window) }},
}

// results are rates over the bare line's, by variant and figure; of "none" the
// bare line's own.
type results map[[2]string]rig.Samples

func run(context.Context, string) error {
	l, err := newLine()
	if err != nil {
		return err
	}
	defer l.close()
	all := make(results)
	figures = slices.DeleteFunc(figures, func(f figure) bool { return !strings.Contains(f.name, *what) })
	variants = slices.DeleteFunc(variants, func(v variant) bool { return !strings.Contains(v.name, *only) })
	for range *rounds {
		if err := all.round(l); err != nil {
			return err
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	all.report()
	return nil
}

// round adds each variant's rates over those of the same line without
// programs, measured just before and just after.
func (r results) round(l *line) error {
	for _, v := range variants {
		if err := l.choose(v); err != nil {
			return err
		}
		for _, f := range figures {
			if err := r.compare(l, v, f); err != nil {
				return fmt.Errorf("%s, %s: %w", v.name, f.name, err)
			}
		}
	}
	return nil
}

func (r results) compare(l *line, v variant, f figure) error {
	before, err := f.measure(l)
	if err != nil {
		return err
	}
	if v.name != nothing {
		if err := l.on(); err != nil {
			return err
		}
	}
	rate, err := f.measure(l)
	l.off()
	if err != nil {
		return err
	}
	after, err := f.measure(l)
	if err != nil {
		return err
	}
	base := (before + after) / 2
	if !(rate > 0 && base > 0) || math.IsInf(rate/base, 0) {
		return nil // the processor was away for the whole window
	}
	none, own := [2]string{"none", f.name}, [2]string{v.name, f.name}
	r[none], r[own] = append(r[none], base), append(r[own], 100*rate/base)
	return nil
}

// choose makes the line ready for a variant.
func (l *line) choose(v variant) error {
	var relays []netip.Addr
	for i := range v.relays {
		relays = append(relays, relay(i+1))
	}
	behind := netip.PrefixFrom(l.to.Addr, 24).Masked()
	rule := iplb.Rule{Prefix: behind, Mode: iplb.PerFlow, Form: v.form, Paths: []iplb.Path{{Relays: relays}}}
	return errors.Join(l.relaying(v.shortcut), l.tables[0].Set(rule))
}

func (r results) report() {
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, four routers\n\n", rig.Machine(), *rounds, *window, *size)
	head, rule := "| way |", "|---|"
	for _, f := range figures {
		fmt.Printf("Without programs, %s: %s %s.\n", f.name, r[[2]string{"none", f.name}].Format("%.3g"), f.unit)
		head, rule = head+" "+f.name+" |", rule+"---|"
	}
	fmt.Println("\nParts of those without, in %; median, and the middle half of the rounds:\n\n" + head + "\n" + rule)
	for _, v := range variants {
		row := "| " + v.name + " |"
		for _, f := range figures {
			s := slices.Sorted(slices.Values(r[[2]string{v.name, f.name}]))
			row += fmt.Sprintf(" %.1f (%.0f to %.0f) |", rig.Samples(s).Median(), s[len(s)/4], s[len(s)*3/4])
		}
		fmt.Println(row)
	}
}
