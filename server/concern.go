package server

import (
	"strings"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// concerns tells leases what concerns their owners now: what they need no events to
// know.
type concerns struct {
	server   *Server
	now      time.Time
	promises map[ofLink]vnet.Outcome
	planned  []vnet.Maintenance
}

// concernsNow reads what proofs and the book know.
func (s *Server) concernsNow() (c concerns, err error) {
	c = concerns{server: s, promises: s.proving.promises()}
	err = s.look(func(now time.Time, b *lease.Book) error {
		c.now, c.planned = now, b.Maintenance(now)
		return nil
	})
	return c, err
}

// of lists what concerns a lease, what is worst first.
func (c concerns) of(l vnet.Lease) (list []vnet.Concern) {
	if l.State == vnet.Ended {
		return nil
	}
	add := func(kind, why string) { list = append(list, vnet.Concern{Kind: kind, Why: why}) }
	if l.State == vnet.Failed || l.State == vnet.Degraded {
		add(string(l.State), l.Message)
	}
	if broken := brokenOf(l, c.promises); len(broken) > 0 {
		add(string(kindPromise), "broken: "+strings.Join(broken, ", "))
	}
	if l.Move != nil {
		add("move", string(l.Move.Phase))
	}
	for _, m := range c.planned {
		if m.Concerns(l) {
			add(string(kindMaintenance), m.String())
		}
	}
	if n, due := c.server.noticeOf(c.now, l); due && !l.Window.Start.After(c.now) {
		add(string(kindEnd), n.why)
	}
	return list
}
