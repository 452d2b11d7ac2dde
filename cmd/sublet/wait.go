package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

// What a network can be waited for.
const (
	forRunning   = "running"
	forReachable = "reachable" // what runs is: nodes that do not reach each other are not running
	forKept      = "kept"
	forReleased  = "released"
)

func (a *app) wait() *cobra.Command {
	what, selector, timeout := forRunning, "", 5*time.Minute
	c := a.noun(&cobra.Command{
		Use:   "wait [NAME]",
		Short: "Wait until a network runs, is checked and kept, or is gone",
		Long: `Wait until a network runs (its nodes reach each other; --for running, or reachable), until its
last check says that it keeps every promise (--for kept), or until no host has
anything of it any more (--for released); with -l until all networks with these
labels do. The exit code is 1 if that is not so in
time or cannot come true.`,
		Example:           "  sublet wait hello && sublet exec hello/ping -- ping -c 3 pong\n  sublet wait hello --for released --timeout 1m\n  sublet wait -l course=net1 --for running",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			until, ok := map[string]func(context.Context, *api.Client, vnet.LeaseID) error{
				forRunning: a.untilRunning, forReachable: a.untilRunning, forKept: untilKept, forReleased: untilReleased,
			}[what]
			if !ok {
				return badInput{fmt.Errorf("--for %q: choose %s, %s, %s or %s", what, forRunning, forReachable, forKept, forReleased)}
			}
			leases, err := a.networks(c.Context(), args, selector, what == forReleased)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			for _, l := range leases {
				err := until(ctx, a.client(), l.ID())
				if ctx.Err() != nil && c.Context().Err() == nil {
					return fmt.Errorf("%s is not %s after %s: %s", l.ID(), what, timeout, a.stateNow(c.Context(), a.client(), l.ID()))
				}
				if err != nil {
					return err
				}
			}
			return a.printWaited(c.Context(), leases, what)
		},
	})
	c.Flags().StringVar(&what, "for", what, "running, reachable, kept or released")
	selectorFlag(c, &selector)
	c.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{forRunning, forReachable, forKept, forReleased}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// printWaited prints the networks as they are now where JSON or YAML is wanted; those
// that were waited for until they are gone are none.
func (a *app) printWaited(ctx context.Context, leases []vnet.Lease, what string) error {
	if a.format == "table" {
		return nil
	}
	views := []leaseView{}
	for _, l := range leases {
		if what == forReleased {
			continue
		}
		l, err := a.client().Lease(ctx, l.ID())
		if err != nil {
			return err
		}
		views = append(views, viewLease(l))
	}
	return a.print(views, "", nil)
}

// lookAgain is how long passes between looks at what has no long poll.
const lookAgain = 500 * time.Millisecond

// untilRunning waits on while a network is degraded: it may run again by itself.
func (a *app) untilRunning(ctx context.Context, client *api.Client, id vnet.LeaseID) error {
	for {
		l, err := a.waitReady(ctx, client, id)
		if err != nil || l.State == vnet.Running {
			return err
		}
		if err := over(l); err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// untilKept waits for a verdict on the network as it is now.
func untilKept(ctx context.Context, client *api.Client, id vnet.LeaseID) error {
	for {
		l, err := client.Lease(ctx, id)
		if err != nil {
			return err
		}
		if v := l.Verdict; v != nil && !v.Stale && v.Says() == vnet.Kept {
			return nil
		}
		if err := over(l); err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func untilReleased(ctx context.Context, client *api.Client, id vnet.LeaseID) error {
	return client.WaitGone(ctx, id)
}

// over is why a network will not run any more.
func over(l vnet.Lease) error {
	if l.State != vnet.Failed && l.State != vnet.Ended {
		return nil
	}
	return fmt.Errorf("%s is %s: %s", l.ID(), l.State, orDash(l.Message))
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookAgain):
		return nil
	}
}

// stateNow says what has become of a network.
func (a *app) stateNow(ctx context.Context, client *api.Client, id vnet.LeaseID) string {
	l, err := client.Lease(ctx, id)
	switch {
	case err != nil:
		return err.Error()
	case l.Message != "":
		return fmt.Sprintf("it is %s: %s", l.State, l.Message)
	}
	return "it is " + string(l.State)
}
