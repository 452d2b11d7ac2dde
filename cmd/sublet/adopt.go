package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) adopt() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "adopt {HOST... | --all}",
		Short: "Make hosts that keep another plan follow this server",
		Long: `Make hosts follow this server whose agents do not, because its plans do not go
on from those they have: its store is another one or an older copy. What runs
there and is in none of this server's leases is then removed. sublet plan HOST
says first what that is. For the operator.`,
		Example:           "  sublet hosts\n  sublet plan h1\n  sublet hosts adopt h1\n  sublet hosts adopt --all",
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return badInput{errors.New("state hosts, or --all: sublet hosts says which wait")}
			}
			return a.runAdopt(c, names)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all hosts that wait")
	return c
}

// runAdopt adopts hosts, by default all that wait.
func (a *app) runAdopt(c *cobra.Command, names []string) error {
	client := a.client()
	hosts, err := client.Hosts(c.Context())
	if err != nil {
		return err
	}
	waiting, err := toAdopt(hosts, names)
	if err != nil {
		return err
	}
	for _, name := range waiting {
		if err := client.Adopt(c.Context(), name); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s is told to follow this server\n", name)
	}
	if len(waiting) == 0 {
		fmt.Fprintln(a.out, "no host waits")
	}
	return nil
}

// toAdopt are those of some hosts, by default of all, that wait. Who follows
// already needs nothing; of who is silent nobody knows.
func toAdopt(hosts []api.Host, names []string) (waiting []vnet.HostID, err error) {
	for _, name := range names {
		i := slices.IndexFunc(hosts, func(h api.Host) bool { return string(h.Name) == name })
		if i < 0 {
			return nil, badInput{fmt.Errorf("there is no host %s: see sublet hosts", name)}
		}
		if hosts[i].Agent != api.AgentUp {
			return nil, badInput{fmt.Errorf("the agent of %s is %s: start it, and see sublet hosts for what it has", name, hosts[i].Agent)}
		}
	}
	for _, h := range hosts {
		if h.Held != nil && (len(names) == 0 || slices.Contains(names, string(h.Name))) {
			waiting = append(waiting, h.Name)
		}
	}
	return waiting, nil
}
