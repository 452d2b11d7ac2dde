package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lab/workflow"
)

func (a *app) benchApplication() *cobra.Command {
	var b workflow.Config
	c := a.noun(&cobra.Command{
		Use:   "application",
		Short: "An application in stages over leased links: its makespan by what was leased",
		Long: `An application in three stages over leased links, in a lab: table 6.1 of Anhalt's
thesis. 15 workers fetch data from their sources, work on it and send as much back,
three times over; a stage begins when all have ended the one before it. Each link has
1 Mbit/s, or what suits each stage (4.9, 1.95 and 3.87 Mbit/s), or 10 Mbit/s. Rates
change on command while the application runs, on connections that stay open.

Each is run alone, and beside a tenant that fills the rest of the hosts' link with TCP.
Transfers are real, computing is waiting. The lab's time is a --time'th of the
application's and its links are --rate times as fast. What is printed is the
application's own time, beside what was published.`,
		Example: "  sublet bench application --runs 5\n  sublet bench application --runs 1 --time 200 -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if err := b.Check(); err != nil {
				return badInput{err}
			}
			return a.runApplication(c.Context(), b)
		},
	})
	c.Flags().IntVar(&b.Runs, "runs", 3, "how often each is run")
	c.Flags().Float64Var(&b.Scale.Time, "time", 50, "how much shorter it lasts in the lab, 1 to 200")
	c.Flags().IntVar(&b.Scale.Rate, "rate", 5, "how much faster links are in the lab, 1 to 50")
	c.Flags().Uint64Var(&b.Seed, "seed", 0, "choose among sizes of the data")
	return c
}

func (a *app) runApplication(ctx context.Context, b workflow.Config) (err error) {
	if b.Exe, err = os.Executable(); err != nil {
		return err
	}
	p := a.progress("making the lab")
	rows, err := workflow.Run(ctx, b, p.say)
	p.end()
	if err != nil {
		return err
	}
	return a.print(rows, "ALLOCATION RIVAL RUNS TRANSFERS-S MAKESPAN-MIN CV COST SLOWDOWN PUBLISHED-S PUBLISHED-MIN PUBLISHED-COST", applicationTable(rows))
}

func applicationTable(rows []workflow.Row) (table [][]string) {
	for _, r := range rows {
		var transfers, published []string
		for n := range r.Transfer {
			transfers = append(transfers, fmt.Sprintf("%.1f+-%.1f", r.Transfer[n], r.Spread[n]))
			published = append(published, fmt.Sprintf("%.1f", r.Published.Transfer[n]))
		}
		table = append(table, []string{
			r.Allocation, map[bool]string{true: "yes", false: "no"}[r.Rival], fmt.Sprint(r.Runs), strings.Join(transfers, ","),
			fmt.Sprintf("%.2f+-%.2f", r.Makespan, r.Deviation), fmt.Sprintf("%.3f", r.CV), costOf(r.Resource, r.Bandwidth), fmt.Sprintf("%.3f", r.Slowdown),
			strings.Join(published, ","), fmt.Sprintf("%.2f+-%.2f", r.Published.Makespan, r.Published.Spread), costOf(r.Published.Resource, r.Published.Bandwidth),
		})
	}
	return table
}

// costOf is a cost in 1e5 resource seconds and 1e5 Mbit.
func costOf(resource, bandwidth float64) string {
	return fmt.Sprintf("%.2fcr+%.2fcb", resource, bandwidth)
}
