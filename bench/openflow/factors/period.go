package main

import (
	"context"
	"os"
	"slices"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
)

// period measures TCP through each switch second after second, and looks for the time
// after which it repeats.
func period(ctx context.Context, exe string) error {
	t := harness.Table{Head: []string{"switch", "Gbit/s: mean", "swing", "period", "likeness after it"}}
	return with(ctx, exe, 2, []bed.Kind{bed.Kernel, bed.Process, bed.OVS}, func(list []*bed.Switch) error {
		for _, s := range list {
			if err := s.Replace(ctx, pairs(2)); err != nil {
				return err
			}
		}
		rates := make([][]float64, len(list))
		for range *seconds {
			for i, s := range list {
				if err := ctx.Err(); err != nil {
					return err
				}
				r, err := pktgen.Stream(s.Stations[0], s.Stations[1], 1, 1, time.Second/time.Duration(len(list)))
				if err != nil {
					return err
				}
				rates[i] = append(rates[i], r/1e9)
			}
		}
		for i, s := range list {
			lag, like := repeats(rates[i])
			t.Add(s.Name, mean(rates[i]), swing(rates[i]), (time.Duration(lag) * time.Second).String(), like)
		}
		t.Print(os.Stdout)
		return nil
	})
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// swing is half of what lies between the 5th and the 95th percentile, over the mean.
func swing(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return (sorted[len(sorted)*95/100] - sorted[len(sorted)*5/100]) / 2 / mean(x)
}

// repeats is the shift, from 5 s to half of all, after which a series is most like
// itself, and how much: 1 is the same, 0 chance.
func repeats(x []float64) (lag int, like float64) {
	m := mean(x)
	var power float64
	for _, v := range x {
		power += (v - m) * (v - m) / float64(len(x))
	}
	for shift := 5; shift <= len(x)/2; shift++ {
		var sum float64
		for i := range len(x) - shift {
			sum += (x[i] - m) * (x[i+shift] - m)
		}
		if c := sum / float64(len(x)-shift) / power; c > like {
			lag, like = shift, c
		}
	}
	return lag, like
}
