// Command deployment measures how fast networks come and go, against Mininet, how
// much a thousand nodes take, and how long an admission takes.
//
//	star of 50   sublet up + sublet down in a running lab of one host, and
//	             mn --topo single,50 --switch lxbr, interleaved
//	1,000 nodes  sublet up, sublet down, peak memory of server and agents
//	admission    50 nodes on a substrate of 100 hosts, by the API
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sublet/bench/harness"
)

var (
	rounds = flag.Int("rounds", 7, "rounds of the comparison with Mininet")
	large  = flag.Int("large", 3, "rounds of 1,000 nodes")
	asks   = flag.Int("asks", 50, "admissions")
)

func main() { harness.Main("experiments/deployment", run) }

func run(ctx context.Context, exe string) error {
	for _, part := range []func(context.Context, string) error{mininet, thousand, admission} {
		fmt.Printf("%s\n\n", harness.Machine())
		if err := part(ctx, exe); err != nil {
			return err
		}
	}
	return nil
}

// hosts is a substrate of one or two hosts with room for everything.
func hosts(two bool) string {
	text := "hosts:\n  - {name: h1, cpu: 4000, memory: 4000GiB}\n"
	if two {
		text += "  - {name: h2, cpu: 4000, memory: 4000GiB}\nlinks:\n  - {ends: [h1, h2], capacity: 10Gbit}\n"
	}
	return text
}

// command runs the program as a user would, and tells how long it took.
func command(ctx context.Context, r *harness.Lab, args ...string) (float64, error) {
	began := time.Now()
	out, err := exec.CommandContext(ctx, r.Exe, append([]string{"--run", r.Run}, args...)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("sublet %v: %w\n%s", args, err, out)
	}
	return time.Since(began).Seconds(), nil
}

// upDown brings a network up and takes it down again.
func upDown(ctx context.Context, r *harness.Lab, name, text string) (up, down float64, err error) {
	path := filepath.Join(r.Run, "lab", name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return 0, 0, err
	}
	if up, err = command(ctx, r, "up", path); err != nil {
		return 0, 0, err
	}
	down, err = command(ctx, r, "down", name)
	return up, down, err
}

// stop ends a lab, keeping the first error.
func stop(r *harness.Lab, err *error) {
	if stopped := r.Stop(); *err == nil {
		*err = stopped
	}
}
