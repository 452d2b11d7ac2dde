package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) drain() *cobra.Command {
	return a.drainer(&cobra.Command{
		Use:   "drain HOST",
		Short: "Take what can go off a host, and nothing new onto it",
		Long: `Keep a host from what is new, and take off it what can go: leases that have not
begun find another place; links of running networks that pass take other paths, which
are there before the old ones go; so do switches and routers without a routing
protocol. Other routers and switches, and nodes with movable: cold, are made anew
elsewhere, as after a failure, with the files of those that keep them; machines with
movable: live run meanwhile. Other nodes stay, and what a request binds to the host:
they are listed with the reason. Draining again tries again. For the operator.`,
		Example: "  sublet drain h3\n  sublet drain h3 -o json",
	}, true)
}

func (a *app) undrain() *cobra.Command {
	return a.drainer(&cobra.Command{
		Use:     "undrain HOST",
		Short:   "Let a host that was drained take something again",
		Example: "  sublet undrain h3",
	}, false)
}

// drainer makes a command that drains a host, or ends that.
func (a *app) drainer(c *cobra.Command, drained bool) *cobra.Command {
	c.Args, c.ValidArgsFunction = cobra.ExactArgs(1), a.completeHost
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.checkFormat(); err != nil {
			return err
		}
		of, err := a.client().SetDrained(c.Context(), vnet.HostID(args[0]), drained)
		if err != nil {
			return err
		}
		return a.printDrained(args[0], of, drained)
	}
	return a.noun(c)
}

func (a *app) printDrained(host string, of api.Drained, drained bool) error {
	var rows [][]string
	for _, id := range of.Moved {
		rows = append(rows, []string{id.String(), "goes elsewhere", "-"})
	}
	for _, l := range of.Stays {
		rows = append(rows, []string{l.Lease.String(), "stays", strings.Join(l.Reasons, "; ")})
	}
	if len(rows) > 0 || a.format != "table" {
		return a.print(of, "LEASE STATE WHY", rows)
	}
	text := "%s takes nothing new, and no lease has anything on it\n"
	if !drained {
		text = "%s takes new leases\n"
	}
	_, err := fmt.Fprintf(a.out, text, host)
	return err
}
