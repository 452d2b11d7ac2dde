package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

func (a *app) substrate() *cobra.Command {
	c := &cobra.Command{
		Use:     "substrate",
		Short:   "Read the substrate that is leased out, or change it while leases run",
		Example: "  sublet substrate get --to net.yaml   # then edit it\n  sublet substrate apply --dry-run net.yaml\n  sublet substrate apply net.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.substrateGet(), a.substrateApply())
	return c
}

func (a *app) substrateGet() *cobra.Command {
	var to string
	c := a.watchable(&cobra.Command{
		Use:     "get",
		Short:   "Write the substrate that is leased out as YAML",
		Example: "  sublet substrate get\n  sublet substrate get --to net.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.format = "yaml"
			sub, err := a.client().Substrate(c.Context())
			if err != nil {
				return err
			}
			return a.writeSubstrate(sub, to)
		},
	})
	c.Flags().StringVar(&to, "to", "-", "write to this file")
	c.MarkFlagsMutuallyExclusive("to", "watch")
	return c
}

func (a *app) substrateApply() *cobra.Command {
	var ask api.SubstrateAsk
	c := a.noun(&cobra.Command{
		Use:   "apply FILE",
		Short: "Lease out what a file says from now on, while leases run",
		Long: `Make the substrate what FILE says: hosts, switches and links that come or go,
capacities, shares, latencies, ways out. Leases for which there is no room any
more, the last admitted first, go elsewhere, as after a failure; what finds no
other place ends. Where running leases would be interrupted, or any would end, it
is refused and they are named (exit code 3), unless --displace says that they may.
What was measured of hosts, and what is down, stays so. A server that is started
with --substrate takes its file's: change that, too. For the operator.`,
		Example: "  sublet substrate apply --dry-run net.yaml\n  sublet substrate apply net.yaml\n  sublet substrate apply --displace net.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if ask.Substrate, err = a.readSubstrate(args[0]); err != nil {
				return err
			}
			after, err := a.client().SetSubstrate(c.Context(), ask)
			if err != nil {
				return err
			}
			return a.printDisplaced(after, ask.DryRun)
		},
	})
	c.Flags().BoolVar(&ask.DryRun, "dry-run", false, "only say which leases would be displaced")
	c.Flags().BoolVar(&ask.Displace, "displace", false, "interrupt running leases, and end those that find no place")
	return c
}

// printDisplaced says who is displaced, or would be.
func (a *app) printDisplaced(after api.Aftermath, dryRun bool) error {
	moved, ended := "moved", "ended"
	if dryRun {
		moved, ended = "would be moved", "would end"
	}
	var rows [][]string
	for _, id := range after.Moved {
		rows = append(rows, []string{id.String(), moved, "-"})
	}
	for _, l := range after.Lost {
		rows = append(rows, []string{l.Lease.String(), ended, strings.Join(l.Reasons, "; ")})
	}
	if len(rows) == 0 && a.format == "table" {
		_, err := fmt.Fprintln(a.out, "no lease is displaced")
		return err
	}
	return a.print(after, "LEASE STATE WHY", rows)
}
