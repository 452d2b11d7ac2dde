package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/vnet"
	"sublet/vnet/topology"
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

// completeElement offers link or host, then names of what that is.
func (a *app) completeElement(c *cobra.Command, args []string, word string) (names []string, _ cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []string{"link", "host"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case args[0] == "host":
		return a.completeHost(c, args, word)
	}
	links, err := a.client().Links(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, l := range links { // each direction is one
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// completeRequest offers files in the languages that requests are written in.
func completeRequest(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json", "xml", "vxdl", "graphml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeSubstrate offers names of substrates, up to their numbers, and files.
func completeSubstrate(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, form := range topology.Forms {
		name, _, numbered := strings.Cut(form, ":")
		if numbered {
			name += ":"
		}
		names = append(names, name)
	}
	if len(args) > 0 {
		names = nil
	}
	return names, cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveNoSpace
}

// completeSubstrateFlag offers the same for --substrate.
func completeSubstrateFlag(c *cobra.Command) {
	_ = c.RegisterFlagCompletionFunc("substrate", func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeSubstrate(c, nil, word)
	})
}
