package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/report"
	"sublet/vnet"
)

func (a *app) overlay() *cobra.Command {
	c := a.list(&cobra.Command{
		Use:   "overlay [HOST]",
		Short: "Show the tunnels between hosts, keep tunnels of your own",
		Long: `Show the entries of the hosts' overlay forwarding tables. An entry is one end of
a tunnel: it has all outer headers of the packets of one virtual link, and
follows the host's routes and neighbours. One without a way to the other host is
unresolved; what it should have sent is counted and dropped. A line without a
lease counts what a host dropped for want of an entry.`,
		Example:           "  sublet overlay\n  sublet overlay h1 -o json\n  sublet overlay trace hello ping pong",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			states, err := a.overlayStates(c.Context(), args)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, s := range states {
				rows = append(rows, overlayRow(s))
			}
			return a.printAll(states, "HOST LEASE LINK VNI PROTOCOL BY REMOTE STATE NEXT-HOP MTU HITS RECEIVED DROPS", rows,
				"no tunnels: no virtual link goes from one host to another")
		},
	})
	c.AddCommand(a.trace())
	c.AddCommand(a.overlayTables()...)
	return c
}

// overlayStates reads the entries of some hosts, or of all.
func (a *app) overlayStates(ctx context.Context, names []string) ([]report.TunnelState, error) {
	client := a.client()
	if len(names) == 0 {
		hosts, err := client.Hosts(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			names = append(names, string(h.Name))
		}
	}
	states := []report.TunnelState{}
	for _, name := range names {
		more, err := client.Overlay(ctx, vnet.HostID(name))
		if err != nil {
			return nil, err
		}
		states = append(states, more...)
	}
	return states, nil
}

func overlayRow(s report.TunnelState) []string {
	if s.State == report.TunnelNone {
		return []string{string(s.Host), "-", "-", "-", "-", "-", "-", s.State, "-", "-", "0", "0", dropsText(s.Drops)}
	}
	protocol := s.Protocol
	if protocol == "" {
		protocol = vnet.VXLAN
	}
	return []string{
		string(s.Host), s.Lease.String(), s.Link, fmt.Sprint(s.VNI), string(protocol), s.Interface, s.Remote.String(), stateText(s.State, s.Reason),
		orDash(s.NextHop), fmt.Sprint(s.PathMTU), fmt.Sprint(s.Hits), fmt.Sprint(s.Received), dropsText(s.Drops),
	}
}

// dropsText is "too-big 3, port 1".
func dropsText(drops map[string]uint64) string {
	var words []string
	for _, cause := range slices.Sorted(maps.Keys(drops)) {
		words = append(words, fmt.Sprintf("%s %d", cause, drops[cause]))
	}
	return orDash(strings.Join(words, ", "))
}
