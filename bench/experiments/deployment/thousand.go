package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sublet/bench/harness"
)

// many is how many nodes and links the large networks have.
const many = 1000

// shapes of large networks. Every link has a rate of its own.
var shapes = []struct {
	name  string
	two   bool
	build func(name string, n int, two bool, rate string) string
}{
	{"star around a router, one host", false, star},
	{"500 pairs of nodes, one host", false, pairs},
	{"ring, one host", false, ring},
	{"500 pairs across two hosts", true, pairs},
}

// thousand deploys and releases large networks.
func thousand(ctx context.Context, exe string) error {
	t := harness.Table{Head: []string{"1,000 nodes, 1,000 links of 1 Mbit/s", "sublet up, s", "sublet down, s", "peak memory of server and agents, MiB"}}
	for _, s := range shapes {
		var up, down, memory harness.Samples
		for range *large {
			u, d, m, err := one(ctx, exe, s.two, s.build("large", many, s.two, ", rate: 1Mbit"))
			if err != nil {
				return fmt.Errorf("deploy %s: %w", s.name, err)
			}
			up, down, memory = append(up, u), append(down, d), append(memory, m)
			fmt.Fprint(os.Stderr, ".")
		}
		t.Add(s.name, up.Format("%.2f"), down.Format("%.2f"), memory.Format("%.0f"))
	}
	fmt.Fprintln(os.Stderr)
	t.Print(os.Stdout)
	fmt.Printf("Median (smallest to largest) of %d rounds, each in a lab of its own; the star has the router as its 1,001st node.\n\n", *large)
	return nil
}

func one(ctx context.Context, exe string, two bool, request string) (up, down, memory float64, err error) {
	r, err := harness.Start(ctx, exe, hosts(two))
	if err != nil {
		return 0, 0, 0, err
	}
	defer stop(r, &err)
	if up, down, err = upDown(ctx, r, "large", request); err != nil {
		return 0, 0, 0, err
	}
	return up, down, peak(r.Run), nil
}

// peak sums the largest resident sizes, in MiB, of a run's server and agents,
// and of the agents' helpers.
func peak(run string) (sum float64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	ours := make(map[string]bool)
	for range 2 { // processes of the run, then their children
		for _, path := range stats {
			pid := filepath.Base(filepath.Dir(path))
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if strings.Contains(string(line), run) || ours[field(path, "PPid")] {
				ours[pid] = true
			}
		}
	}
	for pid := range ours {
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(field("/proc/"+pid+"/status", "VmHWM"), " kB"), 64)
		sum += kib / 1024
	}
	return sum
}

// field reads one line of a status file.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
