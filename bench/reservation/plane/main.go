// Command plane says where a control plane of several servers breaks first when it
// grows: it measures what single operations cost here, on a book and a store with leases,
// and reckons what hosts, switches and leases take of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"sublet/bench/harness"
)

var (
	substrate = flag.String("substrate", "fat-tree:32", "on which costs are measured")
	measured  = flag.Int("measured", 5000, "leases that are in book and store meanwhile")
	hosts     = flag.Float64("hosts", 10_000, "of the plan")
	switches  = flag.Float64("switches", 1000, "of the plan, all of which speak OpenFlow")
	leases    = flag.Float64("leases", 100_000, "of the plan, all of which run")
	servers   = flag.Float64("servers", 5, "of the plan")
	cores     = flag.Float64("cores", 16, "of each server")
	life      = flag.Duration("life", 24*time.Hour, "mean of a lease")
	peak      = flag.Float64("peak", 10, "how many times the mean rate of admissions is asked for at worst")
	passed    = flag.Float64("passed", 3, "OpenFlow switches that a link passes")
	readback  = flag.Duration("readback", 50*time.Microsecond, "processor time to read one entry back (docs/controllers.md)")
	commit    = flag.Duration("commit", 5*time.Millisecond, "of the store (BenchmarkMembers of ./test)")
	disk      = flag.Float64("disk", 100e6, "bytes a second that a server's disk writes")
	wire      = flag.Float64("wire", 125e6, "bytes a second of a server's network")
	quota     = flag.Float64("quota", 2<<30, "bytes of the store")
	copying   = flag.Duration("copying", 10*time.Second, "how long a follower may take to have its copy of the store")
	memory    = flag.Float64("memory", 32<<30, "bytes of a server")
)

// What the server and agents do by themselves.
const (
	reportEvery   = 2 * time.Second        // agent: a host's sign of life
	readBackEvery = 400 * time.Millisecond // agent/forwarding: all entries of a switch
	takeover      = 3 * time.Second        // until another server answers
	elected       = 2500 * time.Millisecond
	started       = time.Minute // until a control plane of which nothing runs answers
)

func main() {
	harness.Main("reservation/plane", func(ctx context.Context, _ string) error {
		c, err := measure(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n\n", harness.Machine())
		c.print()
		c.plan()
		return nil
	})
}

// demand is what the plan takes of one thing that there is so much of.
type demand struct {
	of          string
	takes, have float64
	unit        string
	then        string // what would be sharded
}

func (d demand) part() float64 { return d.takes / d.have }

// plan prints what breaks first, as one grows everything alike.
func (c costs) plan() {
	list := c.demands()
	slices.SortFunc(list, func(a, b demand) int {
		if a.part() > b.part() {
			return -1
		}
		return 1
	})
	fmt.Printf("%.0f hosts, %.0f switches, %.0f leases on %.0f servers of %.0f processors:\n\n", *hosts, *switches, *leases, *servers, *cores)
	table := harness.Table{Head: []string{"what", "takes", "of", "unit", "breaks at leases", "then"}}
	for _, d := range list {
		table.Add(d.of, d.takes, d.have, d.unit, math.Round(*leases/d.part()), d.then)
	}
	table.Print(os.Stdout)
}

// demands are those of the server that leads, unless it says otherwise.
func (c costs) demands() []demand {
	asks := *leases / life.Seconds() * *peak
	entries := *leases * c.links * *passed * 2
	written := c.leaseBytes + c.planBytes
	reports := *hosts / reportEvery.Seconds()
	return []demand{
		{"reading entries of switches back", entries * readback.Seconds() / readBackEvery.Seconds(), *cores, "processors", "switches among the servers, by a fenced key each"},
		{"taking over: the copy and the book", *leases * (c.taken + c.restore + c.first).Seconds(), (takeover - elected).Seconds(), "s", "a follower's book, kept up with its copy of the store"},
		{"starting: reading the store", *leases * (c.load + c.restore).Seconds(), started.Seconds(), "s", "the store by regions"},
		{"deciding, one after another", asks * (c.admit + c.open + *commit).Seconds(), 1, "s a second", "the book by regions of the substrate, one leader each"},
		{"deciding in groups of one commit", asks * (c.admit + c.open).Seconds(), 1, "s a second", "the book by regions of the substrate, one leader each"},
		{"hosts' signs of life", reports * (c.report + c.request).Seconds(), *cores, "processors", "reports to followers, which pass on what is news"},
		{"the store's size", *leases * written, *quota, "bytes", "the store by regions"},
		{"the store's disk", asks * 2 * written, *disk, "bytes a second", "the store by regions"},
		{"the store's followers", asks * 2 * written * (*servers - 1), *wire, "bytes a second", "fewer members than servers"},
		{"memory of the book", *leases * c.heap, *memory, "bytes", "the book by regions"},
	}
}
