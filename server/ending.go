package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// DefaultNotices is how long before its end a lease is said to end.
var DefaultNotices = []time.Duration{24 * time.Hour, time.Hour}

// endingEvery is how late a notice may be.
const endingEvery = 5 * time.Second

// kindEnd is of notices before the end of a lease.
const kindEnd plan.Kind = "end"

// notice is what is told once of a lease: another end is told anew.
type notice struct {
	lease vnet.LeaseID
	state string
	why   string
}

// keepTelling tells of leases that end soon, until ctx ends. What was told before
// the server started is in the journal.
func (s *Server) keepTelling(ctx context.Context) {
	if len(s.notices) == 0 {
		return
	}
	told := s.toldBefore()
	tick := time.NewTicker(endingEvery)
	defer tick.Stop()
	for {
		told = s.tellEnds(s.now(), told)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// toldBefore are the notices that the journal has.
func (s *Server) toldBefore() map[notice]bool {
	told, since := make(map[notice]bool), s.now().Add(-slices.Max(s.notices)-24*time.Hour)
	for _, of := range s.journal.eventDirs("") {
		err := each(s.journal, of, since, func(h vnet.Happening) {
			if h.Kind == string(kindEnd) {
				told[notice{h.Lease, h.State, h.Why}] = true
			}
		})
		if err != nil {
			s.log.Warn("some notices may come twice", "err", err)
		}
	}
	return told
}

// tellEnds tells of leases that end soon what was not told, and returns what is
// told now.
func (s *Server) tellEnds(now time.Time, told map[notice]bool) map[notice]bool {
	next := make(map[notice]bool)
	err := s.look(func(_ time.Time, b *lease.Book) error {
		for _, l := range b.EndingBefore(now.Add(slices.Max(s.notices))) {
			n, due := s.noticeOf(now, l)
			if !due {
				continue
			}
			if next[n] = true; told[n] {
				continue
			}
			s.happens(vnet.Happening{Time: now, Lease: n.lease, Kind: string(kindEnd), What: n.lease.String(), State: n.state, By: clock().by, Why: n.why})
			s.feeds.state(report.Sample{Kind: kindEnd, Key: n.lease.String(), Lease: n.lease, At: now, State: report.State(n.state), Why: n.why})
		}
		return nil
	})
	if err != nil {
		return told // of a book that cannot be read
	}
	return next
}

// noticeOf is what is to be told of a lease now: the last notice that is due. One
// that lasts no longer than a notice is early needs none.
func (s *Server) noticeOf(now time.Time, l vnet.Lease) (n notice, due bool) {
	left, early := l.Window.End.Sub(now), time.Duration(0)
	for _, d := range s.notices {
		if left <= d && d < l.Window.End.Sub(l.Window.Start) && (early == 0 || d < early) {
			early = d
		}
	}
	if early == 0 || left <= 0 {
		return n, false
	}
	id := l.ID()
	why := fmt.Sprintf("it ends at %s: sublet renew %s lengthens it", l.Window.End.UTC().Format(time.RFC3339), id.Network)
	return notice{id, "within " + vnet.FormatDuration(early), why}, true
}
