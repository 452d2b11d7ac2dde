package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) events() *cobra.Command {
	since, selector, follow := "24h", "", false
	c := a.noun(&cobra.Command{
		Use:   "events [NAME]",
		Short: "Show what happened: states, promises broken and kept again, repairs, moves",
		Long: `Show what happened to one network, or to all of the caller's: changes of state,
promises that broke and are kept again with the cause as far as it is known, repairs,
moves and changes. The operator sees everybody's, and hosts and links that broke.
Events are kept for 90 days.`,
		Example:           "  sublet events hello\n  sublet events --since 7d -o json\n  sublet events -l course=net1 -w",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			from, err := agoOf("--since", since, time.Now())
			if err != nil {
				return err
			}
			of, err := a.following(c.Context(), args, selector)
			if err != nil {
				return err
			}
			if follow {
				return a.followHappenings(c.Context(), of, from)
			}
			list, _, err := of.happenings(c.Context(), from, 0)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, h := range list {
				rows = append(rows, happeningRow(h))
			}
			return a.printAll(list, "TIME\tKIND\tWHAT\tSTATE\tBY\tWHY", rows, "nothing happened")
		},
	})
	c.Flags().StringVar(&since, "since", since, "how far back, such as 7d, or a time such as 2027-03-01T08:00:00Z")
	selectorFlag(c, &selector)
	c.Flags().BoolVarP(&follow, "watch", "w", false, "go on with what happens from now on, until it is interrupted")
	return c
}

// happeningRow names the network beside a link of it.
func happeningRow(h vnet.Happening) []string {
	what := h.What
	if h.Kind == "promise" {
		what = h.Lease.String() + " " + h.What
	}
	return []string{when(h.Time), h.Kind, what, h.State, cmp.Or(h.By, "-"), cmp.Or(h.Why, "-")}
}

// happenings are the events of what is meant after one of a number, and the number
// of the last one that was looked at.
func (c *choice) happenings(ctx context.Context, from time.Time, after uint64) ([]vnet.Happening, uint64, error) {
	all, err := c.client.Events(ctx, vnet.LeaseID(c.Scope), from, after)
	if err != nil {
		return nil, after, err
	}
	list := []vnet.Happening{}
	for _, h := range all {
		after = h.Number
		meant, err := c.holds(ctx, h.Lease, h.Kind == "state")
		if err != nil {
			return nil, after, err
		}
		if meant || c.selector == nil {
			list = append(list, h)
		}
	}
	return list, after, nil
}

// askAgain is how long passes between looks at events.
const askAgain = time.Second

// followHappenings prints events, one a line, until ctx ends.
func (a *app) followHappenings(ctx context.Context, of *choice, from time.Time) error {
	last := uint64(0)
	for {
		list, newest, err := of.happenings(ctx, from, last)
		if err != nil && ctx.Err() == nil {
			return err
		}
		last = newest
		for _, h := range list {
			if err := a.printHappening(h); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

func (a *app) printHappening(h vnet.Happening) error {
	if a.format != "table" {
		text, err := json.Marshal(h)
		if err == nil {
			_, err = fmt.Fprintln(a.out, harmlessJSON(text))
		}
		return err
	}
	_, err := fmt.Fprintln(a.out, harmlessLine(strings.Join(happeningRow(h), "  ")))
	return err
}
