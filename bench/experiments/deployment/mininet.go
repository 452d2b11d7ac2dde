package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"sublet/bench/harness"
)

// starSize is how many nodes hang on one router or switch.
const starSize = 50

// mininet compares a star of 50 nodes: ours around a router, Mininet's around
// a Linux bridge without a controller. Ours is the wall-clock time of the
// commands, Mininet's what it reports itself: without Python's start.
func mininet(ctx context.Context, exe string) (err error) {
	if _, err := exec.LookPath("mn"); err != nil {
		fmt.Print("Mininet is not installed (apt-get install mininet): no comparison.\n\n")
		return nil
	}
	r, err := harness.Start(ctx, exe, hosts(false))
	if err != nil {
		return err
	}
	defer stop(r, &err)
	var up, down, both, theirs, wall, ratio, fresh harness.Samples
	for range *rounds {
		u, d, err := upDown(ctx, r, "star", star("star", starSize, false, ""))
		if err != nil {
			return err
		}
		m, w, err := runMininet(ctx)
		if err != nil {
			return err
		}
		f, err := freshStar(ctx, exe)
		if err != nil {
			return err
		}
		up, down, both = append(up, u), append(down, d), append(both, u+d)
		theirs, wall, ratio = append(theirs, m), append(wall, w), append(ratio, (u+d)/m)
		fresh = append(fresh, f)
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	t := harness.Table{Head: []string{"star of 50 nodes", "seconds"}}
	t.Add("sublet up, in a running lab", up.Format("%.3f"))
	t.Add("sublet down, until nothing is left", down.Format("%.3f"))
	t.Add("sublet up + down", both.Format("%.3f"))
	t.Add("Mininet, start + stop, its own figure", theirs.Format("%.3f"))
	t.Add("Mininet, the whole command", wall.Format("%.3f"))
	t.Add("ratio of each round, ours / Mininet's own figure", ratio.Format("%.3f"))
	t.Add("sublet lab up + up + down + lab down: server, store and agent too", fresh.Format("%.3f"))
	t.Print(os.Stdout)
	fmt.Printf("Median (smallest to largest) of %d interleaved rounds.\n\n", *rounds)
	return nil
}

var completed = regexp.MustCompile(`completed in ([0-9.]+) seconds`)

func runMininet(ctx context.Context) (own, wall float64, err error) {
	began := time.Now()
	out, err := exec.CommandContext(ctx, "mn", "--topo", fmt.Sprintf("single,%d", starSize), "--switch", "lxbr", "--controller", "none", "--test", "none").CombinedOutput()
	wall = time.Since(began).Seconds()
	m := completed.FindSubmatch(out)
	if err != nil || m == nil {
		return 0, 0, fmt.Errorf("mn: %w\n%s", err, out)
	}
	own, err = strconv.ParseFloat(string(m[1]), 64)
	return own, wall, err
}

// freshStar begins and ends with nothing.
func freshStar(ctx context.Context, exe string) (float64, error) {
	began := time.Now()
	r, err := harness.Start(ctx, exe, hosts(false))
	if err != nil {
		return 0, err
	}
	_, _, err = upDown(ctx, r, "star", star("star", starSize, false, ""))
	stop(r, &err)
	return time.Since(began).Seconds(), err
}
