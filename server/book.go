package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/policy"
	"sublet/vnet"
)

// saveTimeout bounds a write to the store; the book waits for it.
const saveTimeout = 10 * time.Second

// roomer is a store that knows how full it is.
type roomer interface{ Room() error }

// change lets do change the book, and saves what became different before
// anybody can see it. What could not be saved has not happened, except that
// when a connection to the store broke the outcome shows later.
func (s *Server) change(do func(now time.Time, b *lease.Book) error) error {
	return s.changeBy(nil, do)
}

// changeBy is change with its cause, which events name; do may add to it.
func (s *Server) changeBy(by *cause, do func(now time.Time, b *lease.Book) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = by
	defer func() { s.cause = nil }()
	if s.broken != nil {
		return unavailable(s.broken)
	}
	if s.full != nil {
		return insufficient(s.full)
	}
	err := s.safely(do)
	if err != nil && !decided(err) {
		s.regain(err)
		return err
	}
	if err := s.save(); err != nil {
		s.regain(err)
		if errors.Is(err, lease.ErrFull) {
			return insufficient(err)
		}
		return unavailable(err)
	}
	return err
}

// safely turns a defect in the book into an error: the book is then read anew.
func (s *Server) safely(do func(time.Time, *lease.Book) error) (err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("defect in the book: %v\n%s", defect, debug.Stack())
		}
	}()
	return do(s.now(), s.book)
}

// look lets see read the book.
func (s *Server) look(see func(now time.Time, b *lease.Book) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return unavailable(s.broken)
	}
	return see(s.now(), s.book)
}

// view is the book as decisions read it while it goes on, and what is used of a
// caller's limits (nil: they have none), if see finds nothing against it.
func (s *Server) view(c *call, see func(now time.Time, b *lease.Book) error) (v *lease.View, held *policy.Terms, err error) {
	err = s.look(func(now time.Time, b *lease.Book) error {
		if err := see(now, b); err != nil {
			return err
		}
		if v = b.View(now, s.locked); c != nil && c.terms != nil {
			terms := c.terms.At(b)
			held = &terms
		}
		return nil
	})
	return v, held, err
}

// locked calls f while nobody changes the book.
func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// decided says that an error is an answer, not an accident: the book is sound.
func decided(err error) bool {
	var field *vnet.FieldError
	var rejection *vnet.Rejection
	var problem *api.Problem
	return errors.As(err, &field) || errors.As(err, &rejection) || errors.As(err, &problem) ||
		errors.Is(err, lease.ErrConflict) || errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrChanged)
}

// save writes what became different, and wakes who waits for it. A caller
// that went away does not stop it.
func (s *Server) save() error {
	charged := s.metering.charge(s.book)
	changes := s.book.Changes()
	if changes.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	if err := s.store.Save(ctx, changes); err != nil {
		s.metering.back(charged)
		return err
	}
	s.book.Saved()
	s.tell(s.now(), changes)
	s.awaken()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// regain makes the book again what the store says; until that succeeds
// nothing is answered from it. A server that was deposed stops.
func (s *Server) regain(cause error) {
	s.broken = cause
	if errors.Is(cause, lease.ErrNotLeader) {
		select {
		case s.lost <- cause:
		default:
		}
		return
	}
	s.log.Error("the book is read again from the store", slog.Any("because", cause))
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	if err := s.restore(ctx); err != nil {
		s.log.Error("read the book again", slog.Any("error", err))
	}
}

// reload is restore for callers without the lock.
func (s *Server) reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restore(ctx)
}

// restore replaces the book by the stored one, tells it what agents said last,
// and brings it to the present. The book stays broken when that fails.
func (s *Server) restore(ctx context.Context) error {
	if errors.Is(s.broken, lease.ErrNotLeader) {
		return s.broken
	}
	state, err := s.store.Load(ctx)
	if err != nil {
		return err
	}
	now := s.now()
	book, err := lease.Restore(now, state)
	if err != nil {
		return err
	}
	book.Begin(rand.Text(), s.term)
	book.RemakeLater(now)
	for _, a := range s.agents {
		if err := book.TakeReport(a.seen, a.report); err != nil {
			return err
		}
	}
	book.Prices, book.MostMoves, book.VerifyHandover = s.prices, s.moves, s.verify
	// This is the first tick: before it, plans would be made twice.
	if err := book.SetNodeDefaults(now, s.policy.Load().Nodes); err != nil {
		return err
	}
	s.book = book
	err = s.save()
	switch {
	case errors.Is(err, lease.ErrFull):
		return s.readOnly(now, state, err)
	case err != nil:
		return err
	}
	s.broken, s.full = nil, nil
	s.tellAll(now)
	return nil
}

// readOnly serves the book as it is stored until there is space for changes.
func (s *Server) readOnly(now time.Time, state lease.State, full error) error {
	book, err := lease.Restore(now, state)
	if err != nil {
		return err
	}
	if s.full == nil {
		s.log.Error("nothing can be changed until the store has space", slog.Any("because", full))
	}
	s.book, s.broken, s.full = book, nil, full
	return nil
}

// hasSpace tries a write that changes nothing.
func (s *Server) hasSpace(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Save(ctx, lease.Changes{Counters: s.book.Changes().Counters}) == nil
}

// room is an error when the store can take on nothing new.
func (s *Server) room() error {
	if store, ok := s.store.(roomer); ok {
		if err := store.Room(); err != nil {
			return insufficient(err)
		}
	}
	return nil
}

func insufficient(cause error) error {
	return &api.Problem{Status: http.StatusInsufficientStorage, Detail: cause.Error()}
}

func unavailable(cause error) error {
	return &api.Problem{Status: http.StatusServiceUnavailable,
		Detail: fmt.Sprintf("the server cannot keep its book at the moment: %v", cause), After: 1}
}

// awaken has who waits for something look again; s.mu is held.
func (s *Server) awaken() {
	close(s.changed)
	s.changed = make(chan struct{})
}
