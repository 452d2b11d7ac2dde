package lease

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

func newHanded(now time.Time, name vnet.HostID) *handed {
	empty := plan.Host{Host: name}
	return &handed{plan: empty, target: empty, parts: make(map[vnet.LeaseID]part), seen: now}
}

// publish replaces the plan and notes which leases' parts of it changed.
func (h *handed) publish(p plan.Host, shrinks bool) {
	has := leasesOf(p)
	for id := range differing(h.plan, p) {
		h.parts[id] = part{since: p.Revision, gone: !has[id]}
	}
	h.plan = p
	if shrinks {
		h.shrunk = p.Revision
	}
}

// compare brings grows and lacks up to date.
func (h *handed) compare() {
	h.lacks = differing(h.plan, h.target)
	h.grows = len(h.lacks) > 0
}

// settle forgets leases that the host has removed without an error.
func (h *handed) settle() {
	maps.DeleteFunc(h.parts, func(id vnet.LeaseID, p part) bool {
		return p.gone && h.done >= p.since && len(h.errors[id]) == 0
	})
}

// differing are the leases whose items differ between two plans; the zero
// lease stands for the host's own.
func differing(a, b plan.Host) map[vnet.LeaseID]bool {
	type key struct {
		kind plan.Kind
		key  string
	}
	items := make(map[key]plan.Item)
	for _, item := range a.Items() {
		items[key{item.Kind(), item.Key()}] = item
	}
	differ := make(map[vnet.LeaseID]bool)
	for _, item := range b.Items() {
		k := key{item.Kind(), item.Key()}
		if was, ok := items[k]; !ok || !plan.Equal(was, item) {
			differ[leaseOf(item)] = true
		}
		delete(items, k)
	}
	for _, item := range items {
		differ[leaseOf(item)] = true
	}
	return differ
}

func same(a, b plan.Host) bool { return len(differing(a, b)) == 0 }

func leasesOf(p plan.Host) map[vnet.LeaseID]bool {
	has := make(map[vnet.LeaseID]bool)
	for _, item := range p.Items() {
		has[leaseOf(item)] = true
	}
	return has
}

func leaseOf(item plan.Item) vnet.LeaseID {
	if item.Kind() == plan.KindUplink {
		return vnet.LeaseID{}
	}
	return leaseOfKey(item.Key())
}

// leaseOfKey reads the lease out of an item's key, which begins with
// tenant.network and goes on, if at all, with '.' or '#': see plan.Namespace,
// plan.Fabric. Anything else is the host's own.
func leaseOfKey(key string) vnet.LeaseID {
	tenant, rest, ok := strings.Cut(key, ".")
	network := rest
	if end := strings.IndexAny(rest, ".#"); end >= 0 {
		network = rest[:end]
	}
	if !ok || vnet.CheckName(tenant) != nil || vnet.CheckName(network) != nil {
		return vnet.LeaseID{}
	}
	return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}
}

// errorsByLease sorts a report's errors, whose keys are an item's kind, a
// space and its key.
func errorsByLease(report plan.Report) map[vnet.LeaseID][]string {
	byLease := make(map[vnet.LeaseID][]string)
	for _, item := range slices.Sorted(maps.Keys(report.Errors)) {
		kind, key, ok := strings.Cut(item, " ")
		if !ok {
			kind, key = "", item
		}
		id := vnet.LeaseID{}
		if kind != string(plan.KindUplink) {
			id = leaseOfKey(key)
		}
		byLease[id] = append(byLease[id], item+": "+report.Errors[item])
	}
	return byLease
}
