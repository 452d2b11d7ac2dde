// Command factors measures what decides how fast an OpenFlow switch is, as Zhao's
// thesis does (section 3.3): period of the machine, ports that are polled, flows and
// queue of a port, the processor's share, and the length of a chain.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
)

var (
	only    = flag.String("only", "", "experiments whose names match a regular expression: period, polling, queue, share, chain")
	rounds  = flag.Int("rounds", 3, "rounds")
	window  = flag.Duration("window", 250*time.Millisecond, "of each measurement")
	size    = flag.Int("size", 60, "of a frame, bytes")
	seconds = flag.Int("seconds", 120, "of the search for a period; the thesis took an hour")
	longest = flag.Int("longest", 10, "switches of a chain")
)

func main() { harness.Main("openflow/factors", run) }

// experiment is one of the thesis.
type experiment struct {
	name, title string
	run         func(context.Context, string) error
}

var experiments = []experiment{
	{"period", "E1, TCP over time", period},
	{"polling", "E9, ports and packets of a turn", polling},
	{"queue", "E10, flows of one port", queues},
	{"share", "E11, share of a processor", shares},
	{"chain", "E12, switches in a line", chains},
}

func run(ctx context.Context, exe string) error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	for _, e := range experiments {
		if !pattern.MatchString(e.name) {
			continue
		}
		fmt.Printf("### %s\n\n%s; %d rounds of %s, frames of %d bytes\n\n", e.title, harness.Machine(), *rounds, *window, *size)
		if err := e.run(ctx, exe); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

// with makes switches of some kinds, those that can be made, and takes them away.
func with(ctx context.Context, exe string, ends int, kinds []bed.Kind, do func([]*bed.Switch) error) error {
	b, err := bed.New(exe)
	if err != nil {
		return err
	}
	defer b.Close()
	b.Ends = ends
	var switches []*bed.Switch
	for _, kind := range kinds {
		s, err := b.Add(ctx, kind)
		if err != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		switches = append(switches, s)
	}
	return do(switches)
}
