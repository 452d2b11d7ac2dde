package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) ps() *cobra.Command {
	return a.list(&cobra.Command{
		Use:               "ps NAME/NODE",
		Short:             "Show what runs in a node",
		Example:           "  sublet ps hello/pong\n  sublet ps hello/pong -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(nodesOf),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			client, id, node, err := a.part(c.Context(), args[0], "NODE")
			if err != nil {
				return err
			}
			list, err := client.Processes(c.Context(), id, node)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, p := range list {
				rows = append(rows, []string{
					strconv.Itoa(p.PID), p.State, (time.Duration(p.CPU) * time.Millisecond).String(),
					vnet.Bytes(p.Memory).String(), when(p.Started), p.Command,
				})
			}
			none := "nothing runs in " + args[0]
			if len(list) == 0 {
				none += daemonsBeside(c.Context(), client, id, node, args[0])
			}
			return a.printAll(list, "PID STATE CPU MEMORY STARTED COMMAND", rows, none)
		},
	})
}

// daemonsBeside says what of a router's runs although nothing of its tenant's does.
func daemonsBeside(ctx context.Context, client *api.Client, id vnet.LeaseID, node, name string) string {
	l, err := client.Lease(ctx, id)
	if err != nil {
		return ""
	}
	for _, t := range l.Request.Union().Routers {
		if t.Name == node && (t.FRR != "" || t.Protocol.Speaks(true) != "" || t.Protocol.Speaks(false) != "") {
			return fmt.Sprintf(" but its routing daemons (FRR, protocol %s), which Sublet keeps: sublet exec %s -- vtysh", t.Protocol, name)
		}
	}
	return ""
}

func (a *app) logs() *cobra.Command {
	follow := false
	c := &cobra.Command{
		Use:   "logs NAME/NODE",
		Short: "Print what programs of a node wrote, and commands that were left running",
		Long: `Print what the programs of a node wrote that its request starts (run:), and
the commands that "sublet exec --detach" left running: standard output and standard
error of all of them, in the order in which they wrote. A log longer than 4 MiB is cut to its last MiB.`,
		Example:           "  sublet logs hello/pong\n  sublet logs -f hello/pong",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(nodesOf),
		RunE: func(c *cobra.Command, args []string) error {
			client, id, node, err := a.part(c.Context(), args[0], "NODE")
			if err != nil {
				return err
			}
			return a.printLog(c.Context(), client, id, node, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on, until interrupted")
	return c
}

func (a *app) printLog(ctx context.Context, client *api.Client, id vnet.LeaseID, node string, follow bool) error {
	conn, err := client.Dial(ctx)
	if err != nil {
		return err
	}
	path := api.NodePath(id, node, "log")
	if follow {
		path += "?follow=true"
	}
	stream, err := session.OpenStream(ctx, conn, path)
	if err != nil {
		return explain(err)
	}
	defer stream.Close()
	_, err = io.Copy(a.out, stream)
	if follow && ctx.Err() != nil { // interrupted: that is how following ends
		return nil
	}
	if err != nil {
		return fmt.Errorf("the log ends here, the way to the node broke: %w", explain(err))
	}
	return nil
}
