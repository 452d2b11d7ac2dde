package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
)

// queues measures what comes through of 1 to 4 threads that send by one port, with a
// queue of 1,000 frames at it and without.
func queues(ctx context.Context, exe string) error {
	t := harness.Table{Head: []string{"switch", "queue", "1 sender, kpps", "2", "3", "4"}}
	return with(ctx, exe, 2, []bed.Kind{bed.Kernel, bed.Process, bed.OVS}, func(list []*bed.Switch) error {
		for _, s := range list {
			if err := s.Replace(ctx, pairs(2)); err != nil {
				return err
			}
			for _, frames := range []int{1000, 0} {
				if err := s.Queue(0, frames); err != nil {
					return err
				}
				row := []any{s.Name, map[int]string{1000: "1,000 frames", 0: "none"}[frames]}
				for threads := 1; threads <= 4; threads++ {
					var rate harness.Samples
					for range *rounds {
						r, err := send(s, 1, threads, wait)
						if err != nil {
							return err
						}
						rate = append(rate, r/1e3)
					}
					row = append(row, rate.Format("%.0f"))
				}
				t.Add(row...)
			}
		}
		t.Print(os.Stdout)
		return nil
	})
}

// shares measures what the process datapath forwards with parts of a processor, in place
// of the frequencies that a machine may not have: a part is so much of each 10 ms, and
// what the process got of it is told beside, since others want the processor, too.
func shares(ctx context.Context, exe string) error {
	t := harness.Table{Head: []string{"most of a processor", "it got, %", "kpps", "kpps of a processor"}}
	return with(ctx, exe, 2, []bed.Kind{bed.Process}, func(list []*bed.Switch) error {
		for _, s := range list {
			if err := s.Replace(ctx, pairs(2)); err != nil {
				return err
			}
			for _, percent := range []int{100, 80, 60, 40, 20, 10} {
				if err := s.Share(percent); err != nil {
					return err
				}
				var got, rate, each harness.Samples
				for range *rounds {
					var used time.Duration
					began := time.Now()
					r, err := send(s, 1, 1, func() (err error) {
						began = time.Now()
						used, err = s.Used(wait)
						return err
					})
					if err != nil {
						return err
					}
					part := used.Seconds() / time.Since(began).Seconds()
					got, rate, each = append(got, 100*part), append(rate, r/1e3), append(each, r/1e3/part)
				}
				t.Add(fmt.Sprintf("%d %%", percent), got.Format("%.0f"), rate.Format("%.0f"), each.Format("%.0f"))
			}
		}
		t.Print(os.Stdout)
		return nil
	})
}
