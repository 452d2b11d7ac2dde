package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// comeBack is how long a broken stream is left before it is asked for again.
const comeBack = time.Second

func (a *app) watch() *cobra.Command {
	var changes bool
	var selector string
	c := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Follow what changes and what is counted, as it happens",
		Long: `Follow the states of leases and, about once a second, what the hosts' parts say
and have counted of them: links, tunnels, routers, switches, paths. The operator
sees everybody's, the hosts' own, and hosts and links that break. It begins with
the present states and goes on when the server was away, until it is interrupted.`,
		Example:           "  sublet watch hello\n  sublet watch --changes\n  sublet watch -l course=net1\n  sublet watch -o json | jq -c 'select(.kind == \"vxlink\")'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if a.format != "table" && a.format != "json" {
				return badInput{fmt.Errorf("--output %q: choose table or json, which is one sample a line", a.format)}
			}
			return a.runWatch(c.Context(), args, selector, changes)
		},
	}
	c.Flags().BoolVar(&changes, "changes", false, "Show changes of state only, not what is counted.")
	selectorFlag(c, &selector)
	c.Flags().StringVarP(&a.format, "output", "o", "table", "table or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// runWatch prints until ctx ends.
func (a *app) runWatch(ctx context.Context, args []string, selector string, changes bool) error {
	of, err := a.following(ctx, args, selector)
	if err != nil {
		return err
	}
	return a.follow(ctx, of.Scope, func(e api.Event) error {
		if changes && e.Name != api.EventState {
			return nil
		}
		return a.printEvent(ctx, e, of)
	})
}

// follow hands every event to do until ctx ends, across ends of the stream that
// are not the caller's fault.
func (a *app) follow(ctx context.Context, scope report.Scope, do func(api.Event) error) error {
	last, said, begun := "", "", false
	for {
		err := a.client().Watch(ctx, scope.Tenant, last, func(e api.Event) error {
			begun, said = true, ""
			if e.ID != "" {
				last = e.ID
			}
			return do(e)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !begun, errors.Is(err, errNotPrinted):
			return err
		case err != nil && err.Error() != said:
			said = err.Error()
			fmt.Fprintln(a.err, said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(comeBack):
		}
	}
}

// errNotPrinted says that the reader of what is printed has gone.
var errNotPrinted = errors.New("write what was seen")

func (a *app) printEvent(ctx context.Context, e api.Event, of *choice) error {
	samples, err := e.Samples()
	if err != nil {
		return fmt.Errorf("read an event of the server: %w", err)
	}
	if samples, err = of.samples(ctx, samples); err != nil {
		return err
	}
	for _, s := range samples {
		line := harmlessLine(sampleLine(s))
		if a.format == "json" {
			text, err := json.Marshal(s)
			if err != nil {
				return err
			}
			line = harmlessJSON(text)
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return fmt.Errorf("%w: %w", errNotPrinted, err)
		}
	}
	return nil
}

// sampleLine is "15:04:05 h1 vxlink alice.net#0001 alice/net link=a-b entered=7 packets".
func sampleLine(s report.Sample) string {
	words := []string{s.At.Local().Format(time.TimeOnly), orDash(string(s.Host)), string(s.Kind), orDash(s.Key), "-", orDash(string(s.State))}
	if s.Lease != (vnet.LeaseID{}) {
		words[4] = s.Lease.String()
	}
	if s.Why != "" {
		words = append(words, "("+s.Why+")")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		words = append(words, name+"="+orDash(s.Labels[name]))
	}
	for _, c := range s.Counters {
		if c.Value > 0 {
			words = append(words, counterText(c))
		}
	}
	return strings.Join(words, " ")
}

// counterText is "dropped.queue=3 packets"; a number without a unit has none.
func counterText(c report.Counter) string {
	text := c.Name
	if c.Cause != "" {
		text += "." + c.Cause
	}
	text += fmt.Sprintf("=%d", c.Value)
	if c.Unit != report.None {
		text += " " + string(c.Unit)
	}
	return text
}
