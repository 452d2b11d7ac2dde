// Command isolation repeats the experiment of Anhalt (thesis, 2011, section
// 5.3.2), called RC-2 in docs/research/measurements.md: two virtual networks, each a
// router with four end nodes around it. Both routers are on one host, every end
// node on one of its own; the routers' host has one interface of 1 Gbit/s. Two
// flows a network, all four at once, in profile, at the limit, and out of
// profile: does one network feel the other?
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/measure/probe"
	"sublet/vnet"
)

var (
	seconds = flag.Int("seconds", 60, "of each run")
	rounds  = flag.Int("rounds", 1, "rounds, interleaved")
)

// caps of the virtual links, by network and flow, in Mbit/s: a flow crosses
// two links of the same cap (Anhalt, thesis, section 5.3.2.1, table 5.2).
var caps = [2][2]float64{{50, 100}, {100, 200}}

// A profile is what the flows of a network offer, in Mbit/s.
var (
	inProfile = [2][2]float64{{30, 90}, {80, 160}} // 0.8 of the sum of caps (Anhalt, thesis, section 5.3.2.2, for the first network)
	atLimit   = caps
	outOf     = [2][2]float64{{60, 120}, {120, 240}} // 1.2
)

// cases of the thesis: what each network does.
var cases = []struct {
	name      string
	offered   [2][2]float64
	published string
}{
	{"1: in, in", [2][2]float64{inProfile[0], inProfile[1]}, "all desired rates, no UDP loss"},
	{"2: limit, limit", [2][2]float64{atLimit[0], atLimit[1]}, "sporadic loss, brief TCP dips, totals reach the caps"},
	{"3: in, limit", [2][2]float64{inProfile[0], atLimit[1]}, "no loss for any flow"},
	{"4: in, out", [2][2]float64{inProfile[0], outOf[1]}, "net 1: full rate, no loss; net 2: UDP loses 13 % and 18 %, TCP 120 and 150 Mbit/s, unsteady"},
}

func main() { harness.Main("experiments/isolation", run) }

func run(ctx context.Context, exe string) (err error) {
	fmt.Printf("%s\n\n", harness.Machine())
	r, err := harness.Start(ctx, exe, substrate())
	if err != nil {
		return err
	}
	defer func() {
		if stopped := r.Stop(); err == nil {
			err = stopped
		}
	}()
	b := bench{Lab: r, outcomes: make(map[key]*outcome)}
	for i := range caps {
		l, err := r.Up(ctx, network(i))
		if err != nil {
			return err
		}
		b.leases = append(b.leases, l)
	}
	for range *rounds {
		for c := range cases {
			for _, tcp := range []bool{false, true} {
				if err := b.measure(ctx, c, tcp); err != nil {
					return fmt.Errorf("case %s: %w", cases[c].name, err)
				}
				fmt.Fprint(os.Stderr, ".")
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	b.report()
	return nil
}

// substrate is a host for the routers and eight for end nodes on one switch.
func substrate() string {
	hosts := []string{"routers"}
	for i := range 8 {
		hosts = append(hosts, fmt.Sprint("e", i+1))
	}
	var b strings.Builder
	b.WriteString("switches: [s1]\nhosts:\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "  - {name: %s, cpu: 4, memory: 4GiB}\n", h)
	}
	b.WriteString("links:\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "  - {ends: [%s, s1], capacity: 1Gbit}\n", h)
	}
	return b.String()
}

// network i: nodes n1 to n4 around a router. Flow 1 goes from n1 to n3, flow 2
// from n2 to n4.
func network(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: vnet-%d\nrouters: [{name: vr, host: routers}]\nnodes:\n", i+1)
	for n := range 4 {
		fmt.Fprintf(&b, "  - {name: n%d, host: e%d}\n", n+1, 4*i+n+1)
	}
	b.WriteString("links:\n")
	for n := range 4 {
		fmt.Fprintf(&b, "  - {name: vl%d, ends: [n%d, vr], rate: %gMbit}\n", n+1, n+1, caps[i][n%2])
	}
	return b.String()
}

// key of an outcome: case, protocol, network, flow.
type key struct {
	c             int
	tcp           bool
	network, flow int
}

// outcome of a flow over all rounds.
type outcome struct{ rate, part, loss harness.Samples }

type bench struct {
	*harness.Lab
	leases   []vnet.Lease
	outcomes map[key]*outcome
}

// measure runs one case, all four flows at once.
func (b bench) measure(ctx context.Context, c int, tcp bool) error {
	var targets []probe.Target
	for i, l := range b.leases {
		for f, nodes := range [][2]string{{"n1", "n3"}, {"n2", "n4"}} {
			path, err := b.Path(l, nodes[0], nodes[1], vnet.Rate(cases[c].offered[i][f]*1e6))
			if err != nil {
				return err
			}
			targets = append(targets, path)
		}
	}
	opt := probe.Options{Targets: targets, Duration: time.Duration(*seconds) * time.Second}
	flows, err := probe.Run(ctx, b.Starters(b.leases...), opt, probe.Load{TCP: tcp, Part: 1})
	for i, f := range flows {
		k := key{c, tcp, i / 2, i % 2}
		if b.outcomes[k] == nil {
			b.outcomes[k] = &outcome{}
		}
		o := b.outcomes[k]
		o.rate = append(o.rate, f.Rate.Mbps())
		o.part = append(o.part, float64(f.Rate)/float64(f.Offered))
		o.loss = append(o.loss, 100*f.Loss)
	}
	return err
}
