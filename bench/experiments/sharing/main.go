// Command sharing shows three networks on one link of 2 Gbit/s over time: those of
// examples/demo, which begin to send one after another, as `sublet watch` counts what
// enters them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"sublet/bench/harness"
	"sublet/report"
	"sublet/vxswitch/figure"
)

var (
	step = flag.Duration("step", 10*time.Second, "between the beginnings of two networks")
	draw = flag.String("figure", "", "SVG to write")
)

func main() { harness.Main("experiments/sharing", run) }

var networks = []string{"lease-1", "lease-2", "lease-3"}

func run(ctx context.Context, exe string) (err error) {
	dir, err := os.MkdirTemp("", "sharing")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sublet := func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, exe, append([]string{"--run", filepath.Join(dir, "run")}, args...)...)
	}
	if err := quiet(sublet(ctx, "lab", "up", "--name", fmt.Sprint("sharing", os.Getpid()), "examples/demo/substrate.yaml")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, quiet(sublet(context.WithoutCancel(ctx), "lab", "down"))) }()
	for _, n := range networks {
		if err := quiet(sublet(ctx, "up", "examples/demo/"+n+".yaml")); err != nil {
			return err
		}
		if err := quiet(sublet(ctx, "exec", "-d", n+"/b", "--", "iperf3", "-s")); err != nil {
			return err
		}
	}
	curves, err := measure(ctx, sublet)
	if err != nil {
		return err
	}
	print(curves)
	if *draw == "" {
		return nil
	}
	return write(*draw, curves)
}

func quiet(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}
	return nil
}

// measure lets each network begin a step after the one before it, and the second
// one end a step before the others.
func measure(ctx context.Context, sublet func(context.Context, ...string) *exec.Cmd) (map[string]*curve, error) {
	whole := time.Duration(len(networks)+2) * *step
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	began := time.Now()
	var sending sync.WaitGroup
	for i, n := range networks {
		sending.Go(func() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(i) * *step):
			}
			left := whole - time.Since(began)
			if i == 1 {
				left -= *step
			}
			// That it ends with the context is meant.
			_ = sublet(ctx, "exec", n+"/a", "--", "iperf3", "-c", "b", "-P", "2", "-t", fmt.Sprint(int(left.Seconds()))).Run()
		})
	}
	curves, err := watch(sublet(ctx, "watch", "-o", "json"), began)
	sending.Wait()
	return curves, err
}

// curve is what entered the link of a network, forward: Mbit/s by seconds.
type curve struct {
	at      time.Time
	bytes   uint64
	seconds []float64
	mbit    []float64
}

// watch reads samples until the stream ends.
func watch(c *exec.Cmd, began time.Time) (map[string]*curve, error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = c.Wait() }() // the context has ended it
	curves := make(map[string]*curve)
	for _, n := range networks {
		curves[n] = &curve{}
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s report.Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("sublet watch: %w", err)
		}
		one := curves[string(s.Lease.Network)]
		if one != nil && s.Kind == "vxlink" && s.Labels["direction"] == "0" && s.Labels["enters"] == "true" {
			one.take(s, began)
		}
	}
	return curves, nil
}

func (c *curve) take(s report.Sample, began time.Time) {
	for _, counter := range s.Counters {
		if counter.Name != "entered" || counter.Unit != "bytes" {
			continue
		}
		if span := s.At.Sub(c.at).Seconds(); !c.at.IsZero() && span > 0 {
			c.seconds = append(c.seconds, s.At.Sub(began).Seconds())
			c.mbit = append(c.mbit, 8*float64(counter.Value-c.bytes)/span/1e6)
		}
		c.at, c.bytes = s.At, counter.Value
	}
}

// print gives the median of each network in each step.
func print(curves map[string]*curve) {
	t := harness.Table{Head: []string{"seconds"}}
	t.Head = append(t.Head, networks...)
	for i := range len(networks) + 2 {
		from, to := float64(i)*step.Seconds(), float64(i+1)*step.Seconds()
		cells := []any{fmt.Sprintf("%.0f to %.0f", from, to)}
		for _, n := range networks {
			var s harness.Samples
			for j, at := range curves[n].seconds {
				if at > from+1.5 && at <= to { // a sample is of the second before it
					s = append(s, curves[n].mbit[j])
				}
			}
			cells = append(cells, fmt.Sprintf("%.0f Mbit/s", s.Median()))
		}
		t.Add(cells...)
	}
	t.Print(os.Stdout)
}

func write(name string, curves map[string]*curve) error {
	chart := figure.Chart{Title: "three networks on one link of 2 Gbit/s", X: "seconds", Y: "Mbit/s"}
	for i, n := range networks {
		said := []string{"100 to 500 Mbit/s", "800 to 1500 Mbit/s", "300 Mbit/s"}[i]
		line := figure.Line{Name: n + ": " + said}
		for j, at := range curves[n].seconds {
			line.X, line.Y, line.Half = append(line.X, at), append(line.Y, curves[n].mbit[j]), append(line.Half, math.NaN())
			line.Labels = append(line.Labels, fmt.Sprintf("%.0f", at))
		}
		chart.Lines = append(chart.Lines, line)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := figure.Draw(f, "svg", []figure.Chart{chart}); err != nil {
		return err
	}
	return f.Close()
}
