package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) down() *cobra.Command {
	var all, noWait bool
	c := &cobra.Command{
		Use:               "down NAME...",
		Short:             "Release leases and wait until nothing of them is left",
		Example:           "  sublet down hello\n  sublet down alice/hello\n  sublet down --all",
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) > 0) == all {
				return errNoName
			}
			client := a.client()
			leases, err := client.Leases(c.Context())
			if err != nil {
				return err
			}
			chosen, err := choose(leases, args, all)
			if err != nil {
				return err
			}
			p := a.progress("releasing")
			defer p.end()
			var failed error
			for _, l := range chosen {
				_, err := client.Release(c.Context(), l.ID())
				failed = errors.Join(failed, err)
			}
			for _, l := range chosen {
				if noWait || failed != nil {
					break
				}
				p.say("taking away " + l.ID().String())
				if err := client.WaitGone(c.Context(), l.ID()); err != nil {
					return fmt.Errorf("%s is released, but not all of it is gone yet: %w", l.ID(), err)
				}
				fmt.Fprintf(a.out, "%s is released\n", l.ID())
			}
			return failed
		},
	}
	c.Flags().BoolVar(&all, "all", false, "release every lease you may release")
	c.Flags().BoolVar(&noWait, "no-wait", false, "return once released, before it is taken away")
	return c
}

// choose picks the leases to release: those named, or all that are not over.
func choose(leases []vnet.Lease, names []string, all bool) ([]vnet.Lease, error) {
	var chosen []vnet.Lease
	for _, l := range leases {
		if all && l.State != vnet.Ended {
			chosen = append(chosen, l)
		}
	}
	for _, name := range names {
		l, err := find(leases, name)
		if err != nil {
			return nil, err
		}
		if l.State == vnet.Ended {
			return nil, badInput{fmt.Errorf("%s has ended", l.ID())}
		}
		chosen = append(chosen, l)
	}
	return chosen, nil
}
