package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/server"
	"sublet/vnet"
)

func (a *app) offers() *cobra.Command {
	var substrate string
	c := a.noun(&cobra.Command{
		Use:   "offers FILE",
		Short: "Say what would be admitted, and when, without booking anything",
		Long: `Ask what would come of the request in FILE (YAML or VXDL, - for standard input):
whether it would be admitted as it is, when, and at what cost; if not, what
binds, and what would be admitted instead: the earliest start, the longest
duration, the largest minima, the shortest latency bounds, other sites. Each is
admitted unchanged if it is asked for at once. Below, what is booked of the
links. With --substrate, no server is asked: the substrate is an empty one, and
a start that has passed is taken for the present.
Exit code 3: it would be refused as it is.`,
		Example: "  sublet offers big.yaml\n  sublet offers big.yaml -o json\n  sublet offers big.yaml --substrate substrate.yaml",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completeRequest,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			r, err := a.readRequest(args[0], false)
			if err != nil {
				return err
			}
			p, err := a.propose(c.Context(), r, substrate)
			if err != nil {
				return err
			}
			if err := a.printProposal(r, p); err != nil {
				return err
			}
			if !p.Admitted {
				return status(exitRefused)
			}
			return nil
		},
	})
	c.Flags().StringVar(&substrate, "substrate", "", "ask about this substrate file with nothing booked, instead of the server")
	completeSubstrateFlag(c)
	return c
}

// propose asks the server, or an empty book of a substrate.
func (a *app) propose(ctx context.Context, r vnet.Request, substrate string) (api.Proposal, error) {
	if substrate == "" {
		p, err := a.client().Offers(ctx, r)
		return p, a.placed(r.Network, err)
	}
	sub, err := a.readSubstrate(substrate)
	if err != nil {
		return api.Proposal{}, err
	}
	r.Tenant = cmp.Or(r.Tenant, "tenant")
	return server.Propose(a.asOf([]vnet.Request{r}), lease.New(sub), r)
}

// printProposal prints a table of what would be admitted, and a picture.
func (a *app) printProposal(r vnet.Request, p api.Proposal) error {
	if a.format != "table" {
		return a.print(p, "", nil)
	}
	now := p.Calendar.Window.Start
	picture := picture{window: p.Calendar.Window}
	var rows [][]string
	row := func(name string, account *vnet.Account, w vnet.Window, changes []vnet.Change) {
		rows = append(rows, []string{name, when(w.Start), when(w.End), price(account), changed(changes)})
		picture.span(name, w, "")
	}
	if p.Taken {
		fmt.Fprintf(a.out, "There is a lease %s already; as another network:\n", r.Network)
	}
	switch {
	case p.Admitted:
		fmt.Fprintf(a.out, "%s would be admitted.\n", r.Network)
		for _, d := range p.Quote.Moves {
			fmt.Fprintf(a.out, "  To make room, %s\n", disturbance(d))
		}
		row("as asked", p.Quote.Account, p.Quote.Window, nil)
	default:
		fmt.Fprintf(a.out, "%s would be refused:\n  %s\n", r.Network, strings.Join(p.Refusal.Reasons, "\n  "))
		if p.Refusal.Never != "" {
			fmt.Fprintf(a.out, "There is no offer: %s\n", p.Refusal.Never)
		}
		if p.Refusal.Undecided {
			fmt.Fprintf(a.out, "This was %s.\n", undecided)
		}
		picture.span("asked", windowAt(now, r), "refused")
		for _, o := range p.Refusal.Offers {
			row(axes(o.Axes), o.Account, windowAt(now, o.Request), o.Changes)
		}
	}
	if len(rows) > 0 {
		if err := a.table("OFFER FROM UNTIL COST CHANGES", rows); err != nil {
			return err
		}
	}
	for _, l := range interesting(p.Calendar) {
		picture.load(l)
	}
	for _, l := range fullest(p.Calendar) {
		picture.host(l)
	}
	_, err := fmt.Fprintf(a.out, "\n%s", picture.String())
	return err
}

