package main

import (
	"context"
	"fmt"
	"os"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
)

// chains measures 1 to 10 switches in a line: the round trip of a datagram, and what
// comes through in a second of the one processor that does all.
func chains(ctx context.Context, exe string) error {
	t := harness.Table{Head: []string{"switches", "switch", "round trip, us: median", "p99", "kpps of a processor", "of one switch"}}
	first := make(map[bed.Kind]float64)
	for _, n := range lengths() {
		for _, kind := range []bed.Kind{bed.Bridge, bed.Kernel, bed.Process} {
			if err := ctx.Err(); err != nil {
				return err
			}
			row, err := chain(ctx, exe, kind, n, first)
			if err != nil {
				return err
			}
			t.Add(row...)
		}
	}
	t.Print(os.Stdout)
	return nil
}

func lengths() (list []int) {
	for _, n := range []int{1, 2, 3, 4, 6, 8, 10} {
		if n <= *longest {
			list = append(list, n)
		}
	}
	return list
}

func chain(ctx context.Context, exe string, kind bed.Kind, n int, first map[bed.Kind]float64) ([]any, error) {
	b, err := bed.New(exe)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	c, err := b.AddChain(ctx, kind, n)
	if err != nil {
		return nil, err
	}
	var median, late, rate harness.Samples
	for range *rounds {
		p50, p99, err := pktgen.Ping(c.From, c.To, 0, 500)
		if err != nil {
			return nil, err
		}
		r, err := pktgen.Flows(c.From, c.To, *size, 1, 0, *window)
		if err != nil {
			return nil, err
		}
		median, late, rate = append(median, p50), append(late, p99), append(rate, r/1e3)
	}
	if n == 1 {
		first[kind] = rate.Median()
	}
	return []any{n, string(kind), median.Format("%.0f"), late.Format("%.0f"), rate.Format("%.1f"), fmt.Sprintf("%.2f", rate.Median()/first[kind])}, nil
}
