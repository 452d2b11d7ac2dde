package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sublet/agent/session"
)

func (a *app) attach() *cobra.Command {
	return &cobra.Command{
		Use:   "attach NAME/NODE",
		Short: "Sit at the console of a node, which goes on when one leaves",
		Long: `Sit at the console of a node: a shell that begins with the first who comes and goes
on when one leaves, or the serial line of a machine (kind: vm), with the last that
was written there. Ctrl-] leaves. Several may sit there at a time. In a pipe, what is
read goes to the console, and what it answers within a moment comes back.`,
		Example:           "  sublet attach hello/m1\n  echo root | sublet attach hello/m1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(nodesOf),
		RunE: func(c *cobra.Command, args []string) error {
			spec := session.Spec{Argv: []string{"attach"}, TTY: a.onTerminal(), Term: os.Getenv("TERM")}
			if spec.TTY {
				fmt.Fprintf(a.err, "at the console of %s, Ctrl-] leaves\n", args[0])
			}
			return a.session(c.Context(), args[0], "attach", spec, session.Streams{In: a.in, Out: a.out, Err: a.err})
		},
	}
}
