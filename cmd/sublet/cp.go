package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	agentapi "sublet/agent/api"
	"sublet/agent/session"
	"sublet/internal/filecopy"
)

func (a *app) cp() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files into a node or out of it",
		Long: `Copy a file, or a directory with all that is in it, between here and a node:
one of the two is written NAME/NODE:PATH. If the target is a directory, the copy
goes into it. Holes of files stay holes; a file with more data than there is room
for where it goes is not begun. In the node the tenant's rights hold; paths there begin at /.
The exit code is 125 if the node could not read or write the files.`,
		Example: "  sublet cp server.py hello/pong:/tmp/\n  sublet cp hello/ping:/tmp/results results",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			from, to := placeOf(args[0]), placeOf(args[1])
			switch {
			case from.node == "" && to.node != "":
				return a.copyIn(c.Context(), from.path, to)
			case from.node != "" && to.node == "":
				return a.copyOut(c.Context(), from, to.path)
			}
			return badInput{errBothSides}
		},
	}
}

// errBothSides is the mistake of naming no node, or two.
var errBothSides = errors.New("copy between here and a node: write one of the two as NAME/NODE:PATH")

// place is one of cp's two: a path here, or in a node.
type place struct{ node, path string }

// placeOf reads NAME/NODE:PATH; what has no such form is a path here, which
// can always be told from it by beginning with ./ or /.
func placeOf(text string) place {
	node, path, split := strings.Cut(text, ":")
	if !split || strings.HasPrefix(node, ".") || strings.HasPrefix(node, "/") || !strings.Contains(node, "/") {
		return place{path: text}
	}
	return place{node, path}
}

// copyIn sends what is here to a node.
func (a *app) copyIn(ctx context.Context, from string, to place) error {
	if _, err := os.Stat(from); err != nil {
		return badInput{err}
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := filecopy.Pack(w, from)
		_ = w.Close()
		packed <- err
	}()
	spec := session.Spec{Argv: []string{agentapi.CopyIn, to.path}}
	err := a.session(ctx, to.node, "copy", spec, session.Streams{In: r, Err: a.err})
	_ = r.Close()
	if problem := <-packed; err == nil {
		return problem
	}
	return err
}

// copyOut brings what is in a node here.
func (a *app) copyOut(ctx context.Context, from place, to string) error {
	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := filecopy.Unpack(r, to, filecopy.Base(from.path))
		_, _ = io.Copy(io.Discard, r) // so that the sender ends by itself
		unpacked <- err
	}()
	spec := session.Spec{Argv: []string{agentapi.CopyOut, from.path}}
	err := a.session(ctx, from.node, "copy", spec, session.Streams{Out: w, Err: a.err})
	_ = w.Close()
	if problem := <-unpacked; err == nil {
		return problem
	}
	return err
}
