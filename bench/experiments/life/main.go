// Command life measures how fast nodes with programs in them come and go and how
// much memory they take, against others with the same nodes at a line of switches:
//
//	namespaces  a program in each, against Mininet with a Linux bridge
//	containers  of one image, against podman, which is what containerlab starts
//	            containers with, and veth pairs to a Linux bridge
//	rates       between two namespaces and between two containers, at once
//	machines    over the same links to a machine and to a namespace, in turn
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sublet/bench/harness"
)

var (
	namespaces = flag.Int("namespaces", 500, "nodes without an image, up to 100 or a multiple of it")
	containers = flag.Int("containers", 200, "nodes with an image")
	rounds     = flag.Int("rounds", 1, "interleaved rounds")
	checks     = flag.Int("checks", 5, "measurements of rates in nodes of both kinds")

	machineRounds = flag.Int("machines", 3, "measurements of each figure of a machine")
)

func main() { harness.Main("experiments/life", run) }

func run(ctx context.Context, exe string) error {
	dir, err := os.MkdirTemp("", "life")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := makeImage(ctx, dir); err != nil {
		return err
	}
	fmt.Printf("%s\n\n", harness.Machine())
	for _, c := range []comparison{
		{"namespaces", *namespaces, "", "Mininet", "mn", mininet},
		{"containers", *containers, imageFile, "podman", "runc", podman},
	} {
		if err := c.run(ctx, exe, dir); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	if err := rates(ctx, exe, dir); err != nil {
		return err
	}
	return machines(ctx, exe, dir)
}

// comparison is of one kind of node.
type comparison struct {
	what         string
	count        int
	image        string
	other, needs string
	theirs       func(ctx context.Context, dir string, count int) (figures, error)
}

// figures are seconds and MiB of one round.
type figures struct{ start, stop, memory float64 }

// all are the figures of the rounds.
type all struct{ start, stop, both, memory harness.Samples }

func (a *all) add(f figures) {
	a.start, a.stop = append(a.start, f.start), append(a.stop, f.stop)
	a.both, a.memory = append(a.both, f.start+f.stop), append(a.memory, f.memory)
}

func (c comparison) run(ctx context.Context, exe, dir string) error {
	if c.count == 0 {
		return nil
	}
	var ours, theirs all
	for range *rounds {
		f, err := sublet(ctx, exe, dir, c.count, c.image)
		if err != nil {
			return err
		}
		ours.add(f)
		if !installed(c.needs) {
			continue
		}
		if f, err = c.theirs(ctx, dir, c.count); err != nil {
			return err
		}
		theirs.add(f)
	}
	c.print(ours, theirs)
	return nil
}

func (c comparison) print(ours, theirs all) {
	t := harness.Table{Head: []string{fmt.Sprintf("%d %s with a program each", c.count, c.what), "Sublet", c.other, "ratio"}}
	row := func(what, verb string, a, b harness.Samples) {
		ratio := "-"
		if len(b) > 0 {
			ratio = a.Over(b).Format("%.2f")
		}
		t.Add(what, a.Format(verb), b.Format(verb), ratio)
	}
	row("start, s", "%.2f", ours.start, theirs.start)
	row("stop, s", "%.2f", ours.stop, theirs.stop)
	row("start and stop, s", "%.2f", ours.both, theirs.both)
	row("memory, MiB", "%.0f", ours.memory, theirs.memory)
	t.Print(os.Stdout)
	if len(theirs.start) == 0 {
		fmt.Printf("%s is not installed: no comparison.\n\n", c.other)
	}
}

// runner runs the program in a lab, and returns what it says.
type runner func(args ...string) ([]byte, error)

// inLab does something in a lab of one host with room for everything.
func inLab(ctx context.Context, exe, dir string, do func(run string, lab runner) error) (err error) {
	run, substrate := filepath.Join(dir, "run"), filepath.Join(dir, "substrate.yaml")
	lab := func(args ...string) ([]byte, error) {
		return output(ctx, exe, append([]string{"--run", run}, args...)...)
	}
	if err := os.WriteFile(substrate, []byte("hosts:\n  - {name: h1, cpu: 4000, memory: 4000GiB}\n"), 0o600); err != nil {
		return err
	}
	if _, err := lab("lab", "up", "--name", filepath.Base(dir), "--images", filepath.Join(dir, "images"), substrate); err != nil {
		return err
	}
	defer func() {
		_, down := output(context.WithoutCancel(ctx), exe, "--run", run, "lab", "down")
		err = errors.Join(err, down)
	}()
	return do(run, lab)
}

// sublet measures a network in a lab that runs already.
func sublet(ctx context.Context, exe, dir string, count int, image string) (f figures, err error) {
	err = inLab(ctx, exe, dir, func(run string, lab runner) error {
		request := filepath.Join(dir, "request.yaml")
		if err := os.WriteFile(request, []byte(star(count, image)), 0o600); err != nil {
			return err
		}
		if f.start, err = timed(func() error { _, err := lab("up", request); return err }); err != nil {
			return err
		}
		f.memory = proportional(ofSublet(run))
		f.stop, err = timed(func() error { _, err := lab("down", "star"); return err })
		return err
	})
	return f, err
}

// perSwitch is how many nodes hang at each switch of a line of switches.
const perSwitch = 100

func switches(count int) int { return (count + perSwitch - 1) / perSwitch }

// star is nodes with a program at switches.
func star(count int, image string) string {
	var nodes, links strings.Builder
	with := ""
	if image != "" {
		with = "image: " + image + ", "
	}
	for i := range count {
		fmt.Fprintf(&nodes, "  - {name: n%d, %srun: [[sleep, infinity]]}\n", i, with)
		fmt.Fprintf(&links, "  - {ends: [n%d, s%d]}\n", i, i/perSwitch)
	}
	var hubs []string
	for i := range switches(count) {
		hubs = append(hubs, fmt.Sprintf("{name: s%d}", i))
		if i > 0 {
			fmt.Fprintf(&links, "  - {ends: [s%d, s%d]}\n", i-1, i)
		}
	}
	return "network: star\nnodes:\n" + nodes.String() + "switches: [" + strings.Join(hubs, ", ") + "]\nlinks:\n" + links.String()
}

func timed(do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return time.Since(began).Seconds(), err
}
