package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/measure/probe"
	"sublet/vnet"
)

func (a *app) check() *cobra.Command {
	var duration time.Duration
	c := a.noun(&cobra.Command{
		Use:   "check NAME",
		Short: "Measure every promise of a running network",
		Long: `Have the server ask the nodes of a network whether they reach each other, load
all its links at once, both ways, with TCP and with UDP, and compare what is
measured with what was promised. *_bps are Ethernet frame rates, *_payload_bps
what applications got. LATENCY is half the median round
trip of the idle link, held against the link's bound. A phase is measured again, at
most twice, when a figure is too low and the probes had to wait for a processor; the
best is taken. A node's own cpu and memory limits hold for its senders too. The
server stores the verdict with the lease (sublet leases). VERDICT is kept, broken, or
not measured: a figure that fell short still, while a probe waited for a processor
for long enough to explain it. Exit code 4 if a promise is broken; 0 if all are kept,
and also if some are not measured, of which a line on the standard error tells.`,
		Example:           "  sublet check hello\n  sublet check hello -o json --duration 60s",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if c.Flags().Changed("duration") && duration < api.MinCheck {
				return badInput{fmt.Errorf("--duration %s: state at least %s", duration, api.MinCheck)}
			}
			client, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			p := a.progress("measuring " + l.ID().String())
			verdict, err := client.Check(c.Context(), l.ID(), duration, func(phase string) { p.say("measuring " + l.ID().String() + ": " + phase) })
			p.end()
			if err != nil {
				return err
			}
			return a.judge(verdict)
		},
	})
	c.Flags().DurationVar(&duration, "duration", 0, fmt.Sprintf("length of each measurement (default %s, longer for slow links)", probe.DefaultDuration))
	return c
}

// printChains prints what was measured of chains, where that is not in JSON or YAML.
func (a *app) printChains(chains []vnet.ChainVerdict) error {
	if a.format != "" && a.format != "table" || len(chains) == 0 {
		return nil
	}
	var rows [][]string
	for _, c := range chains {
		why := strings.TrimPrefix(c.Why, notMeasuredFor)
		if why == string(c.Outcome) {
			why = "-"
		}
		rows = append(rows, []string{c.Name, asked(c.Rate), readable(c.Measured), string(c.Outcome), why})
	}
	fmt.Fprintln(a.out)
	return a.table("CHAIN RATE MEASURED VERDICT WHY", rows)
}

// latency is what was measured, over the bound if there is one.
func latency(l vnet.LinkVerdict) string {
	if l.LatencyBound == 0 {
		return fmt.Sprintf("%.0fus", l.Latency)
	}
	return fmt.Sprintf("%.0f/%.0fus", l.Latency, l.LatencyBound)
}

// judge prints a verdict.
func (a *app) judge(v vnet.Verdict) error {
	var rows [][]string
	for _, l := range v.Links {
		rows = append(rows, []string{
			l.Name, l.From, l.To, asked(l.Min), asked(l.Max), asked(l.Alloc), readable(l.TCP), readable(l.UDP),
			fmt.Sprintf("%.3f%%", 100*l.UDPLoss), latency(l), fmt.Sprintf("%.0f/%.0fus", l.RTT50, l.RTT99),
			fmt.Sprintf("%.1f/%.1fms", l.RTTLoad50/1000, l.RTTLoad99/1000), string(l.Outcome), reason(l),
		})
	}
	if err := a.print(v, "LINK FROM TO MIN MAX ALLOCATED TCP UDP LOSS LATENCY RTT RTT-LOADED VERDICT WHY", rows); err != nil {
		return err
	}
	if err := a.printChains(v.Chains); err != nil {
		return err
	}
	for _, who := range v.Unreached {
		fmt.Fprintln(a.err, "sublet: "+who)
	}
	if v.Stale {
		fmt.Fprintln(a.err, "the network's rates or places changed while it was measured: check again")
	}
	switch v.Says() {
	case vnet.Broken:
		return errBroken
	case vnet.NotMeasured:
		if slices.ContainsFunc(v.Links, func(l vnet.LinkVerdict) bool { return l.Why == ofMachine }) {
			fmt.Fprintln(a.err, "not all promises were measured: nothing can measure in machines; their links have the same shapers as those of other nodes")
		}
		if slices.ContainsFunc(v.Links, func(l vnet.LinkVerdict) bool { return neverMeasured(l) && l.Why != ofMachine }) {
			fmt.Fprintln(a.err, "not all promises were measured: WHY says of which links nothing can be")
		}
		if slices.ContainsFunc(v.Links, func(l vnet.LinkVerdict) bool { return l.Outcome == vnet.NotMeasured && !neverMeasured(l) }) {
			fmt.Fprintln(a.err, "not all promises were measured: the nodes or their hosts were short of processors; check again when they have less to do")
		}
	}
	return nil
}

// notMeasuredFor begins the reason why a link is not measured, however often it
// is tried.
const notMeasuredFor = string(vnet.NotMeasured) + ": "

func neverMeasured(l vnet.LinkVerdict) bool {
	return l.Outcome == vnet.NotMeasured && strings.HasPrefix(l.Why, notMeasuredFor)
}

// reason of a verdict, where there is more to say than the verdict.
func reason(l vnet.LinkVerdict) string {
	if l.Why == string(l.Outcome) {
		return "-"
	}
	return strings.TrimPrefix(l.Why, notMeasuredFor)
}
