package main

import (
	"bytes"
	"context"
	"time"

	"github.com/spf13/cobra"
)

// lookEvery is how long passes between two looks at what a list is of.
const lookEvery = time.Second

// list makes a command that prints what there is, and with -w prints it again
// whenever it is otherwise, until interrupted.
func (a *app) list(c *cobra.Command) *cobra.Command { return a.watchable(a.noun(c)) }

// watched says whether -w was stated.
func watched(c *cobra.Command) bool {
	on, err := c.Flags().GetBool("watch")
	return err == nil && on
}

// watchable gives a command -w.
func (a *app) watchable(c *cobra.Command) *cobra.Command {
	watch, once := false, c.RunE
	c.Flags().BoolVarP(&watch, "watch", "w", false, "print it again whenever it has changed, until interrupted")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !watch {
			return once(c, args)
		}
		return a.again(c.Context(), func() error { return once(c, args) })
	}
	return c
}

// again prints what a command prints whenever it differs from what it printed
// last, until ctx ends.
func (a *app) again(ctx context.Context, once func() error) error {
	out := a.out
	defer func() { a.out = out }()
	var last []byte
	for {
		var now bytes.Buffer
		a.out = &now
		if err := once(); err != nil {
			return err
		}
		if text := now.Bytes(); !bytes.Equal(text, last) {
			if _, err := out.Write(append(a.between(last), text...)); err != nil {
				return err
			}
			last = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// between parts two lists: an empty line, or the mark between YAML documents;
// JSON needs none.
func (a *app) between(last []byte) []byte {
	switch {
	case last == nil || a.format == "json":
		return nil
	case a.format == "yaml":
		return []byte("---\n")
	}
	return []byte("\n")
}
