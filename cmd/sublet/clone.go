package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) clone() *cobra.Command {
	var o upOptions
	var from, length string
	c := a.noun(&cobra.Command{
		Use:   "clone NAME NEW",
		Short: "Ask for another network like one that there is, or was",
		Long: `Ask for a network NEW with the request of NAME as it is now: nodes, links, rates,
programs, stages. It is admitted like any other; it begins at once, or at --from, and
lasts as long as NAME's whole window, or --for. What nodes with state: keep have
written is taken over if both networks run, each node standing still meanwhile; what
other nodes wrote, and what was asked of links by command, is not. Ports that NAME
publishes at a way out are taken as long as it runs.`,
		Example:           "  sublet clone course course2\n  sublet clone course next-week --from 2027-03-08T08:00:00Z --for 4h",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if _, _, err := window(from, length); err != nil {
				return err
			}
			_, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			request, err := cloned(l.Request, args[1], from, length)
			if err != nil {
				return err
			}
			if nodes := keepersOf(l); len(nodes) > 0 && !o.bare {
				o.then = bringsFrom(l, nodes)
				if err := o.bringsTo(request, true); err != nil {
					o.then = nil
					fmt.Fprintf(a.err, "sublet: what nodes of %s keep is not taken over: %v\n", l.ID(), err)
				}
			}
			return a.admit(c.Context(), []vnet.Request{request}, o)
		},
	})
	c.Flags().StringVar(&from, "from", "", "when it shall begin, such as 2027-03-08T08:00:00Z, or how far from now, such as 7d (default: at once)")
	c.Flags().StringVar(&length, "for", "", "how long it shall last, such as 4h (default: as long as the other one)")
	c.Flags().BoolVar(&o.accept, "accept", false, "take the counter-offer at once, if it comes to one")
	c.Flags().StringVar(&o.offer, "offer", "", "write the counter-offer to this file")
	c.Flags().BoolVar(&o.bare, "without-files", false, "without what its nodes keep")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "return once admitted")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait until the network is ready")
	return c
}

// cloned is a request for another network like one, in a window of its own.
func cloned(r vnet.Request, name, from, length string) (vnet.Request, error) {
	r.Tenant, r.Network, r.Start, r.Before = "", vnet.VNetID(name), time.Time{}, time.Time{}
	r.Stages = slices.Clone(r.Stages)
	for i := range r.Stages {
		if r.Stages[i].OnCommand { // it has begun in the other one only
			r.Stages[i].After = 0
		}
	}
	start, span, err := window(from, length)
	if err != nil {
		return r, err
	}
	r.Start = start
	if length != "" {
		r.For = span
	}
	if err := r.Check(); err != nil {
		return r, badInput{err}
	}
	return r, nil
}

// window reads when something begins and how long it lasts; zero where it is not
// stated.
func window(from, length string) (start time.Time, span time.Duration, err error) {
	if start, err = moment("--from", from, time.Now().UTC().Truncate(time.Second), time.Time{}); err != nil {
		return start, 0, err
	}
	if length != "" {
		if span, err = lasting("--for", length); err != nil {
			return start, 0, err
		}
	}
	return start, span, nil
}
