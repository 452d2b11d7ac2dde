package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

func (a *app) fail() *cobra.Command {
	return a.element(&cobra.Command{
		Use:   "fail {link|host} NAME",
		Short: "Say that a link or host is out of order: what it carries goes elsewhere",
		Long: `Tell the server that a link or host of the substrate is out of order. What it
carried is embedded anew, the most constrained first, within all that was asked
for; nodes on other hosts stay where they are. What finds no place is lost: it
is said here and in sublet leases, with the reason, and comes back when the
element does. For the operator.`,
		Example: "  sublet fail link h1-h2\n  sublet fail host h3 -o json",
	}, true)
}

func (a *app) restore() *cobra.Command {
	return a.element(&cobra.Command{
		Use:     "restore {link|host} NAME",
		Short:   "Say that a link or host works again: what was lost comes back",
		Example: "  sublet restore link h1-h2",
	}, false)
}

// formerRestore is restore by the name that it had in 0.1, for one release.
func (a *app) formerRestore() *cobra.Command {
	c := a.restore()
	c.Use, c.Hidden = "mend {link|host} NAME", true
	restore := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := restore(c, args); err != nil {
			return err
		}
		fmt.Fprintln(a.err, "sublet: mend is called restore now: the next release has no mend")
		return nil
	}
	return c
}

// element makes a command about a link or host.
func (a *app) element(c *cobra.Command, down bool) *cobra.Command {
	c.Args = cobra.ExactArgs(2)
	c.ValidArgsFunction = a.completeElement
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.checkFormat(); err != nil {
			return err
		}
		if args[0] != "link" && args[0] != "host" {
			return badInput{fmt.Errorf("%q: write link or host, then its name", args[0])}
		}
		after, err := a.client().SetDown(c.Context(), args[0]+"s", args[1], down)
		if err != nil {
			return err
		}
		return a.printAftermath(after)
	}
	return a.noun(c)
}

func (a *app) printAftermath(after api.Aftermath) error {
	var rows [][]string
	for _, id := range after.Moved {
		rows = append(rows, []string{id.String(), "moved", "-"})
	}
	for _, id := range after.Back {
		rows = append(rows, []string{id.String(), "carried again", "-"})
	}
	for _, l := range after.Lost {
		rows = append(rows, []string{l.Lease.String(), "lost", strings.Join(l.Reasons, "; ")})
	}
	if len(rows) == 0 && a.format == "table" {
		_, err := fmt.Fprintln(a.out, "no lease is affected")
		return err
	}
	return a.print(after, "LEASE STATE WHY", rows)
}