// disturbance says what making room does to another lease.
func disturbance(d vnet.Disturbance) string {
	who := "another tenant's network"
	if d.Lease != (vnet.LeaseID{}) {
		who = d.Lease.String()
	}
	if !d.Start.IsZero() {
		return fmt.Sprintf("%s, which has not begun, begins at %s", who, when(d.Start))
	}
	if !d.Running {
		return who + ", which has not begun, is placed anew"
	}
	what := fmt.Sprintf("%d links", d.Moved)
	if d.Moved == 1 {
		what = "1 link"
	}
	if len(d.Links) > 0 {
		what += " (" + strings.Join(d.Links, ", ") + ")"
	}
	if nodes := d.NodesWords(); nodes != "" {
		return fmt.Sprintf("%s: %s, with %s: interrupted for up to %s", who, nodes, what, d.Interruption)
	}
	return fmt.Sprintf("%s of %s moves to another path: interrupted for up to %s", what, who, d.Interruption)
}

// windowAt is when a request would run if it were admitted at a time.
func windowAt(now time.Time, r vnet.Request) vnet.Window {
	w := vnet.Window{Start: r.Start}
	if w.Start.IsZero() {
		w.Start = now
	}
	if r.For > 0 {
		w.End = w.Start.Add(r.For)
	}
	return w
}

// price is what is quoted, or the cost of an hour when there is no end.
func price(account *vnet.Account) string {
	if account.Quote != nil {
		return units(account.Quote.Total)
	}
	return units(account.Hourly.Total) + "/h"
}

func changed(changes []vnet.Change) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return orDash(strings.Join(words, ", "))
}

func axes(list []vnet.Axis) string {
	words := make([]string, len(list))
	for i, axis := range list {
		words[i] = string(axis)
	}
	return strings.Join(words, "+")
}

// How many links and hosts a picture of offers shows: the fullest.
const (
	mostLoads = 12
	mostHosts = 4
)

// interesting are the links of which most is booked, in the substrate's order.
func interesting(c api.Calendar) []vnet.Load {
	full := func(l vnet.Load) float64 { return float64(l.Peak(c.Window).Booked) / max(float64(l.Leasable), 1) }
	loads := slices.DeleteFunc(slices.Clone(c.Loads), func(l vnet.Load) bool { return full(l) == 0 && !l.Down })
	fullest := slices.SortedStableFunc(slices.Values(loads), func(a, b vnet.Load) int { return cmp.Compare(full(b), full(a)) })
	if len(fullest) <= mostLoads {
		return loads
	}
	least := full(fullest[mostLoads-1])
	loads = slices.DeleteFunc(loads, func(l vnet.Load) bool { return full(l) < least })
	return loads[:min(len(loads), mostLoads)]
}

// fullest are the hosts of which anything is booked, at most mostHosts, those
// of which most is; in the substrate's order.
func fullest(c api.Calendar) []vnet.HostLoad {
	full := func(l vnet.HostLoad) float64 {
		peak := l.Peak(c.Window)
		if peak.Exclusive || l.Down {
			return 1
		}
		return max(float64(peak.CPU)/max(float64(l.CPU), 1), float64(peak.Memory)/max(float64(l.Memory), 1))
	}
	loads := slices.DeleteFunc(slices.Clone(c.Hosts), func(l vnet.HostLoad) bool { return full(l) == 0 })
	if len(loads) <= mostHosts {
		return loads
	}
	least := full(slices.SortedFunc(slices.Values(loads), func(a, b vnet.HostLoad) int { return cmp.Compare(full(b), full(a)) })[mostHosts-1])
	loads = slices.DeleteFunc(loads, func(l vnet.HostLoad) bool { return full(l) < least })
	return loads[:min(len(loads), mostHosts)]
}
