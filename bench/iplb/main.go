// Command iplb measures what relay headers cost: packets that one processor
// sends, forwards and receives over four routers in a second of its time, with
// headers and on the same path without any program, in turn; and a TCP stream
// in large segments likewise.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"

	"sublet/bench/rig"
	"sublet/datapath/iplb"
	"sublet/measure/blast"
)

var (
	rounds = flag.Int("rounds", 9, "rounds, interleaved")
	window = flag.Duration("window", 400*time.Millisecond, "of each measurement")
	size   = flag.Int("size", 512, "of frames, bytes")
	cpu    = flag.Int("cpu", 0, "processor that does everything")
)

func main() { rig.Main("iplb", run) }

// variant is a way of packets; relays 0: the fabric's own.
type variant struct {
	name   string
	form   iplb.Form
	relays int
}

// variants: the first rule has no headers, which is what choosing alone costs.
var variants = []variant{
	{"chosen, no header", iplb.IPIP, 0},
	{"IPIP, 1 relay", iplb.IPIP, 1}, {"IPIP, 4 relays", iplb.IPIP, 4},
	{"GRE, 1 relay", iplb.GRE, 1},
	{"UDP, 1 relay", iplb.List, 1}, {"UDP, 4 relays", iplb.List, 4},
}

func run(context.Context, string) error {
	bare, err := newLine(false)
	if err != nil {
		return err
	}
	defer bare.close()
	with, err := newLine(true)
	if err != nil {
		return err
	}
	defer with.close()
	packets, streams := make(map[string]rig.Samples), make(map[string]rig.Samples)
	for range *rounds {
		if err := measureRound(bare, with, packets, streams); err != nil {
			return err
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	report(packets, streams)
	return nil
}

// measureRound adds each variant's rate over the bare line's, measured just
// before.
func measureRound(bare, with *line, packets, streams map[string]rig.Samples) error {
	for _, v := range variants {
		if err := with.choose(v); err != nil {
			return err
		}
		p, s, err := bare.measure()
		if err != nil {
			return err
		}
		q, u, err := with.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		packets["none"], streams["none"] = append(packets["none"], p), append(streams["none"], s)
		packets[v.name], streams[v.name] = append(packets[v.name], q/p), append(streams[v.name], u/s)
	}
	return nil
}

// choose makes the line take a variant.
func (l *line) choose(v variant) error {
	var relays []netip.Addr
	for i := range v.relays {
		relays = append(relays, relay(i+1))
	}
	behind := netip.PrefixFrom(l.to.Addr, 24).Masked()
	return l.table.Set(iplb.Rule{Prefix: behind, Mode: iplb.PerFlow, Form: v.form, Paths: []iplb.Path{{Relays: relays}}})
}

// measure is packets and bits in a second of the processor's time.
func (l *line) measure() (packets, bits float64, err error) {
	if packets, err = blast.Arrive(l.from, l.to, *size, *cpu, *window); err != nil {
		return 0, 0, err
	}
	bits, err = blast.Stream(l.from, l.to, *cpu, *cpu, *window)
	return packets, bits, err
}

func report(packets, streams map[string]rig.Samples) {
	fmt.Printf("%s; %d rounds of %s, frames of %d bytes, four routers\n\n", rig.Machine(), *rounds, *window, *size)
	fmt.Printf("Without programs: %s packets/s, %s Gbit/s of TCP.\n\n", packets["none"].Format("%.0f"), scaled(streams["none"], 1e9).Format("%.2f"))
	fmt.Println("| way | packets, of those without | TCP in large segments, of that without |")
	fmt.Println("|---|---|---|")
	for _, v := range variants {
		fmt.Printf("| %s | %s %% | %s %% |\n", v.name, scaled(packets[v.name], 0.01).Format("%.1f"), scaled(streams[v.name], 0.01).Format("%.1f"))
	}
}

func scaled(s rig.Samples, by float64) rig.Samples {
	out := make(rig.Samples, len(s))
	for i, x := range s {
		out[i] = x / by
	}
	return out
}
