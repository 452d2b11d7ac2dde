package main

import (
	"errors"
	"slices"
	"time"

	"sublet/lease"
	"sublet/report"
	"sublet/vnet"
)

// policy is a way to decide about requests.
type policy struct {
	name string
	// order of decision: at arrival, or at the earliest start
	atStart bool
	moves   int
	// ask changes what is asked of the book.
	ask func(vnet.Request, vnet.Substrate) vnet.Request
}

// policies that are compared. All use the same engine for one decision; they
// differ in what it is asked.
var policies = []policy{
	{name: "now or never", atStart: true, ask: nowOrNever},
	{name: "whole-link circuits", ask: wholeLinks},
	{name: "fixed windows", ask: fixed},
	{name: "Sublet", ask: asAsked},
	{name: "Sublet, moves", moves: lease.DefaultMoves, ask: asAsked},
}

// nowOrNever knows no time to come: a request is decided when it wants to
// begin, and begins at once or not at all.
func nowOrNever(r vnet.Request, _ vnet.Substrate) vnet.Request {
	r.Before = time.Time{}
	return r
}

// fixed books ahead, but only at the earliest start.
func fixed(r vnet.Request, _ vnet.Substrate) vnet.Request { return nowOrNever(r, vnet.Substrate{}) }

// wholeLinks gives each virtual link whole links of the substrate, first come
// first served, within its slack: circuits of fixed capacity.
func wholeLinks(r vnet.Request, sub vnet.Substrate) vnet.Request {
	r.Links = slices.Clone(r.Links)
	for i := range r.Links {
		whole := vnet.Static(sub.Links[0].Leasable())
		r.Links[i].Bandwidth = [2]vnet.Bandwidth{whole, whole}
	}
	return r
}

func asAsked(r vnet.Request, _ vnet.Substrate) vnet.Request { return r }

// result is what came of an instance.
type result struct {
	accepted int
	volume   float64 // Gbit that were accepted
	moved    int     // leases that were moved to make room
	worst    time.Duration
	mean     time.Duration
}

// run plays an instance; hosts do at once what they are told.
func run(in instance, p policy) (result, error) {
	book := lease.New(in.sub)
	book.MostMoves = p.moves
	order := make([]int, len(in.asks))
	for i := range order {
		order[i] = i
	}
	decided := func(i int) int {
		if p.atStart {
			return in.asks[i].earliest
		}
		return in.asks[i].arrival
	}
	slices.SortStableFunc(order, func(a, b int) int { return decided(a) - decided(b) })
	var res result
	var total time.Duration
	for _, i := range order {
		now := at(decided(i))
		if err := obey(book, now); err != nil {
			return res, err
		}
		began := time.Now()
		l, err := book.Admit(now, p.ask(in.asks[i].request(i), in.sub), 0)
		took := time.Since(began)
		total, res.worst = total+took, max(res.worst, took)
		var refused *vnet.Rejection
		switch {
		case err == nil:
			res.accepted++
			res.volume += in.asks[i].volume()
			res.moved += len(book.Moves(l.Serial))
		case !errors.As(err, &refused):
			return res, err
		}
		if err := obey(book, now); err != nil {
			return res, err
		}
	}
	res.mean = total / time.Duration(len(order))
	return res, nil
}

// obey lets every host do what its plan says, until nothing more comes of it.
func obey(book *lease.Book, now time.Time) error {
	if err := book.Tick(now); err != nil {
		return err
	}
	for range 8 {
		before := book.Changes().Counters.Revision
		for host, p := range book.Plans() {
			if err := book.Report(now, report.Report{Host: host, Revision: p.Revision}); err != nil {
				return err
			}
		}
		if book.Changes().Counters.Revision == before {
			break
		}
	}
	book.Saved()
	return nil
}
