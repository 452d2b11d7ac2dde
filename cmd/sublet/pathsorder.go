package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/agent/iplbd"
)

// pathsOrders are the commands that change what a running sublet paths run does.
func (a *app) pathsOrders() []*cobra.Command {
	var host string
	weight := &cobra.Command{
		Use:   "weight PREFIX RELAYS WEIGHT",
		Short: "Give a path another weight",
		Long: `Give a path of a prefix another weight, at once: new flows are dealt by it, and
flows are moved by it. RELAYS are the path's, as sublet paths shows them (- is
the fabric's own way). It holds until sublet paths run ends, also where lists
are read again; default brings back what these say.`,
		Example: "  sublet paths weight --host h1 10.2.0.0/16 10.255.0.2,10.255.0.4 3\n  sublet paths weight --host h1 10.2.0.0/16 10.255.0.2,10.255.0.4 default",
		Args:    cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := pathOrder(args[0], args[1])
			if err != nil {
				return err
			}
			if args[2] != "default" {
				number, err := strconv.ParseUint(args[2], 10, 32)
				if err != nil || number == 0 || number > math.MaxUint32 {
					return badInput{fmt.Errorf("weight %q: state a whole number from 1 on, or default", args[2])}
				}
				o.Weight = uint32(number)
			}
			return a.order(c.Context(), host, o)
		},
	}
	pin := &cobra.Command{
		Use:   "pin PREFIX FLOW RELAYS",
		Short: "Keep a flow on a path",
		Long: `Keep a flow on a path of its prefix for as long as that is alive, in mode flow.
FLOW is SOURCE:PORT>TARGET:PORT/PROTOCOL, as the moves of sublet paths show it. One
that has sent nothing yet goes there in the first look after its first packet
(sublet paths run --rearrange). A flow that left a dead path comes back when that
is alive. It holds until sublet paths unpin, or sublet paths run, ends it.`,
		Example: "  sublet paths pin --host h1 10.2.0.0/16 '10.1.0.5:40000>10.2.0.9:5001/6' 10.255.0.2,10.255.0.4",
		Args:    cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := pathOrder(args[0], args[2])
			if err != nil {
				return err
			}
			return a.orderFlow(c.Context(), host, args[1], o)
		},
	}
	unpin := &cobra.Command{
		Use:     "unpin PREFIX FLOW",
		Short:   "Let a flow that was pinned go where it likes",
		Example: "  sublet paths unpin --host h1 10.2.0.0/16 '10.1.0.5:40000>10.2.0.9:5001/6'",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := pathOrder(args[0], "-")
			if err != nil {
				return err
			}
			o.Unpin = true
			return a.orderFlow(c.Context(), host, args[1], o)
		},
	}
	all := []*cobra.Command{weight, pin, unpin}
	for _, c := range all {
		c.Flags().StringVar(&host, "host", "", "host whose paths these are")
		_ = c.MarkFlagRequired("host") // an error: there is no such flag
	}
	return all
}

func pathOrder(prefix, relays string) (o iplbd.Order, err error) {
	if o.Prefix, err = netip.ParsePrefix(prefix); err != nil {
		return o, badInput{fmt.Errorf("prefix %q: state one that sublet paths lists, such as 10.2.0.0/16", prefix)}
	}
	if relays == "-" {
		return o, nil
	}
	for _, word := range strings.Split(relays, ",") {
		relay, err := netip.ParseAddr(word)
		if err != nil {
			return o, badInput{fmt.Errorf("relays %q: state addresses with commas between them, as sublet paths lists them", relays)}
		}
		o.Relays = append(o.Relays, relay)
	}
	return o, nil
}

func (a *app) orderFlow(ctx context.Context, host, flow string, o iplbd.Order) error {
	if _, err := iplbd.ParseFlow(flow); err != nil {
		return badInput{err}
	}
	o.Flow = flow
	return a.order(ctx, host, o)
}

func (a *app) order(ctx context.Context, host string, o iplbd.Order) error {
	_, err := iplbd.Send(ctx, iplbd.Socket(a.run, host), o)
	var refused iplbd.Refused
	switch {
	case errors.As(err, &refused):
		return badInput{refused}
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return badInput{fmt.Errorf("--host %s: it runs no paths below %s: start them with sublet paths run", host, a.run)}
	}
	return err
}
