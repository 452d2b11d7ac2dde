package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) link() *cobra.Command {
	c := &cobra.Command{
		Use:   "link",
		Short: "Take a link of a running network down, or up again",
		Long: `Take a link of a running network down, or up again, at once. The interfaces at the
ends of a link that is down have no carrier, and nothing passes; routing daemons
find other ways, and static routes are computed anew. It holds until a stage of the request says whether the link is
down, and through restarts. Guaranteed rates stay booked.`,
		Example: "  sublet link down hello/ping-pong\n  sublet link up hello/ping-pong\n  sublet link show hello",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, verb := range []struct {
		word, short string
		down        bool
	}{{"down", "Take a link down: its ends have no carrier", true}, {"up", "Take a link up again", false}} {
		c.AddCommand(a.noun(&cobra.Command{
			Use: verb.word + " NAME/LINK", Short: verb.short, Example: "  sublet link " + verb.word + " hello/ping-pong",
			Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePart(linksOf),
			RunE: func(c *cobra.Command, args []string) error { return a.setLinkDown(c, args[0], verb.down) },
		}))
	}
	c.AddCommand(a.list(&cobra.Command{
		Use: "show NAME[/LINK]", Short: "Show which links of a network are down or impaired", Example: "  sublet link show hello\n  sublet link show hello/ping-pong -o json",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePart(linksOf),
		RunE: func(c *cobra.Command, args []string) error { return a.showLinks(c, args[0]) },
	}))
	return c
}

// linkStateView is one link of a network as it is now.
type linkStateView struct {
	Name   string             `json:"name"`
	Ends   [2]string          `json:"ends"`
	State  string             `json:"state"` // up or down
	Impair [2]vnet.Impairment `json:"impair,omitzero"`
}

func viewLinkState(l vnet.VirtualLink) linkStateView {
	v := linkStateView{Name: l.Name, Ends: l.Ends, State: "up", Impair: l.Impair}
	if l.Down {
		v.State = "down"
	}
	return v
}

func (a *app) setLinkDown(c *cobra.Command, name string, down bool) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	words, err := splitName(name, 2, "NAME/LINK")
	if err != nil {
		return err
	}
	client, l, link, err := a.lookUpLink(c.Context(), words)
	if err != nil {
		return err
	}
	if l, err = client.SetLinkState(c.Context(), l.ID(), link.Name, down); err != nil {
		return err
	}
	if l, err = client.WaitApplied(c.Context(), l.ID()); err != nil {
		return err
	}
	link, _ = l.Topology().Link(link.Name)
	return a.printLinkStates([]vnet.VirtualLink{link})
}

func (a *app) showLinks(c *cobra.Command, name string) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	if words, err := splitName(name, 2, "NAME/LINK"); err == nil {
		_, l, link, missing := a.lookUpLink(c.Context(), words)
		if missing == nil {
			return a.printLinkStates([]vnet.VirtualLink{link})
		}
		if words[0] != "" || l.Request.Network != "" {
			return missing
		}
	}
	_, l, err := a.lookUp(c.Context(), name) // NAME, or TENANT/NAME
	if err != nil {
		return err
	}
	return a.printLinkStates(l.Topology().Links)
}

func (a *app) printLinkStates(links []vnet.VirtualLink) error {
	views, rows := []linkStateView{}, [][]string(nil)
	for _, l := range links {
		v := viewLinkState(l)
		row := []string{v.Name, v.Ends[0], v.Ends[1], v.State}
		for _, i := range v.Impair {
			row = append(row, orDash(strings.ReplaceAll(i.String(), " ", ",")))
		}
		views, rows = append(views, v), append(rows, row)
	}
	return a.printAll(views, "LINK FROM TO STATE IMPAIRED BACK", rows, "no links")
}
