package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/vnet"
)

// minDuration is the shortest measurement that says anything.
const minDuration = 100 * time.Millisecond

func (a *app) check() *cobra.Command {
	var opt probe.Options
	c := a.noun(&cobra.Command{
		Use:   "check NAME",
		Short: "Measure every promise of a running network",
		Long: `Load all links of a network at once, both ways, with TCP and with UDP, and
compare what is measured with what was promised. *_bps are Ethernet frame
rates, *_payload_bps what applications got. A phase is measured again, at most
twice, when a rate is too low and the senders had to wait for a processor; the
best is taken. A node's own cpu and memory limits hold for its senders too.
Exit code 4 if a promise is not kept.`,
		Example:           "  sublet check hello\n  sublet check hello -o json --duration 60s",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if c.Flags().Changed("duration") && opt.Duration < minDuration {
				return badInput{fmt.Errorf("--duration %s: state at least %s", opt.Duration, minDuration)}
			}
			client, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			if l.State != vnet.Running {
				return badInput{fmt.Errorf("%s is %s: only a running network can be measured", l.ID(), l.State)}
			}
			if len(l.Topology().Links) == 0 {
				return badInput{fmt.Errorf("%s has no links: there is nothing to measure", l.ID())}
			}
			verdict, err := a.measure(c.Context(), client, l, opt)
			if err != nil {
				return err
			}
			return a.judge(verdict)
		},
	})
	c.Flags().DurationVar(&opt.Duration, "duration", 0, fmt.Sprintf("length of each measurement (default %s, longer for slow links)", probe.DefaultDuration))
	return c
}

// measure runs the check and stores its verdict with the lease.
func (a *app) measure(ctx context.Context, client *api.Client, l vnet.Lease, opt probe.Options) (vnet.Verdict, error) {
	sub, err := client.Substrate(ctx)
	if err != nil {
		return vnet.Verdict{}, err
	}
	ports, err := plan.Ports(sub, l)
	if err != nil {
		return vnet.Verdict{}, err
	}
	streams, err := plan.Streams(sub, l)
	if err != nil {
		return vnet.Verdict{}, err
	}
	opt.Targets = append(targets(l, ports), across(l, streams)...)
	p := a.progress("measuring " + l.ID().String())
	defer p.end()
	opt.Progress = func(phase string) { p.say("measuring " + l.ID().String() + ": " + phase) }
	verdict, err := probe.Check(ctx, l, starter(client, l.ID()), opt)
	if err != nil {
		return verdict, err
	}
	verdict.Links = behind(l, streams, verdict.Links)
	verdict.Time = time.Now().UTC().Truncate(time.Second)
	return verdict, client.SetVerdict(ctx, l.ID(), verdict)
}

func targets(l vnet.Lease, ports map[string][2]plan.Port) []probe.Target {
	mtu := 0
	for _, p := range ports {
		mtu = p[0].MTU // the same on all links of a network
	}
	return probe.Targets(l, mtu, func(link vnet.VirtualLink, end int) string { return ports[link.Name][end].Interface })
}

// starter starts probes through the server, in the nodes.
func starter(client *api.Client, id vnet.LeaseID) probe.Starter {
	return func(ctx context.Context, node string) (io.ReadWriteCloser, error) {
		conn, err := client.Dial(ctx)
		if err != nil {
			return nil, err
		}
		pipe, err := session.OpenPipe(ctx, conn, api.NodePath(id, node, "probe"), session.Spec{Argv: []string{"probe"}})
		if err != nil {
			return nil, explain(err)
		}
		return pipe, nil
	}
}

func (a *app) judge(v vnet.Verdict) error {
	var rows [][]string
	for _, l := range v.Links {
		rows = append(rows, []string{
			l.Name, l.From, l.To, asked(l.Min), asked(l.Max), asked(l.Alloc), readable(l.TCP), readable(l.UDP),
			fmt.Sprintf("%.3f%%", 100*l.UDPLoss), fmt.Sprintf("%.0f/%.0fus", l.RTT50, l.RTT99),
			fmt.Sprintf("%.1f/%.1fms", l.RTTLoad50/1000, l.RTTLoad99/1000), l.Why,
		})
	}
	if err := a.print(v, "LINK FROM TO MIN MAX ALLOCATED TCP UDP LOSS RTT RTT-LOADED VERDICT", rows); err != nil {
		return err
	}
	if !v.OK {
		return errBroken
	}
	return nil
}
