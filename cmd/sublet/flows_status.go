package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sublet/report"
)

func (a *app) flowsStatus() *cobra.Command {
	return a.list(&cobra.Command{
		Use:   "status NAME/SWITCH",
		Short: "Show the controllers of an OpenFlow switch, what it holds, and where its time goes",
		Long: `Show of a switch of kind openflow which controllers are connected and why others are
not, how many entries, groups and meters there are of those it may have, how many
packets went to controllers, and where the time of its thread goes.`,
		Example:           "  sublet flows status learning/s1\n  sublet flows status learning/s1 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(openFlowSwitches),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			client, id, name, err := a.part(c.Context(), args[0], "SWITCH")
			if err != nil {
				return err
			}
			s, err := client.Switch(c.Context(), id, name)
			if err != nil {
				return err
			}
			if a.format != "table" {
				return a.printAll(s, "", nil, "")
			}
			return writeSwitch(a.out, s)
		},
	})
}

func writeSwitch(w io.Writer, s report.OpenFlowStatus) error {
	t := s.Stages
	fmt.Fprintf(w, "datapath     %s%s\n", s.Datapath, map[bool]string{true: ", standalone: it forwards as a learning switch"}[s.Standalone])
	if s.Core != nil {
		fmt.Fprintf(w, "processor    uses %s of core %d\n", s.Used, *s.Core)
	}
	for _, c := range s.Controllers {
		of := ""
		if c.Slice != "" {
			of = " of slice " + c.Slice
		}
		fmt.Fprintf(w, "controller   %s%s %s\n", c.Target, of, controllerState(c))
	}
	for _, x := range s.Slices {
		fmt.Fprintf(w, "slice        %s has tables %d to %d, entries %s, groups %s, meters %s\n", x.Name, x.FirstTable, x.FirstTable+x.Tables-1, share(x.Entries), share(x.Groups), share(x.Meters))
	}
	_, err := fmt.Fprintf(w, "entries      %s\ngroups       %s\nmeters       %s\npacket-ins   %d sent, %d over the rate\nthread       %s\n",
		share(s.Entries), share(s.Groups), share(s.Meters), s.PacketIns.Sent, s.PacketIns.OverRate,
		shares([]string{"polling", "i/o", "rules", "actions", "overhead"}, []time.Duration{t.Polling, t.IO, t.Rules, t.Actions, t.Overhead}))
	return err
}

func controllerState(c report.OpenFlowController) string {
	switch {
	case c.Connected:
		line := fmt.Sprintf("%s, OpenFlow %s, for %s", c.Role, c.Version, time.Duration(c.For).Round(time.Second))
		if c.Auxiliary > 0 {
			line += fmt.Sprintf(", %d auxiliary connections", c.Auxiliary)
		}
		if c.Unread > 0 {
			line += fmt.Sprintf(", has not read %d packet-ins", c.Unread)
		}
		return line
	case c.Why != "":
		return "is not connected: " + c.Why
	}
	return "is not connected"
}

func share(s report.Share) string { return fmt.Sprintf("%d of %d", s.Used, s.Most) }

// shares gives times as parts of their sum.
func shares(names []string, times []time.Duration) (line string) {
	var whole time.Duration
	for _, t := range times {
		whole += t
	}
	for i, t := range times {
		if i > 0 {
			line += ", "
		}
		line += fmt.Sprintf("%s %.0f %%", names[i], 100*float64(t)/float64(max(whole, 1)))
	}
	return line
}
