package server

import (
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TestReportsThatWaitAreTakenInTogether: of the reports that wait for the book the last one
// has it take in all, and none is left to the clock.
func TestReportsThatWaitAreTakenInTogether(t *testing.T) {
	r := newRig(t)
	c, ctx := r.as(os.Geteuid()), within(t)
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	s, waited := r.server, 0
	for range 8 {
		var plans []plan.Host
		for _, h := range r.sub.Hosts {
			plans = append(plans, must[plan.Host](t)(c.Plan(ctx, h.Name, plan.Origin{})))
		}
		s.mu.Lock()
		var told sync.WaitGroup
		for _, p := range plans {
			told.Go(func() {
				if err := s.takeReport(report.Report{Host: p.Host, Revision: p.Revision, Tried: p.Revision}, netip.Addr{}); err != nil {
					t.Error(err)
				}
			})
		}
		for end := time.Now().Add(5 * time.Second); s.reporting.Load() < int32(len(plans)) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		waited = max(waited, int(s.reporting.Load()))
		s.mu.Unlock()
		told.Wait()
		s.mu.Lock()
		left := s.book.News()
		s.mu.Unlock()
		if left {
			t.Error("what hosts said is left to the clock")
		}
		if must[vnet.Lease](t)(c.Lease(ctx, id)).State == vnet.Running {
			break
		}
	}
	if state := must[vnet.Lease](t)(c.Lease(ctx, id)).State; state != vnet.Running || waited < 2 {
		t.Errorf("the lease is %s after eight rounds of reports, of which %d waited at once", state, waited)
	}
}
