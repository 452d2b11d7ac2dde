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

// changeOptions are the flags of commands that change a lease.
type changeOptions struct {
	dryRun, accept, noWait bool
	offer                  string
	timeout                time.Duration
}

func (o *changeOptions) flags(c *cobra.Command) {
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would change, and whether there is room for it")
	c.Flags().BoolVar(&o.accept, "accept", false, "take the counter-offer at once, if it comes to one")
	c.Flags().StringVar(&o.offer, "offer", "", "write the counter-offer to this file")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "return once the change is admitted")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until the hosts have what is new")
}

func (a *app) apply() *cobra.Command {
	var o changeOptions
	c := a.noun(&cobra.Command{
		Use:   "apply FILE",
		Short: "Make a network that exists what a file says",
		Long: `Make a network that exists what FILE (YAML or VXDL, - for standard input) says:
nodes, routers, switches and links that come or go, rates, impairments and latency bounds
of links, processor, memory, files and programs of nodes, settings of switches, stages, a
longer or shorter window. The change is admitted as a whole or refused with an offer; then
nothing is changed. What stays keeps its host, path, interfaces and addresses; links that
stay lose no packet. If a host cannot build what is new, all is as it was.

What cannot change while it runs (the ends of a link, the image or place of a node) is
refused and named. A start that the file does not state stays; a window is counted from it.

Who changes what another has changed meanwhile is told so, and changes nothing.`,
		Example: "  sublet get hello > hello.yaml   # then edit it\n  sublet apply --dry-run hello.yaml\n  sublet apply hello.yaml",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completeRequest,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			request, err := a.readRequest(args[0], false)
			if err != nil {
				return err
			}
			name := nameIn(request)
			_, l, err := a.lookUp(c.Context(), name)
			if unknown := noLease(""); errors.As(err, &unknown) || err == nil && l.State == vnet.Ended {
				return badInput{fmt.Errorf("there is no network %s to change: ask for it with sublet up %s", name, args[0])}
			}
			if err != nil {
				return err
			}
			return a.placed(request.Network, a.alter(c.Context(), l, request, o))
		},
	})
	o.flags(c)
	return c
}

// nameIn is the network that a request names, with its tenant if it says one.
func nameIn(request vnet.Request) string {
	if request.Tenant == "" {
		return string(request.Network)
	}
	return string(request.Tenant) + "/" + string(request.Network)
}

// alter asks for another request of a lease, says what changes, and waits until
// its hosts have it.
func (a *app) alter(ctx context.Context, l vnet.Lease, request vnet.Request, o changeOptions) error {
	client := a.client()
	p := a.progress("asking for the change")
	defer p.end()
	updated, err := client.Update(ctx, l, api.Update{Request: request, DryRun: o.dryRun})
	var refused *vnet.Rejection
	if o.accept && errors.As(err, &refused) && refused.Offer != nil {
		updated, err = client.Update(ctx, l, api.Update{Request: *refused.Offer, DryRun: o.dryRun})
	}
	if err != nil {
		return a.refused(err, o.offer)
	}
	a.tellChanges(p, updated, o.dryRun)
	if !o.dryRun && !o.noWait && len(updated.Changes) > 0 && updated.Lease.State != vnet.Booked {
		if err = waitForm(ctx, client, updated.Lease.ID(), o.timeout); err != nil {
			return err
		}
	}
	if !o.dryRun && len(updated.Changes) > 0 && updated.Lease.State != vnet.Booked {
		updated.Lease, err = a.ready(ctx, client, p, updated.Lease, upOptions{noWait: o.noWait, timeout: o.timeout})
		if updated.Lease.Undone != "" {
			err = fmt.Errorf("%s is as it was before, the change was taken back: %s", updated.Lease.ID(), updated.Lease.Undone)
		}
	}
	if a.format == "table" {
		return err
	}
	return errors.Join(err, a.print(updated, "", nil))
}

// waitForm waits until the form that a lease was given is in force. That one which its
// hosts cannot build is taken back ends the waiting, too.
func waitForm(ctx context.Context, client *api.Client, id vnet.LeaseID, timeout time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		l, err := client.WaitApplied(waiting, id)
		if waiting.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%s is not in its new form after %s: sublet leases %s says what it waits for", id, timeout, id.Network)
		}
		if err != nil || !api.Forming(l) {
			return err
		}
	}
}

// tellChanges says in what a request differs from the former one.
func (a *app) tellChanges(p *progress, u api.Updated, dryRun bool) {
	if len(u.Changes) == 0 {
		a.tellOf(p, "%s is as asked already: nothing changes\n", u.Lease.ID())
		return
	}
	for _, c := range u.Changes {
		text := c.String()
		if dryRun {
			text = c.What + " would be " + c.Value()
		}
		a.tellOf(p, "%s: %s\n", u.Lease.ID(), text)
	}
}
