package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sublet/lease"
)

// Resolution of the clock: Tick is late by at most tickMost even when the
// wall clock was set forward, and not called more often than tickLeast.
const (
	tickMost  = time.Second
	tickLeast = 5 * time.Millisecond
)

// keepTime ticks the book when it has something to do.
func (s *Server) keepTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
			s.tick(ctx)
		}
		timer.Reset(s.pause())
	}
}

// pause is how long nothing is due.
func (s *Server) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	due := s.book.Next(now)
	if due.IsZero() || s.broken != nil || s.full != nil {
		return tickMost
	}
	return min(max(due.Sub(now), tickLeast), tickMost)
}

// tick does what is due, and tries to get the book back if it is broken. It
// does not ask Next again: what was due once, such as presuming a host dead,
// Next does not name afterwards.
func (s *Server) tick(ctx context.Context) {
	s.mu.Lock()
	broken, full := s.broken != nil, s.full != nil
	s.mu.Unlock()
	var err error
	switch {
	case full && !s.hasSpace(ctx):
	case broken || full:
		err = s.reload(ctx)
	default:
		err = s.changeBy(clock(), func(now time.Time, b *lease.Book) error { return b.Tick(now) })
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Error("keep the book's time", slog.Any("error", err))
	}
}
