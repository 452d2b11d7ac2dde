package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/report"
	"sublet/vnet"
)

func (a *app) flows() *cobra.Command {
	c := a.list(&cobra.Command{
		Use:               "flows NAME/SWITCH",
		Short:             "Show the entries of an OpenFlow switch",
		Long:              "Show the entries in the tables of a switch of kind openflow, a line each, as ovs-ofctl dump-flows writes them.",
		Example:           "  sublet flows learning/s1\n  sublet flows learning/s1 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(openFlowSwitches),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			client, id, name, err := a.part(c.Context(), args[0], "SWITCH")
			if err != nil {
				return err
			}
			list, err := client.Flows(c.Context(), id, name)
			if err != nil {
				return err
			}
			if a.format != "table" || len(list) == 0 {
				return a.printAll(list, "", nil, args[0]+" has no entries")
			}
			for _, f := range list {
				fmt.Fprintln(a.out, flowLine(f))
			}
			return nil
		},
	})
	c.AddCommand(a.flowsTrace(), a.flowsStatus())
	return c
}

func openFlowSwitches(t vnet.Topology) (names []string) {
	for _, s := range t.Switches {
		if s.Kind == vnet.SwitchOpenFlow {
			names = append(names, s.Name)
		}
	}
	return names
}

// flowLine is an entry as ovs-ofctl dump-flows writes it.
func flowLine(f report.Flow) string {
	age := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(time.Duration(f.Age).Seconds(), 'f', 3, 64), "0"), ".")
	line := fmt.Sprintf(" cookie=0x%x, duration=%ss, table=%d, n_packets=%d, n_bytes=%d, ", f.Cookie, age, f.Table, f.Packets, f.Bytes)
	if f.Idle > 0 {
		line += fmt.Sprintf("idle_timeout=%d, ", f.Idle)
	}
	if f.Hard > 0 {
		line += fmt.Sprintf("hard_timeout=%d, ", f.Hard)
	}
	line += f.Flags + f.Match
	if f.Match != "" {
		line += " "
	}
	return line + "actions=" + f.Actions
}
