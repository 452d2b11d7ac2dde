package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

func (a *app) servers() *cobra.Command {
	c := &cobra.Command{
		Use:   "servers",
		Short: "List the servers that share a store; add, remove and replace them",
		Long: `List the servers that share a store, which of them leads, and by how much the clocks of
others are ahead of its own where that is more than a second. A server takes part
when it has been added; the first one adds itself (docs/guides/servers.md). Their members
of the store come and go with them. For the operator.`,
		Example: "  sublet servers\n  sublet servers add s2 192.0.2.2:7443 --member 192.0.2.2:7444\n  sublet servers remove s2\n  sublet servers replace s2 s4 192.0.2.4:7443 --member 192.0.2.4:7444",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			list, err := a.client().Servers(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, "NAME ADDRESS ROLE CLOCK SINCE", rowsOfServers(list))
		},
	}
	c.AddCommand(a.serversAdd(), a.serversRemove(), a.serversReplace())
	return a.list(c)
}

func rowsOfServers(list []api.Server) (rows [][]string) {
	for _, s := range list {
		role, address := "follows", s.Address
		if s.Leads {
			role = "leads"
		}
		if address == "" {
			address = "-"
		}
		rows = append(rows, []string{s.Name, address, role, clockWord(s.ClockAhead), s.Since.Local().Format(time.DateTime)})
	}
	return rows
}

// clockWord is by how much a server's clock is ahead of the leader's.
func clockWord(ahead *float64) string {
	switch {
	case ahead == nil:
		return "-"
	case *ahead == 0:
		return "agrees"
	}
	return time.Duration(*ahead * float64(time.Second)).Round(time.Millisecond).String()
}

func (a *app) serversAdd() *cobra.Command {
	var member string
	c := &cobra.Command{
		Use:     "add NAME HOST:PORT",
		Short:   "Let one more server take part, before it is started",
		Example: "  sublet servers add s2 192.0.2.2:7443 --member 192.0.2.2:7444\n  sublet servers add s2 192.0.2.2:7443",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.client().AddServer(c.Context(), api.Server{Name: args[0], Address: args[1], Member: member}, ""); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "%s may take part: start it with `sublet serve --name %[1]s --listen %s %s`\n", args[0], args[1], flagsOfStore(member))
			return err
		},
	}
	memberFlag(c, &member)
	return c
}

func memberFlag(c *cobra.Command, member *string) {
	c.Flags().StringVar(member, "member", "", "HOST:PORT of its member of the store, if the servers have no external etcd")
}

// flagsOfStore are those by which a server takes part.
func flagsOfStore(member string) string {
	if member == "" {
		return "--etcd ..."
	}
	return "--member " + member + " --join ..."
}

func (a *app) serversRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "End a server's taking part; if it leads, another takes over",
		Example: "  sublet servers remove s2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.client().RemoveServer(c.Context(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "%s takes part no more\n", args[0])
			return err
		},
	}
}

func (a *app) serversReplace() *cobra.Command {
	var member string
	c := &cobra.Command{
		Use:     "replace NAME NEW HOST:PORT",
		Short:   "Let a new server take part in place of another, in one step",
		Example: "  sublet servers replace s2 s4 192.0.2.4:7443 --member 192.0.2.4:7444\n  sublet servers replace s2 s4 192.0.2.4:7443",
		Args:    cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.client().AddServer(c.Context(), api.Server{Name: args[1], Address: args[2], Member: member}, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "%s may take part in place of %s: start it with `sublet serve --name %[1]s --listen %s %s`\n", args[1], args[0], args[2], flagsOfStore(member))
			return err
		},
	}
	memberFlag(c, &member)
	return c
}
