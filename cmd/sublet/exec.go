package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sublet/agent/session"
	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) exec() *cobra.Command {
	detach, user := false, ""
	c := &cobra.Command{
		Use:   "exec NAME/NODE [--] [CMD [ARG...]]",
		Short: "Run a command in a node, with its exit code; on a terminal, a shell",
		Long: `Run a command in a node, with its exit code; on a terminal, a shell.

All commands of a node see the same processes. What a command leaves running
lives as long as the node; if this program is interrupted, the command and all
that it started end. Commands of a tenant have the rights of a user of their own;
those of the operator's own networks see what root sees. What commands write is
the node's and ends with it; no file of the machine is changed.`,
		Example:           "  sublet exec hello/ping -- ping -c 3 pong\n  sublet exec -u nobody hello/ping -- id\n  sublet exec -d hello/pong -- python3 -m http.server\n  sublet exec hello/ping",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completePart(nodesOf),
		RunE: func(c *cobra.Command, args []string) error {
			if !strings.Contains(args[0], "/") {
				return badInput{fmt.Errorf("%q names no node: write %s/NODE, then the command", args[0], args[0])}
			}
			if len(args) == 1 && (detach || !a.onTerminal()) {
				return badInput{errors.New("no command: write one behind --")}
			}
			if len(args) > 1 && args[1] == "" {
				return badInput{errors.New("the command is empty: write one behind --")}
			}
			if len(args) == 1 {
				args = append(args, "/bin/bash")
			}
			if user != "" && !vnet.ValidUser(user) {
				return badInput{fmt.Errorf("%q is no user: write a name or a number, such as www-data or 1000:100", user)}
			}
			spec := session.Spec{Argv: args[1:], Detach: detach, User: user, TTY: !detach && a.onTerminal(), Term: os.Getenv("TERM")}
			return a.session(c.Context(), args[0], "exec", spec, session.Streams{In: a.in, Out: a.out, Err: a.err})
		},
		DisableFlagsInUseLine: true,
	}
	c.Flags().BoolVarP(&detach, "detach", "d", false, "leave it running and print its process number; what it writes goes to the node's log (sublet logs)")
	c.Flags().StringVarP(&user, "user", "u", "", "user of the node, by name or number, and a group behind a colon if it is another; default: the node's user, or root")
	return c
}

// session runs a session of a node, named NAME/NODE, and returns its exit code as
// an error.
func (a *app) session(ctx context.Context, name, kind string, spec session.Spec, streams session.Streams) error {
	client, id, node, err := a.part(ctx, name, "NODE")
	if err != nil {
		return err
	}
	conn, err := client.Dial(ctx)
	if err != nil {
		return err
	}
	code, err := session.Run(ctx, conn, api.NodePath(id, node, kind), spec, streams)
	if err != nil {
		return explain(err)
	}
	if code != 0 {
		return status(code)
	}
	return nil
}

// onTerminal says whether a person sits at both ends.
func (a *app) onTerminal() bool {
	in, ok := a.in.(*os.File)
	out, also := a.out.(*os.File)
	return ok && also && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// part looks up NAME/PART: the lease and the name of one of its parts, which is what,
// such as NODE.
func (a *app) part(ctx context.Context, name, what string) (*api.Client, vnet.LeaseID, string, error) {
	words, err := splitName(name, 2, "NAME/"+what)
	if err != nil {
		return nil, vnet.LeaseID{}, "", err
	}
	client, l, err := a.lookUp(ctx, strings.TrimPrefix(words[0]+"/"+words[1], "/"))
	return client, l.ID(), words[2], err
}

// explain gives a refused session the error the API meant.
func explain(err error) error {
	var failure *session.Failure
	if errors.As(err, &failure) && failure.Status != 0 {
		return api.ReadProblem(failure.Status, failure.Message)
	}
	return err
}
