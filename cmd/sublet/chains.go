package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/report"
	"sublet/vnet"
)

// chainView is a chain with what its hops counted.
type chainView struct {
	Name string    `json:"name"`
	Rate vnet.Rate `json:"rate_bps"`
	// Paused says that nothing is led through it in the stage that runs.
	Paused bool              `json:"paused,omitempty"`
	Hops   []report.ChainHop `json:"hops"`
}

func (a *app) chains() *cobra.Command {
	return a.list(&cobra.Command{
		Use:               "chains NAME",
		Short:             "Show what passed the functions of a network's chains",
		Long:              "Show packets and bytes that came to each hop of each chain of a network, those dropped there, by cause, and the time that a function added to one packet in 61, in the mean, since the hop was made.",
		Example:           "  sublet chains shop\n  sublet chains shop -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			_, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			views := chainViews(l, a.chainHops(c.Context(), l))
			return a.printAll(views, "CHAIN\tHOP\tPACKETS\tBYTES\tDROPPED\tLATENCY\tCPU", chainRows(views), args[0]+" has no chains")
		},
	})
}

// chainHops are what the hosts of a lease's nodes counted.
func (a *app) chainHops(ctx context.Context, l vnet.Lease) (all []report.ChainHop) {
	hosts := slices.Collect(maps.Values(l.Mapping.Nodes))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		list, err := a.client().ChainHops(ctx, l.ID(), host)
		if err != nil {
			fmt.Fprintf(a.err, "no counters from %s: %v\n", host, err)
			continue
		}
		all = append(all, list...)
	}
	return all
}

// chainViews puts hops to their chains, in the order in which packets come along:
// those of one index are a way to a host and the function there.
func chainViews(l vnet.Lease, hops []report.ChainHop) (views []chainView) {
	for _, c := range l.Chains() {
		v := chainView{Name: c.Name, Rate: c.Rate, Paused: c.Paused, Hops: []report.ChainHop{}}
		for _, h := range hops {
			if h.Chain == c.Name {
				v.Hops = append(v.Hops, h)
			}
		}
		slices.SortStableFunc(v.Hops, func(a, b report.ChainHop) int {
			if a.Back != b.Back {
				return strings.Compare(strconv.FormatBool(a.Back), strconv.FormatBool(b.Back))
			}
			return cmp.Or(strings.Compare(group(a), group(b)), b.Index-a.Index, strings.Compare(order(a), order(b)))
		})
		views = append(views, v)
	}
	return views
}

// group puts what is behind a balancer after what is before it: it has paths of its own.
func group(h report.ChainHop) string {
	switch {
	case strings.HasPrefix(h.Hop, "from "):
		return "0"
	case strings.HasPrefix(h.Hop, "backend "):
		return "2"
	case h.Hop == "out":
		return "3"
	}
	return "1"
}

// order puts ways to hosts before what is there.
func order(h report.ChainHop) string {
	if strings.HasPrefix(h.Hop, "to ") {
		return "0"
	}
	return "1"
}

// added is the time that a function adds to packets.
func added(h report.ChainHop) string {
	if h.Latency == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fus", float64(h.Latency)/float64(time.Microsecond))
}

// processors is what a function has whose processor time follows the load, and the
// core on which a program is kept.
func processors(h report.ChainHop) string {
	var words []string
	if h.CPU > 0 || h.Why != "" {
		words = append(words, h.CPU.String())
	}
	if h.Core != nil {
		words = append(words, fmt.Sprintf("uses %s of core %d", h.Used, *h.Core))
	}
	if h.Why != "" {
		words = append(words, "short: "+h.Why)
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func chainRows(views []chainView) (rows [][]string) {
	for _, v := range views {
		for _, h := range v.Hops {
			var drops []string
			for _, cause := range slices.Sorted(maps.Keys(h.Drops)) {
				drops = append(drops, fmt.Sprintf("%s %d", cause, h.Drops[cause]))
			}
			name := v.Name
			if h.Back {
				name += ", back"
			}
			if v.Paused {
				name += " (paused)"
			}
			hop := h.Hop
			if h.Dead {
				hop += " (dead)"
			}
			rows = append(rows, []string{name, hop, strconv.FormatUint(h.Packets, 10), strconv.FormatUint(h.Bytes, 10), cmp.Or(strings.Join(drops, ", "), "-"), added(h), processors(h)})
		}
	}
	return rows
}
