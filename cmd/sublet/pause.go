package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) pause() *cobra.Command {
	var keep, giveBack, noWait bool
	timeout := 5 * time.Minute
	c := a.noun(&cobra.Command{
		Use:   "pause NAME",
		Short: "Freeze what runs in a network's nodes",
		Long: `Freeze the programs, commands and machines of a network's nodes until sublet resume.
Files, addresses, routes and connections stay; routers and switches go on. Rates are
kept (--keep-rates), or others may use them meanwhile (--give-back): then nothing is
paid for them, and resume is admitted anew. The window goes on and ends as ever.`,
		Example:           "  sublet pause hello\n  sublet pause hello --give-back",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			return a.still(c.Context(), args[0], noWait, timeout, func(client *api.Client, l vnet.Lease) (vnet.Lease, error) {
				return client.Pause(c.Context(), l.ID(), giveBack)
			})
		},
	})
	c.Flags().BoolVar(&keep, "keep-rates", false, "keep the rates of its links booked (the default)")
	c.Flags().BoolVar(&giveBack, "give-back", false, "let others use the rates of its links until it resumes")
	c.MarkFlagsMutuallyExclusive("keep-rates", "give-back")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return before all hosts have done it")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for the hosts")
	return c
}

func (a *app) resume() *cobra.Command {
	var accept, noWait bool
	var offer string
	timeout := 5 * time.Minute
	c := a.noun(&cobra.Command{
		Use:   "resume NAME",
		Short: "Let the nodes of a paused network go on",
		Long: `Let what sublet pause froze go on, as the same processes. Where others use rates that
were given back, it is refused (exit code 3) with an offer of less; the network stays
paused. --accept changes its request to the offer, and lets it go on.`,
		Example:           "  sublet resume hello\n  sublet resume hello --accept",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			return a.still(c.Context(), args[0], noWait, timeout, func(client *api.Client, l vnet.Lease) (vnet.Lease, error) {
				l, err := resumed(c.Context(), client, l, accept)
				return l, a.refused(err, offer)
			})
		},
	})
	c.Flags().BoolVar(&accept, "accept", false, "take the counter-offer at once, if it comes to one")
	c.Flags().StringVar(&offer, "offer", "", "write the counter-offer to this file")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return before all hosts have done it")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait until it runs")
	return c
}

// resumed lets a lease go on, with what is offered instead if that is accepted.
func resumed(ctx context.Context, client *api.Client, l vnet.Lease, accept bool) (vnet.Lease, error) {
	is, err := client.Resume(ctx, l.ID())
	var refused *vnet.Rejection
	if !accept || !errors.As(err, &refused) || refused.Offer == nil {
		return is, err
	}
	if _, err := client.Update(ctx, l, api.Update{Request: *refused.Offer}); err != nil {
		return is, err
	}
	return client.Resume(ctx, l.ID())
}

// still pauses a network or lets it go on, waits until its hosts have done it, and
// says what it is.
func (a *app) still(ctx context.Context, name string, noWait bool, timeout time.Duration, ask func(*api.Client, vnet.Lease) (vnet.Lease, error)) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	client, l, err := a.lookUp(ctx, name)
	if err == nil {
		l, err = ask(client, l)
	}
	if err == nil && !noWait {
		waiting, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		id := l.ID()
		if l, err = a.waitReady(waiting, client, id); waiting.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("not all hosts of %s have done it after %s, and it stands: sublet leases %s says what it waits for", id, timeout, id.Network)
		}
	}
	if err != nil {
		return err
	}
	if a.format != "table" {
		err = a.print(l, "", nil)
	} else {
		a.sayStill(l)
	}
	if !noWait && l.State != vnet.Running && l.State != vnet.Paused {
		err = errors.Join(err, fmt.Errorf("%s is %s: %s", l.ID(), l.State, l.Message))
	}
	return err
}

// sayStill says whether a network is paused.
func (a *app) sayStill(l vnet.Lease) {
	text := ""
	if p := l.Paused; p != nil {
		text = " since " + when(p.Since) + ", its rates are kept"
		if p.GaveBack {
			text = " since " + when(p.Since) + ", its rates are given back"
		}
	}
	fmt.Fprintf(a.out, "%s is %s%s\n", l.ID(), l.State, text)
}
