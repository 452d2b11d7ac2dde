package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/profile"
	"sublet/vnet"
)

// profileSpec is what the flags of profile say.
type profileSpec struct {
	shares []int // percent of a processor
	sizes  []int
	window time.Duration
}

// mostPoints bounds how long a profile may take.
const mostPoints = 200

func (a *app) profile() *cobra.Command {
	var s profileSpec
	c := a.noun(&cobra.Command{
		Use:   "profile FUNCTION [ARGUMENT...]",
		Short: "Measure what a packet costs a function of a service chain, by size and processor share",
		Long: `Measure what a packet costs FUNCTION, a program that takes every frame from its
interface eth0 and sends it out of eth1, as functions of service chains do. It
runs in namespaces of its own, with this machine's files and your rights, and is
killed afterwards with all that it started.

It gets each share of a processor in turn, and as many frames of each size as
another processor can send. The time that it used over the frames that came out is
what one costs; a fixed part and one for each byte are fitted to all points. Where
it used less than its share, the load was what limited it. What it says of
memory is what is resident, of energy (RAPL, see sublet doctor) what the machine
used meanwhile. It takes a second for each point, and two processors.`,
		Example: "  sublet profile /usr/local/bin/my-ids eth0 eth1\n  sublet profile -o json --size 64,1514 --share 20 -- my-ids --rules rules.txt eth0 eth1",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			spec, err := s.spec(args)
			if err != nil {
				return badInput{err}
			}
			p := a.progress("measuring")
			result, err := profile.Measure(c.Context(), spec)
			p.end()
			if err != nil {
				return err
			}
			return a.printProfile(result)
		},
	})
	c.Flags().SetInterspersed(false) // what follows FUNCTION is the function's
	c.Flags().IntSliceVar(&s.shares, "share", []int{10, 25, 50}, "shares of a processor in percent, 1 to 100")
	c.Flags().IntSliceVar(&s.sizes, "size", []int{64, 512, profile.MostSize}, "bytes of frames without checksum, 60 to 1514")
	c.Flags().DurationVar(&s.window, "window", time.Second, "length of each measurement")
	return c
}

// spec checks everything before anything is made.
func (s profileSpec) spec(args []string) (profile.Spec, error) {
	spec := profile.Spec{Sizes: s.sizes, Window: s.window}
	if s.window < 100*time.Millisecond || s.window > time.Minute {
		return spec, fmt.Errorf("--window %s: choose 100ms to 1m", s.window)
	}
	for _, size := range s.sizes {
		if size < profile.LeastSize || size > profile.MostSize {
			return spec, fmt.Errorf("--size %d: choose %d to %d", size, profile.LeastSize, profile.MostSize)
		}
	}
	for _, share := range s.shares {
		if share < 1 || share > 100 {
			return spec, fmt.Errorf("--share %d: choose 1 to 100 percent", share)
		}
		spec.Shares = append(spec.Shares, float64(share)/100)
	}
	if n := len(s.sizes) * len(s.shares); n == 0 || n > mostPoints {
		return spec, fmt.Errorf("--size and --share: %d points; choose 1 to %d", n, mostPoints)
	}
	slices.Sort(spec.Shares)
	path, err := exec.LookPath(args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return spec, fmt.Errorf("function %s: %w", args[0], err)
	}
	spec.Argv = append([]string{path}, args[1:]...)
	if os.Geteuid() != 0 {
		return spec, errors.New("a profile makes network namespaces: run it as root")
	}
	return spec, nil
}

// usualRate and usualSizes are what a profile is shown for.
const usualRate = 100 * vnet.Mbit

var usualSizes = []float64{1500, 512, 64}

func (a *app) printProfile(r profile.Result) error {
	var rows [][]string
	for _, p := range r.Points {
		rows = append(rows, []string{fmt.Sprintf("%.0f %%", 100*p.Share), fmt.Sprintf("%.1f %%", 100*p.Used), fmt.Sprint(p.Bytes),
			fmt.Sprintf("%.0f", p.Packets), readable(vnet.Rate(p.Rate)), fmt.Sprintf("%.3f", 1e6*p.Cost), fmt.Sprintf("%.1f", p.Memory/(1<<20))})
	}
	if err := a.print(r, "SHARE USED BYTES PACKETS/S RATE US-PER-PACKET MEMORY-MIB", rows); err != nil || a.format != "table" {
		return err
	}
	fmt.Fprintf(a.out, "\na packet costs %.3f us and %.3f ns for each byte, to within %.0f %%\n", 1e6*r.Profile.Fixed, 1e9*r.Profile.PerByte, 100*r.WorstError)
	for _, size := range usualSizes {
		packets := float64(usualRate) / 8 / size
		fmt.Fprintf(a.out, "%s of packets of %.0f bytes takes %.1f %% of a processor\n", readable(usualRate), size, 100*r.Profile.Cost(packets, packets*size))
	}
	for _, m := range r.Missing {
		fmt.Fprintf(a.out, "%s was not measured: %s\n", m.Meter, m.Why)
	}
	return nil
}
