package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) consolidate() *cobra.Command {
	var aim string
	var dryRun bool
	c := a.noun(&cobra.Command{
		Use:   "consolidate",
		Short: "Place leases on the fewest hosts, or off the most loaded ones",
		Long: `Move what can go, as sublet drain does, so that the fewest hosts have anything
(--aim fewest-hosts), or that the most loaded hosts have less (--aim least-loaded).
Hosts that had nothing take nothing for the first aim. Each lease moves once at most:
consolidate again when it has arrived. --dry-run only says what would move. For the
operator.`,
		Example: "  sublet consolidate --dry-run\n  sublet consolidate --aim least-loaded -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if !slices.Contains(vnet.Aims, vnet.Aim(aim)) {
				return badInput{fmt.Errorf("--aim %q: choose fewest-hosts or least-loaded", aim)}
			}
			of, err := a.client().Consolidate(c.Context(), api.ConsolidateAsk{Aim: vnet.Aim(aim), DryRun: dryRun})
			if err != nil {
				return err
			}
			return a.printConsolidated(of, dryRun)
		},
	})
	c.Flags().StringVar(&aim, "aim", string(vnet.FewestHosts), "fewest-hosts or least-loaded")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would move")
	_ = c.RegisterFlagCompletionFunc("aim", cobra.FixedCompletions([]string{string(vnet.FewestHosts), string(vnet.LeastLoaded)}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// printConsolidated says what becomes of leases and hosts.
func (a *app) printConsolidated(of api.Consolidated, dryRun bool) error {
	if a.format != "table" {
		return a.print(of, "", nil)
	}
	goes, emptied := "goes", "is emptied"
	if dryRun {
		goes, emptied = "would go", "would be emptied"
	}
	for _, d := range of.Moved {
		fmt.Fprintf(a.out, "%s %s elsewhere: %s\n", d.Lease, goes, d.Words())
	}
	for _, h := range of.Emptied {
		fmt.Fprintf(a.out, "%s %s\n", h, emptied)
	}
	for _, f := range of.Full {
		fmt.Fprintf(a.out, "%s stays in use: %s\n", f.Host, strings.Join(f.Reasons, "; "))
	}
	if len(of.Moved)+len(of.Full) == 0 {
		fmt.Fprintln(a.out, "nothing is to be gained")
	}
	return nil
}
