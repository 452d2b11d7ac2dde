package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

func (a *app) hosts() *cobra.Command {
	c := a.list(&cobra.Command{
		Use:     "hosts",
		Short:   "Show the hosts: agent, what is free, plan",
		Example: "  sublet hosts\n  sublet hosts -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			hosts, err := a.client().Hosts(c.Context())
			if err != nil {
				return err
			}
			sub, err := a.client().Substrate(c.Context())
			if err != nil {
				return err
			}
			var rows [][]string
			for _, h := range hosts {
				rows = append(rows, []string{
					string(h.Name), orDash(h.Site), agentState(h), fmt.Sprint(h.Nodes),
					fmt.Sprintf("%s/%s", h.CPUFree, h.CPU), fmt.Sprintf("%s/%s", h.MemFree, h.Memory), carriesOf(h),
					fmt.Sprintf("%d/%d", h.Applied, h.Revision), fmt.Sprint(h.Errors), fmt.Sprint(h.Drift), hostNote(h),
				})
			}
			if err := a.print(hosts, "HOST SITE AGENT NODES CPU-FREE MEMORY-FREE CARRIES PLAN ERRORS REPAIRS NOTE", rows); err != nil || a.format != "table" || sub.Forwards == 0 {
				return err
			}
			fmt.Fprintf(a.out, "all hosts are one machine, which is counted on to carry %s in all\n", readable(sub.Forwards))
			return nil
		},
	})
	c.AddCommand(a.adopt())
	return c
}

// hostNote says what an operator should look at.
func hostNote(h api.Host) string {
	if h.Agent == api.AgentUnknown {
		return "its agent was never heard of since the server started"
	}
	if h.Held != nil {
		return fmt.Sprintf("keeps what runs there until `sublet hosts adopt %s`: %s", h.Name, h.Held.Why)
	}
	notes := slices.Concat(h.Problems, h.Lacks)
	if h.Drained {
		notes = slices.Insert(notes, 0, "drained: takes nothing new")
	}
	return orDash(strings.Join(notes, "; "))
}

// carriesOf is what a host is counted on to carry between its own nodes, and
// since when that is known.
func carriesOf(h api.Host) string {
	if h.Measured == 0 {
		return readable(h.Carries) + " (not measured)"
	}
	return readable(h.Carries) + " (measured " + h.MeasuredAt.Local().Format(time.DateOnly) + ")"
}

// agentState is what is known of a host: that it is down, or its agent.
func agentState(h api.Host) string {
	if h.Down {
		return "down"
	}
	return string(h.Agent)
}

func (a *app) links() *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "links",
		Short:   "Show the substrate's links, per direction: capacity, booked, allocated",
		Example: "  sublet links\n  sublet links -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			links, err := a.client().Links(c.Context())
			if err != nil {
				return err
			}
			var rows [][]string
			for _, l := range links {
				rows = append(rows, []string{
					l.Name, l.From, l.To, readable(l.Capacity), readable(l.Leasable),
					asked(l.Booked), asked(l.Allocated), fmt.Sprint(l.Links), fmt.Sprint(l.Leases), upOrDown(l.Down),
				})
			}
			return a.print(links, "LINK FROM TO CAPACITY LEASABLE BOOKED ALLOCATED VLINKS LEASES STATE", rows)
		},
	})
}

func upOrDown(down bool) string {
	if down {
		return "down"
	}
	return "up"
}

func (a *app) plan() *cobra.Command {
	return a.list(&cobra.Command{
		Use:   "plan [HOST]",
		Short: "Say what would change on a host (a dry run), or on all of them",
		Long: `Compare what each host must have with what it has, and print the steps its
agent would do; in a settled system there are none. Then say how its routers and
switches forward: by the fast path, or by the stack and why.`,
		Example:           "  sublet plan\n  sublet plan h1 -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			return a.printDiffs(c, args)
		},
	})
}

// hostSteps is what would change on one host.
type hostSteps struct {
	Host  string              `json:"host"`
	Steps []string            `json:"steps"`
	Paths []report.Forwarding `json:"paths"` // what its routers and switches forward
}

func (a *app) printDiffs(c *cobra.Command, names []string) error {
	client := a.client()
	if len(names) == 0 {
		hosts, err := client.Hosts(c.Context())
		if err != nil {
			return err
		}
		for _, h := range hosts {
			names = append(names, string(h.Name))
		}
	}
	diffs := []hostSteps{}
	var rows [][]string
	for _, name := range names {
		steps := []string{}
		if err := client.Diff(c.Context(), vnet.HostID(name), &steps); err != nil {
			return err
		}
		paths, err := client.Paths(c.Context(), vnet.HostID(name))
		if err != nil {
			return err
		}
		diffs = append(diffs, hostSteps{name, steps, append([]report.Forwarding{}, paths...)})
		for _, s := range steps {
			rows = append(rows, []string{name, s})
		}
		if len(steps) == 0 {
			rows = append(rows, []string{name, "nothing would change"})
		}
	}
	if err := a.print(diffs, "HOST STEP", rows); err != nil || a.format != "table" {
		return err
	}
	return a.printPaths(diffs)
}

// printPaths says of each router and switch how it forwards.
func (a *app) printPaths(hosts []hostSteps) error {
	var rows [][]string
	for _, h := range hosts {
		for _, p := range h.Paths {
			way := "short"
			if !p.Fast {
				way = "stack: " + p.Why
			} else if p.Why != "" { // one family only
				way += ", not " + p.Why
			}
			rows = append(rows, []string{h.Host, string(p.Kind), p.Of, fmt.Sprint(p.Packets), counted(p.Fallbacks), counted(p.Dropped), way})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	return a.print(hosts, "HOST KIND OF PACKETS TO-STACK DROPPED WAY", rows)
}

// counted writes counters as name=number.
func counted(m map[string]uint64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return orDash(strings.Join(words, " "))
}
