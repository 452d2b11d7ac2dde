package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) maintenance() *cobra.Command {
	c := &cobra.Command{
		Use:   "maintenance",
		Short: "Plan work on hosts and links, so that nothing new is there meanwhile",
		Long: `Plan work on a host or a link of the substrate. What is asked for goes elsewhere, or
is refused with another time. Leases that have something there meanwhile go elsewhere
at once if they can; the others stay, are listed with what they could have instead, and
all are told by an event (sublet events).`,
		Example: "  sublet maintenance add h1 --start 2027-03-01T08:00:00Z --for 2h\n  sublet maintenance list",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.maintenanceAdd(), a.maintenanceList(), a.maintenanceRemove())
	return c
}

func (a *app) maintenanceAdd() *cobra.Command {
	var start, length, note string
	var dryRun bool
	c := a.noun(&cobra.Command{
		Use:   "add HOST|LINK",
		Short: "Plan work on a host or a link, and take away what can go",
		Long: `Plan work on a host or a link from a time on. Leases that have something there
meanwhile and can go elsewhere do so at once, as with sublet drain: links of running
networks take other paths, routers and switches move or are made anew, what has not
begun is placed anew or, if it is movable, begins later. Nodes of running networks stay
unless they have movable: cold or live: they are listed with the reason, and with what would be admitted in their place. --dry-run only
says so. For the operator.`,
		Example:           "  sublet maintenance add h1 --start 24h --for 2h --dry-run\n  sublet maintenance add h1 --start 2027-03-01T08:00:00Z --for 2h\n  sublet maintenance add h1-h2 --start 24h --for 30m --note 'new cable'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := a.checkFormat(); err != nil {
				return err
			}
			ask := api.MaintenanceAsk{Of: args[0], Note: note, DryRun: dryRun}
			if start != "" {
				if ask.Start, err = moment("--start", start, time.Now().UTC(), time.Time{}); err != nil {
					return err
				}
			}
			if ask.For, err = vnet.ParseDuration(length); err != nil {
				return badInput{fmt.Errorf("--for %q: state how long it takes, such as 2h", length)}
			}
			m, err := a.client().AddMaintenance(c.Context(), ask)
			if err != nil {
				return err
			}
			return a.printMaintenance(m, dryRun)
		},
	})
	c.Flags().StringVar(&start, "start", "", "a time such as 2027-03-01T08:00:00Z, or how far from now such as 2h (default: now)")
	c.Flags().StringVar(&length, "for", "", "how long it takes, such as 2h")
	c.Flags().StringVar(&note, "note", "", "why, for those whom it concerns")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say which leases would go elsewhere, and which stay")
	return c
}

// printMaintenance says what is planned, and what becomes of each lease.
func (a *app) printMaintenance(m api.Maintenance, dryRun bool) error {
	if a.format != "table" {
		return a.print(m, "", nil)
	}
	head := m.ID
	if dryRun {
		head = "would be planned"
	}
	fmt.Fprintf(a.out, "%s: %s\n", head, m.Maintenance)
	for _, d := range m.Moved {
		fmt.Fprintf(a.out, "%s goes elsewhere: %s\n", d.Lease, d.Words())
	}
	for _, l := range m.Stays {
		fmt.Fprintf(a.out, "%s stays: %s\n", l.Lease, strings.Join(l.Reasons, "; "))
		for _, o := range l.Offers {
			fmt.Fprintf(a.out, "  %s (cost %s)\n", o.Words(), price(o.Account))
		}
	}
	return nil
}

func (a *app) maintenanceList() *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the work that is planned, and the leases that it concerns",
		Example: "  sublet maintenance list\n  sublet maintenance list -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			list, err := a.client().MaintenanceList(c.Context())
			if err != nil {
				return err
			}
			var rows [][]string
			for _, m := range list {
				names := make([]string, len(m.Leases))
				for i, id := range m.Leases {
					names[i] = id.String()
				}
				rows = append(rows, []string{m.ID, string(m.Host) + m.Link, when(m.Start), when(m.End), orDash(strings.Join(names, ",")), orDash(m.Note)})
			}
			return a.printAll(list, "ID OF FROM UNTIL LEASES NOTE", rows, "no maintenance is planned")
		},
	})
}

func (a *app) maintenanceRemove() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:     "remove ID",
		Short:   "Take back work that is planned",
		Example: "  sublet maintenance remove 4xk2ab7q",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			m, err := a.client().RemoveMaintenance(c.Context(), args[0])
			if err != nil {
				return err
			}
			if a.format != "table" {
				return a.print(m, "", nil)
			}
			_, err = fmt.Fprintf(a.out, "no longer planned: %s\n", m.Maintenance)
			return err
		},
	})
}
