package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) impair() *cobra.Command {
	var from string
	c := a.noun(&cobra.Command{
		Use:   "impair NAME/LINK [WORD=VALUE... | off]",
		Short: "Make a link of a running network slow, lossy or worse, or whole again",
		Long: `Make a link of a running network worse on purpose, at once, in both directions or
in that of the frames that --from sends: delay, jitter, distribution, loss,
corrupt, duplicate, reorder, as the words of impair in a request. What is stated
replaces all that was; off ends it. It holds until a stage of the request states
another impairment of the link, and through restarts. Without words, what the
link does now. Guaranteed rates stay.`,
		Example: "  sublet impair hello/ping-pong delay=20ms jitter=2ms loss=1%\n  sublet impair hello/ping-pong --from ping loss=10%\n" +
			"  sublet impair hello/ping-pong off\n  sublet impair hello/ping-pong",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completePart(linksOf),
		RunE:              func(c *cobra.Command, args []string) error { return a.impairLink(c, args[0], args[1:], from) },
	})
	c.Flags().StringVar(&from, "from", "", "node at the link's end whose frames are meant (default: both)")
	return c
}

func (a *app) impairLink(c *cobra.Command, name string, stated []string, from string) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	words, err := splitName(name, 2, "NAME/LINK")
	if err != nil {
		return err
	}
	wanted, err := readImpairment(stated)
	if err != nil {
		return badInput{err}
	}
	client, l, link, err := a.lookUpLink(c.Context(), words)
	if err != nil {
		return err
	}
	both := [2]vnet.Impairment{wanted, wanted}
	if from != "" {
		end, err := endAt(l, link.Name, from)
		if err != nil {
			return badInput{err}
		}
		both = link.Impair
		both[end] = wanted
	}
	if len(stated) > 0 {
		if l, err = client.Impair(c.Context(), l.ID(), link.Name, both); err != nil {
			return err
		}
		if l, err = client.WaitApplied(c.Context(), l.ID()); err != nil {
			return err
		}
		link, _ = l.Topology().Link(link.Name)
	}
	if a.format != "table" {
		return a.printLinkStates([]vnet.VirtualLink{link})
	}
	for d, i := range link.Impair {
		fmt.Fprintf(a.out, "%s from %s to %s: %s\n", link.Name, link.Ends[d], link.Ends[1-d], cmp.Or(i.String(), "not impaired"))
	}
	return nil
}

// lookUpLink finds a link by the words of splitName.
func (a *app) lookUpLink(ctx context.Context, words []string) (*api.Client, vnet.Lease, vnet.VirtualLink, error) {
	client, l, err := a.lookUp(ctx, strings.TrimPrefix(words[0]+"/"+words[1], "/"))
	if err != nil {
		return nil, l, vnet.VirtualLink{}, err
	}
	link, ok := l.Topology().Link(words[2])
	if !ok {
		err = badInput{fmt.Errorf("%s has no link %q: choose from %s", l.ID(), words[2], strings.Join(linksOf(l.Topology()), ", "))}
	}
	return client, l, link, err
}

// readImpairment reads the words of a command: off, or what is to be done.
func readImpairment(words []string) (vnet.Impairment, error) {
	if len(words) == 1 && words[0] == "off" {
		return vnet.Impairment{}, nil
	}
	for _, w := range words {
		if w == "off" {
			return vnet.Impairment{}, errors.New("off ends all: state it alone")
		}
	}
	return vnet.ParseImpairment(words)
}

// printImpairments tells of the links that are down or impaired.
func (a *app) printImpairments(t vnet.Topology) {
	for _, link := range t.Links {
		if link.Down {
			fmt.Fprintf(a.out, "  %s is down\n", link.Name)
		}
		for d, i := range link.Impair {
			if i != (vnet.Impairment{}) {
				fmt.Fprintf(a.out, "  %s from %s is impaired: %s\n", link.Name, link.Ends[d], i)
			}
		}
	}
}
