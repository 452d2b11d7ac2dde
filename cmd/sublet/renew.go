package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) renew() *cobra.Command {
	var o changeOptions
	var until, length string
	c := a.noun(&cobra.Command{
		Use:   "renew NAME --until TIME | --for DURATION",
		Short: "Give a network a longer or shorter window",
		Long: `Let a network end at another time: at TIME, or DURATION from now on (of one that
has not begun, from its start on). It is admitted like any other request: where
there is no room for so long, or a quota ends it earlier, it is refused with the
longest window there is (exit code 3), and keeps the one it has.`,
		Example:           "  sublet renew hello --for 2h\n  sublet renew hello --until 2027-03-01T18:00:00Z\n  sublet renew hello --for 7d --accept",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if (until == "") == (length == "") {
				return usage(c, errors.New("state either --until TIME or --for DURATION"))
			}
			if _, err := renewed(time.Time{}, time.Now(), until, length); err != nil {
				return err
			}
			_, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			if l.State == vnet.Ended {
				return badInput{fmt.Errorf("%s has ended: ask for it anew (sublet get %s, sublet up)", l.ID(), args[0])}
			}
			request := l.Request
			if request.For, err = renewed(l.Window.Start, time.Now(), until, length); err != nil {
				return err
			}
			return a.alter(c.Context(), l, request, o)
		},
	})
	c.Flags().StringVar(&until, "until", "", "when it shall end, such as 2027-03-01T18:00:00Z")
	c.Flags().StringVar(&length, "for", "", "how long it shall go on, such as 2h")
	o.flags(c)
	return c
}

// lasting reads a flag with a duration that is more than none.
func lasting(flag, length string) (time.Duration, error) {
	d, err := vnet.ParseDuration(length)
	if err == nil && d == 0 {
		err = fmt.Errorf("%q is no time: write one such as 2h", length)
	}
	if err != nil {
		return 0, badInput{fmt.Errorf("%s: %w", flag, err)}
	}
	return d, nil
}

// renewed is the length of a window that begins at start and ends at a time, or
// a length after now or the start, whichever is later; in whole seconds, but
// for a time that is stated.
func renewed(start, now time.Time, until, length string) (time.Duration, error) {
	if until != "" {
		end, err := time.Parse(time.RFC3339, until)
		switch {
		case err != nil:
			return 0, badInput{fmt.Errorf("--until %q is no time: write one such as 2027-03-01T18:00:00Z", until)}
		case !end.After(now):
			return 0, badInput{fmt.Errorf("--until %s has passed: to end it now, use sublet down", until)}
		case !end.After(start):
			return 0, badInput{fmt.Errorf("--until %s is not after its start, %s: state a later time", until, start.Format(time.RFC3339))}
		}
		return end.Sub(start), nil
	}
	d, err := lasting("--for", length)
	if err != nil {
		return 0, err
	}
	if now.After(start) {
		d += now.Sub(start)
	}
	return (d + time.Second - 1).Truncate(time.Second), nil
}
