package main

import (
	"slices"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

// completion offers what an argument could be.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeLease offers every lease, completeLive those that are not over.
func (a *app) completeLease(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(c, func(l vnet.Lease) []string { return []string{string(l.Request.Network)} })
}

func (a *app) completeLive(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(c, func(l vnet.Lease) []string {
		if l.State == vnet.Ended {
			return nil
		}
		return []string{string(l.Request.Network)}
	})
}

// completePart offers NAME/PART for the parts of running leases; what follows
// is a command's own.
func (a *app) completePart(parts func(vnet.Topology) []string) completion {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.complete(c, func(l vnet.Lease) []string {
			if !l.State.Up() {
				return nil
			}
			var names []string
			for _, part := range parts(l.Topology()) {
				names = append(names, string(l.Request.Network)+"/"+part)
			}
			return names
		})
	}
}

func nodesOf(t vnet.Topology) []string {
	var names []string
	for _, n := range t.All() {
		names = append(names, n.Name)
	}
	return names
}

func linksOf(t vnet.Topology) []string {
	var names []string
	for _, l := range t.Links {
		names = append(names, l.Name)
	}
	return names
}

func (a *app) complete(c *cobra.Command, of func(vnet.Lease) []string) ([]string, cobra.ShellCompDirective) {
	leases, err := a.client().Leases(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, l := range leases {
		names = append(names, of(l)...)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp // networks of two tenants can have one name
}

func (a *app) completeHost(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	hosts, err := a.client().Hosts(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, h := range hosts {
		names = append(names, string(h.Name))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
