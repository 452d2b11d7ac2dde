package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) proof() *cobra.Command {
	since, selector := "24h", ""
	c := a.list(&cobra.Command{
		Use:   "proof [NAME]",
		Short: "Show how a network's promises were kept while it lived",
		Long: `Show, for each direction of each link with a minimum or a bound of latency, in
what part of the tested time it was kept, the minutes in which it was least, and a
picture of the time: # kept, ! broken, . not tested, since nobody offered as much as was
promised. Hosts count all the time; nothing is sent for minima. Latency is half the
round trip of light probes between the hosts of a link's ends; it is not tested while
the link's own frames may wait in its queue, nor within a host. All is kept for 90 days
after the network's last tested minute, and as long as it lives.`,
		Example:           "  sublet proof hello\n  sublet proof hello --since 7d -o json\n  sublet proof -l course=net1 -w",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			now := time.Now()
			from, err := agoOf("--since", since, now)
			if err != nil {
				return err
			}
			leases, err := a.networks(c.Context(), args, selector, false)
			if err != nil {
				return err
			}
			return a.printProofs(c.Context(), leases, from, now)
		},
	})
	selectorFlag(c, &selector)
	c.Flags().StringVar(&since, "since", since, "how far back, such as 7d, or a time such as 2027-03-01T08:00:00Z")
	return c
}

// proofView is how the promise of one direction of a link was kept, and whose it is.
type proofView struct {
	Tenant  vnet.TenantID `json:"tenant"`
	Network vnet.VNetID   `json:"network"`
	vnet.Proof
}

// printProofs shows those of networks, of each since it was admitted at most.
func (a *app) printProofs(ctx context.Context, leases []vnet.Lease, from, now time.Time) error {
	views, rows := []proofView{}, [][]string(nil)
	since := now
	for _, l := range leases {
		begin := from
		if born := l.Life.Admitted; born.After(begin) {
			begin = born
		}
		if begin.Before(since) {
			since = begin
		}
	}
	for _, l := range leases {
		proofs, err := a.client().Proof(ctx, l.ID(), since)
		if err != nil {
			return err
		}
		if l.Paused != nil && a.format == "table" {
			fmt.Fprintf(a.out, "%s is paused since %s: what is paused is not tested\n", l.ID(), when(l.Paused.Since))
		}
		for _, p := range proofs {
			views = append(views, proofView{l.Request.Tenant, l.Request.Network, p})
			if p.Min > 0 || len(p.Runs) > 0 || p.ChainPaused {
				rows = append(rows, append([]string{l.ID().String()}, proofRow(p, since, now)...))
			}
			if p.Latency != nil {
				rows = append(rows, append([]string{l.ID().String()}, latencyRow(p, since, now)...))
			}
		}
	}
	head := "NETWORK\tLINK\tFROM\tTO\tPROMISE\tAVAILABLE\tTESTED\tBROKEN\tWORST\t" + plotHead(since, now)
	return a.printAll(views, head, rows, "nothing is promised of links: none has a minimum")
}

// agoOf reads a time, or a duration before now.
func agoOf(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := vnet.ParseDuration(text)
	if err != nil || d <= 0 {
		return now, badInput{fmt.Errorf("%s %q is neither a duration such as 7d nor a time such as 2027-03-01T08:00:00Z", flag, text)}
	}
	return now.Add(-d), nil
}

func proofRow(p vnet.Proof, from, now time.Time) []string {
	available, worst := "not tested", "-"
	if p.Tested > 0 {
		available = availability(p.Availability)
	}
	if w := p.Worst; w != nil {
		worst = fmt.Sprintf("%s: %.0f%%, %s", when(w.From), 100*w.Worst, w.Cause)
	}
	promise := p.Min.String()
	if p.ChainPaused {
		promise = "paused"
	}
	seconds := func(n int) string { return vnet.FormatDuration(time.Duration(n) * time.Second) }
	return []string{p.Link, p.From, p.To, promise, available, seconds(p.Tested), seconds(p.Broken), worst, plotOf(p.Runs, from, now)}
}

// latencyRow is that of a link's bound of latency.
func latencyRow(p vnet.Proof, from, now time.Time) []string {
	l, worst := p.Latency, "-"
	shown := vnet.Proof{Link: p.Link, From: p.From, To: p.To, Tested: l.Tested, Broken: l.Broken, Availability: l.Availability, Runs: l.Runs}
	row := proofRow(shown, from, now)
	row[3] = "latency " + microsText(&l.Bound)
	if l.P99 > 0 {
		worst = fmt.Sprintf("p50 %s, p99 %s", microsText(&l.P50), microsText(&l.P99))
	}
	if w := l.Worst; w != nil {
		worst = fmt.Sprintf("%s: p50 %s, p99 %s, %s", when(w.From), microsText(&w.P50), microsText(&w.P99), w.Cause)
	}
	row[7] = worst
	return row
}

// availability never says that all was there where it was not.
func availability(part float64) string {
	if text := fmt.Sprintf("%.3f%%", 100*part); part == 1 || text != "100.000%" {
		return text
	}
	return "99.999%"
}

// plotWidth is the columns of a picture of time.
const plotWidth = 40

func plotHead(from, now time.Time) string {
	return fmt.Sprintf("LAST %s, %s EACH", vnet.FormatDuration(now.Sub(from).Round(time.Minute)), vnet.FormatDuration((now.Sub(from) / plotWidth).Round(time.Second)))
}

// plotOf draws runs: the worst that lies in a column.
func plotOf(runs []vnet.ProofRun, from, now time.Time) string {
	columns := []byte(strings.Repeat(".", plotWidth))
	each := max(now.Sub(from)/plotWidth, 1)
	for _, r := range runs {
		first := max(int(r.From.Sub(from)/each), 0)
		last := int((r.From.Add(time.Duration(r.Minutes)*time.Minute - 1)).Sub(from) / each)
		for i := first; i <= min(last, plotWidth-1); i++ {
			switch {
			case r.Outcome == vnet.Broken:
				columns[i] = '!'
			case r.Outcome == vnet.Kept && columns[i] == '.':
				columns[i] = '#'
			}
		}
	}
	return string(columns)
}
