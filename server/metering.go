package server

import (
	"context"
	"maps"
	"sync"
	"time"

	"sublet/lease"
	"sublet/report"
	"sublet/vnet"
)

// metering sums up what kernels spend on the packets of leases, from what hosts count
// and what a packet was measured to cost them. It is added to a lease's account whenever
// that is saved, and now and then where it is much.
type metering struct {
	mu    sync.Mutex // nothing else is locked under it
	spent map[vnet.LeaseID]time.Duration
}

// Times after which accounts are written for what was spent alone. A server that is
// killed forgets what came later.
const (
	chargeEvery = time.Minute
	chargeFrom  = chargeEvery / 100 // of a core in that time; what is less waits
	chargeAll   = 10                // rounds after which all is written
)

func newMetering() *metering { return &metering{spent: make(map[vnet.LeaseID]time.Duration)} }

func (m *metering) add(id vnet.LeaseID, spent time.Duration) {
	if spent <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent[id] += spent
}

// of is what is not in a lease's account yet.
func (m *metering) of(id vnet.LeaseID) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent[id]
}

// above lists leases of which at least so much is not in their account.
func (m *metering) above(least time.Duration) (list []vnet.LeaseID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, spent := range m.spent {
		if spent >= least {
			list = append(list, id)
		}
	}
	return list
}

// take takes out what was spent by some leases.
func (m *metering) take(list []vnet.LeaseID) map[vnet.LeaseID]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := make(map[vnet.LeaseID]time.Duration)
	for _, id := range list {
		if spent, ok := m.spent[id]; ok {
			taken[id] = spent
			delete(m.spent, id)
		}
	}
	return taken
}

// back puts back what could not be saved.
func (m *metering) back(taken map[vnet.LeaseID]time.Duration) {
	for id, spent := range taken {
		m.add(id, spent)
	}
}

// charge adds what was spent to the accounts of leases that are saved anyhow.
func (m *metering) charge(b *lease.Book) map[vnet.LeaseID]time.Duration {
	taken := m.take(b.Touched())
	maps.DeleteFunc(taken, func(id vnet.LeaseID, spent time.Duration) bool { return !b.Charge(id, spent) })
	return taken
}

// keepCharging writes accounts, until ctx ends.
func (s *Server) keepCharging(ctx context.Context) {
	tick := time.NewTicker(chargeEvery)
	defer tick.Stop()
	for round := 1; ; round++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		least := time.Duration(chargeFrom)
		if round%chargeAll == 0 {
			least = 1
		}
		s.chargeAbove(least)
	}
}

// chargeAbove writes accounts to which at least so much is to be added.
func (s *Server) chargeAbove(least time.Duration) {
	list := s.metering.above(least)
	if len(list) == 0 {
		return
	}
	var taken map[vnet.LeaseID]time.Duration
	err := s.change(func(_ time.Time, b *lease.Book) error {
		taken = s.metering.take(list)
		for id, spent := range taken {
			b.Charge(id, spent)
		}
		return nil
	})
	if err != nil { // the next round
		s.metering.back(taken)
	}
}

// charged is what a host spent on what was counted of a link since it was read last, or
// since it was built.
func (h *hostCounts) charged(i int, m vnet.Measurement, was, is report.LinkSums, known bool) time.Duration {
	switch {
	case !known && !h.again:
		return 0 // nobody knows what of it is charged already
	case !known, is[0] < was[0], is[1] < was[1], is[2] < was[2]:
		was = report.LinkSums{}
	}
	return kernelTime(m, h.links[i], was, is)
}

// kernelTime is what a host spent on what was counted of a link, or of a chain: who
// passes a program crosses a link into it and one out of it.
func kernelTime(m vnet.Measurement, l report.LinkWay, was, is report.LinkSums) time.Duration {
	if l.Part == report.Through {
		return m.KernelTime(true, is[1]-was[1]+is[2]-was[2], 0)
	}
	inside := l.Enters && l.Leaves || l.Part != ""
	return m.KernelTime(inside, is[0]-was[0], is[1]-was[1])
}
