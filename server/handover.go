package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// Times of handing over. What was found broken is measured again soon, since agents
// repair what they find; what has failed by that, seldom.
const (
	handoverLook  = 100 * time.Millisecond // between looks at what waits, at least
	handoverAgain = 2 * time.Second
	handoverRetry = 30 * time.Second
)

// handOver has networks measured that are built and run once their promises are
// kept, until ctx ends.
func (s *Server) handOver(ctx context.Context) {
	if s.checker == nil {
		return
	}
	var measuring sync.WaitGroup
	defer measuring.Wait()
	tries := make(map[vnet.LeaseID]time.Time) // the next one of each
	for ctx.Err() == nil {
		changed, waiting := s.handovers()
		seen := make(map[vnet.LeaseID]time.Time)
		for _, h := range waiting {
			seen[h.ID()] = tries[h.ID()]
			if time.Now().Before(tries[h.ID()]) {
				continue
			}
			end, err := s.checks.begin(h.ID(), true)
			if err != nil {
				continue // it is measured, or too many are
			}
			seen[h.ID()] = time.Now().Add(handoverPause(h.Failed + 1))
			measuring.Go(func() {
				defer end()
				s.measured(ctx, h.Lease)
			})
		}
		tries = seen
		await(ctx, changed)
	}
}

// handovers are the networks that wait, and a channel that is closed when the book
// changes.
func (s *Server) handovers() (changed <-chan struct{}, waiting []lease.Handover) {
	_ = s.look(func(_ time.Time, b *lease.Book) error { // else nothing waits now
		changed, waiting = s.changed, b.Handovers()
		return nil
	})
	return changed, waiting
}

// handoverPause is how long after the beginning of a measurement the next begins at
// the earliest, if that one is the so-manieth in vain.
func handoverPause(failed int) time.Duration {
	if failed < lease.HandoverTries {
		return handoverAgain
	}
	return handoverRetry
}

// await waits a while, then for the book to change or for what is due by the clock.
func await(ctx context.Context, changed <-chan struct{}) {
	least, most := time.NewTimer(handoverLook), time.NewTimer(handoverAgain)
	defer least.Stop()
	defer most.Stop()
	select {
	case <-ctx.Done():
		return
	case <-least.C:
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-most.C:
	}
}

// measured measures one and tells the book.
func (s *Server) measured(ctx context.Context, l vnet.Lease) {
	verdict, err := s.prove(ctx, l, CheckJob{Short: true, Progress: func(string) {}})
	if ctx.Err() != nil {
		return
	}
	why := ""
	switch {
	case err != nil:
		why = "it could not be measured: " + err.Error()
	case verdict.Says() == vnet.Broken:
		why = broken(verdict)
	}
	err = s.changeBy(clock(), func(now time.Time, b *lease.Book) error { return b.HandOver(now, l.ID(), l.Serial, why) })
	if err != nil && !errors.Is(err, lease.ErrUnknown) && !errors.Is(err, lease.ErrConflict) {
		s.log.Error("hand over a network", "lease", l.ID().String(), "err", err)
	}
}

// broken names what is broken first, and how much else is.
func broken(v vnet.Verdict) string {
	var list []string
	for _, l := range v.Links {
		if !l.OK && l.Why != "" {
			list = append(list, l.Name+" from "+l.From+": "+l.Why)
		}
	}
	for _, c := range v.Chains {
		if !c.OK && c.Why != "" {
			list = append(list, "chain "+c.Name+": "+c.Why)
		}
	}
	list = append(list, v.Unreached...)
	switch len(list) {
	case 0:
		return "a promise is broken"
	case 1:
		return list[0]
	}
	return fmt.Sprintf("%s; and %d more", list[0], len(list)-1)
}
