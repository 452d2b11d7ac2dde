package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// choice is which networks a command follows: one, those that a selector chooses, or
// all that the caller may see.
type choice struct {
	report.Scope
	selector vnet.Selector
	client   *api.Client
	known    map[vnet.LeaseID]bool // what the selector says of those that were looked up
	looked   time.Time
}

var errNameAndLabels = badInput{errors.New("state the name of a network or --selector, not both")}

// oneOf refuses a name beside labels, and labels that cannot be read.
func oneOf(args []string, selector string) error {
	if len(args) > 0 && selector != "" {
		return errNameAndLabels
	}
	_, err := selected(nil, selector)
	return err
}

// following reads which networks are to be followed.
func (a *app) following(ctx context.Context, args []string, selector string) (*choice, error) {
	if err := oneOf(args, selector); err != nil {
		return nil, err
	}
	c := &choice{client: a.client(), known: make(map[vnet.LeaseID]bool)}
	if len(args) > 0 {
		_, l, err := a.lookUp(ctx, args[0])
		c.Scope = report.Of(l.ID())
		return c, err
	}
	c.selector, _ = vnet.ParseSelector(selector) // which was read before
	if c.selector == nil {
		return c, nil
	}
	return c, c.look(ctx)
}

// look asks the server for the labels of all networks.
func (c *choice) look(ctx context.Context) error {
	leases, err := c.client.Leases(ctx)
	if err != nil {
		return err
	}
	clear(c.known)
	for _, l := range leases {
		if _, other := c.known[l.ID()]; !other || l.State != vnet.Ended { // of several of a name the one that lives
			c.known[l.ID()] = c.selector.Chooses(l.Request.Labels)
		}
	}
	c.looked = time.Now()
	return nil
}

// holds says whether a lease is meant. One that is not known is looked up, and one
// that became different, not more often than lists are. With a selector a host's own
// is not meant.
func (c *choice) holds(ctx context.Context, id vnet.LeaseID, different bool) (bool, error) {
	if c.selector == nil {
		return c.Holds(id), nil
	}
	if id == (vnet.LeaseID{}) {
		return false, nil
	}
	if _, known := c.known[id]; !known || different && time.Since(c.looked) >= lookEvery {
		if err := c.look(ctx); err != nil {
			return false, err
		}
	}
	meant := c.known[id]
	c.known[id] = meant // also of one that has gone: it is looked up once
	return meant, nil
}

// samples are those of what is meant.
func (c *choice) samples(ctx context.Context, all []report.Sample) ([]report.Sample, error) {
	if c.selector == nil {
		return c.Filter(all), nil
	}
	var held []report.Sample
	for _, s := range all {
		meant, err := c.holds(ctx, s.Lease, s.Kind == report.KindLease)
		if err != nil {
			return nil, err
		}
		if meant {
			held = append(held, s)
		}
		if s.Kind == report.KindLease && s.State == report.State(vnet.Ended) {
			delete(c.known, s.Lease) // the next one of this name has labels of its own
		}
	}
	return held, nil
}

// networks are those that a command is about: the one it names, or those with
// labels, without those that are over unless they are wanted, too.
func (a *app) networks(ctx context.Context, args []string, selector string, ended bool) ([]vnet.Lease, error) {
	if err := oneOf(args, selector); err != nil {
		return nil, err
	}
	if len(args) > 0 {
		_, l, err := a.lookUp(ctx, args[0])
		return []vnet.Lease{l}, err
	}
	if selector == "" {
		return nil, badInput{errors.New("state the name of a network, or --selector")}
	}
	leases, err := a.client().Leases(ctx)
	if err != nil {
		return nil, err
	}
	if leases, err = selected(leases, selector); err != nil {
		return nil, err
	}
	var chosen []vnet.Lease
	for _, l := range leases {
		if ended || l.State != vnet.Ended {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 && !ended {
		return nil, badInput{fmt.Errorf("no lease has the labels %s: see sublet leases", selector)}
	}
	return chosen, nil
}
