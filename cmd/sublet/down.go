package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) down() *cobra.Command {
	var o downOptions
	c := a.noun(&cobra.Command{
		Use:   "down NAME...",
		Short: "Release leases and wait until nothing of them is left",
		Long: `Release leases and wait until nothing of them is left. A name that no lease has
is bad input: all such names are told, and no lease is released. With
--ignore-unknown, such as in scripts that clean up, the others are.

--all releases the caller's own leases, -l those of them with these labels; the
operator's own are those of the tenant of their name. Those of another tenant take
--tenant as well, those of all tenants --all-tenants --yes.`,
		Example:           "  sublet down hello\n  sublet down alice/hello\n  sublet down --ignore-unknown a b c\n  sublet down -l course=net1\n  sublet down --all\n  sublet down --all --tenant alice",
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(a.checkFormat(), o.whose.check(args)); err != nil {
				return err
			}
			if err := a.own(&o.whose); err != nil {
				return err
			}
			leases, err := a.client().Leases(c.Context())
			if err != nil {
				return err
			}
			var ended []vnet.LeaseID
			if args, ended, err = a.endWaiting(c.Context(), leases, args); err != nil {
				return err
			}
			if len(args) == 0 && !o.whose.all && !o.whose.everybody {
				return a.printReleased(ended)
			}
			if o.ignoreUnknown {
				args = slices.DeleteFunc(args, func(name string) bool { return released(leases, name) })
			}
			if leases, err = selected(leases, o.whose.selector); err != nil {
				return err
			}
			chosen, err := choose(leases, args, o.whose)
			if err != nil {
				return err
			}
			if len(args) == 0 && len(chosen) == 0 && a.format == "table" {
				a.rest(o.whose, leases)
			}
			if err := a.release(c.Context(), chosen, o); err != nil {
				return err
			}
			for _, l := range chosen {
				ended = append(ended, l.ID())
			}
			return a.printReleased(ended)
		},
	})
	o.whose.flags(c)
	c.Flags().BoolVar(&o.ignoreUnknown, "ignore-unknown", false, "pass over names that no lease has any more")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "return once released, before it is taken away")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until all of it is gone")
	return c
}

// downOptions are the flags of down.
type downOptions struct {
	whose
	noWait, ignoreUnknown bool
	timeout               time.Duration
}

// release ends leases, then waits until no host has anything of them.
func (a *app) release(ctx context.Context, leases []vnet.Lease, o downOptions) error {
	client := a.client()
	p := a.progress("releasing")
	defer p.end()
	var failed error
	for _, l := range leases {
		_, err := client.Release(ctx, l.ID())
		failed = errors.Join(failed, err)
	}
	if failed != nil || o.noWait {
		return failed
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for _, l := range leases {
		p.say("taking away " + l.ID().String())
		if err := client.WaitGone(ctx, l.ID()); err != nil {
			return fmt.Errorf("%s is released, but not all of it is gone yet (see sublet leases): %w", l.ID(), err)
		}
		a.tellOf(p, "%s is released\n", l.ID())
	}
	return nil
}

// printReleased says what was released where JSON or YAML is wanted.
func (a *app) printReleased(ids []vnet.LeaseID) error {
	if a.format == "table" {
		return nil // it was said of each
	}
	return a.print(ids, "", nil)
}

// endWaiting ends that requests of these names wait, and returns the names that are
// none of theirs.
func (a *app) endWaiting(ctx context.Context, leases []vnet.Lease, names []string) (others []string, ended []vnet.LeaseID, err error) {
	if len(names) == 0 {
		return names, nil, nil
	}
	waiting, err := a.client().Waiting(ctx)
	if err != nil {
		return nil, nil, err
	}
	requests := asLeases(waiting, "")
	for _, name := range names {
		w, err := find(requests, name)
		if err != nil || !released(leases, name) {
			others = append(others, name)
			continue
		}
		if err := a.client().EndWaiting(ctx, w.ID()); err != nil {
			return nil, nil, err
		}
		ended = append(ended, w.ID())
		if a.format == "table" {
			fmt.Fprintf(a.out, "%s does not wait any more\n", w.ID())
		}
	}
	return others, ended, nil
}

// choose picks the leases to release: those named, or all of somebody's.
func choose(leases []vnet.Lease, names []string, w whose) ([]vnet.Lease, error) {
	chosen := w.live(leases)
	var wrong []error
	for _, name := range names {
		l, err := find(leases, name)
		if err == nil && l.State == vnet.Ended {
			err = badInput{fmt.Errorf("%s has ended", l.ID())}
		}
		wrong = append(wrong, err)
		chosen = append(chosen, l)
	}
	if err := errors.Join(wrong...); err != nil && len(names) > 1 {
		return nil, fmt.Errorf("nothing is released: %w", err)
	} else if err != nil {
		return nil, err
	}
	return chosen, nil
}

// released says that no lease has a name, or only one that has ended.
func released(leases []vnet.Lease, name string) bool {
	l, err := find(leases, name)
	var unknown noLease
	return errors.As(err, &unknown) || err == nil && l.State == vnet.Ended
}
