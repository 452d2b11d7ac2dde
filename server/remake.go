package server

import (
	"context"
	"time"

	"sublet/lease"
)

// remadeAtOnce bounds for how many leases or hosts the book is kept from everybody: some
// 20 ms with ten leases on each host.
const remadeAtOnce = 128

// keepRemaking has the book make again, while it is used, the plans that it took over
// from the store, until ctx ends.
func (s *Server) keepRemaking(ctx context.Context) {
	for {
		began := time.Now()
		pause := tickMost
		if more, err := s.remake(); more && err == nil {
			pause = time.Since(began) // others have as much of the time
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// remake makes some, and publishes what differs after the last of them.
func (s *Server) remake() (more bool, err error) {
	err = s.changeBy(clock(), func(now time.Time, b *lease.Book) error {
		if b.Unmade() == 0 {
			return nil
		}
		if more, err = b.Remake(remadeAtOnce); more || err != nil {
			return err
		}
		return b.Tick(now)
	})
	return more, err
}
