package server

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"sublet/report/metrics"
	"sublet/vnet"
)

// refusedBy are the reasons by which refusals are counted.
var refusedBy = []string{string(vnet.BoundQuota), string(vnet.BoundHost), string(vnet.BoundLink), refusedUndecided, refusedOther}

const (
	refusedUndecided = "undecided" // in the time that an answer may take
	refusedOther     = "other"
)

// refused counts an answer to a request for a network, if it is a refusal.
func (c *counters) refused(err error) {
	var rejection *vnet.Rejection
	if !errors.As(err, &rejection) {
		return
	}
	reason := string(rejection.Bound)
	switch {
	case rejection.Undecided:
		reason = refusedUndecided
	case !slices.Contains(refusedBy, reason):
		reason = refusedOther
	}
	c.refusals.WithLabelValues(reason).Inc()
}

// queues are gauges of what waits in the server.
func (s *Server) queues() {
	s.counters.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sublet_decisions_waiting", Help: "Requests that are being decided, or wait for it."}, s.deciders.waiting),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sublet_watchers", Help: "Watchers of events and samples."}, s.feeds.watching),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sublet_requests_active", Help: "Requests and sessions of tenants that are being served."}, s.limiter.active),
	)
}

func (d *deciders) waiting() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := 0
	for _, q := range d.queues {
		sum += q.asked
	}
	return float64(sum)
}

func (f *feeds) watching() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.total)
}

func (l *limiter) active() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for _, u := range l.tenants {
		sum += u.active
	}
	return float64(sum)
}

// tenantSum is what a tenant's leases have in all.
type tenantSum struct {
	leases, nodes, links int
	min, allocated       vnet.Rate
}

// addTenants adds what the leases of each tenant that are not over have in all.
func addTenants(list *metrics.List, leases []vnet.Lease) {
	sums := make(map[vnet.TenantID]*tenantSum)
	for _, l := range leases {
		if l.State == vnet.Ended {
			continue
		}
		sum := sums[l.Request.Tenant]
		if sum == nil {
			sum = new(tenantSum)
			sums[l.Request.Tenant] = sum
		}
		sum.add(l)
	}
	for tenant, sum := range sums {
		of := map[string]string{"tenant": string(tenant)}
		list.Gauge("tenant_leases", "Leases of a tenant that are not over.", float64(sum.leases), of)
		list.Gauge("tenant_nodes", "Nodes, routers and switches of these.", float64(sum.nodes), of)
		list.Gauge("tenant_links", "Links of these.", float64(sum.links), of)
		list.Gauge("tenant_min_bps", "Guaranteed minima of these, both directions of every link.", float64(sum.min), of)
		list.Gauge("tenant_allocated_bps", "What links of these may carry now, both directions.", float64(sum.allocated), of)
	}
}

func (t *tenantSum) add(l vnet.Lease) {
	topology := l.Topology()
	t.leases++
	t.nodes += len(topology.All())
	t.links += len(topology.Links)
	for _, link := range topology.Links {
		for _, d := range vnet.Directions {
			t.min += link.Bandwidth[d].Min
			t.allocated += l.Rates[link.Name][d]
		}
	}
}
