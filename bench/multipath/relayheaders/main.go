// Command relayheaders measures what relay headers cost: packets that one processor
// sends, forwards and receives over four routers in a second of its time, with
// headers and on the same path without any program, in turn; and a TCP stream
// in large segments likewise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/datapath/iplb"
	"sublet/measure/pktgen"
	"sublet/plan"
)

var (
	rounds = flag.Int("rounds", 50, "rounds, interleaved")
	window = flag.Duration("window", 40*time.Millisecond, "of each measurement")
	size   = flag.Int("size", 512, "of frames, bytes")
	only   = flag.String("only", "", "variants whose name has this")
	what   = flag.String("figure", "", "figures whose name has this")
	cpu    = flag.Int("cpu", 0, "processor that does everything")
)

func main() { harness.Main("multipath/relayheaders", run) }

// variant is a way of packets; relays 0: the fabric's own.
type variant struct {
	name     string
	form     plan.Relaying
	relays   int
	shortcut iplb.Shortcut // of the routers
}

// variants: that without programs says how far measurements differ by
// themselves, that without headers what choosing costs.
var variants = slices.Concat(
	[]variant{{name: nothing}},
	relayVariants("", iplb.WhereFree),
	relayVariants(", routers without shortcut", iplb.Never),
)

func relayVariants(how string, shortcut iplb.Shortcut) []variant {
	return []variant{
		{"path chosen, no header" + how, plan.ByIPIP, 0, shortcut},
		{"IPIP, 1 relay" + how, plan.ByIPIP, 1, shortcut},
		{"IPIP, 4 relays" + how, plan.ByIPIP, 4, shortcut},
		{"GRE, 1 relay" + how, plan.ByGRE, 1, shortcut},
		{"UDP, 1 relay" + how, plan.ByUDP, 1, shortcut},
		{"UDP, 4 relays" + how, plan.ByUDP, 4, shortcut},
	}
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
// a stream, by itself and in the kernel's VXLAN, into which form UDP puts its list,
// and which IPIP and GRE leave alone. One processor does everything.
var figures = []figure{
	{"packets over the path", "packets/s", func(l *line) (float64, error) { return pktgen.Arrive(l.from, l.to, *size, *cpu, *window) }},
	{"packets, sender alone", "packets/s", func(l *line) (float64, error) { return pktgen.Reach(l.from, l.to, l.first, *size, *cpu, *window) }},
	{"TCP in large segments", "bit/s", func(l *line) (float64, error) { return pktgen.Stream(l.from, l.to, *cpu, *cpu, *window) }},
	{"TCP in VXLAN", "bit/s", func(l *line) (float64, error) { return pktgen.Stream(l.tunnel[0], l.tunnel[1], *cpu, *cpu, *window) }},
}

// results are rates over the bare line's, by variant and figure; of "none" the
// bare line's own.
type results map[[2]string]harness.Samples

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

// compare measures a variant beside the bare line, in turn before it and after
// it: of two like things, each is then the faster one as often.
func (r results) compare(l *line, v variant, f figure) error {
	own, none := [2]string{v.name, f.name}, [2]string{"none", f.name}
	with := func() (float64, error) {
		if v.name != nothing {
			if err := l.on(); err != nil {
				return 0, err
			}
			defer l.off()
		}
		return f.measure(l)
	}
	var rate, base float64
	measures := []func() error{
		func() (err error) { rate, err = with(); return err },
		func() (err error) { base, err = f.measure(l); return err },
	}
	if len(r[own])%2 == 1 {
		slices.Reverse(measures)
	}
	for _, measure := range measures {
		if err := measure(); err != nil {
			return err
		}
	}
	if !(rate > 0 && base > 0) {
		return nil // the processor was away for the whole window
	}
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
	rule := plan.Spread{Prefix: behind, Mode: plan.PerFlow, By: v.form, Paths: []plan.RelayPath{{Relays: relays}}}
	return errors.Join(l.relaying(v.shortcut), l.tables[0].Set(rule))
}

func (r results) report() {
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, four routers\n\n", harness.Machine(), *rounds, *window, *size)
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
			row += fmt.Sprintf(" %.1f (%.0f to %.0f) |", harness.Samples(s).Median(), s[len(s)/4], s[len(s)*3/4])
		}
		fmt.Println(row)
	}
}
