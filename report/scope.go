package report

import "sublet/vnet"

// Scope says whose samples are meant: one lease's, all of a tenant, or, if it
// is zero, everybody's and the hosts' own.
type Scope struct {
	Tenant  vnet.TenantID
	Network vnet.VNetID // only with Tenant
}

// Of is the scope of one lease.
func Of(id vnet.LeaseID) Scope { return Scope{id.Tenant, id.Network} }

// Holds says whether what is of a lease is meant; a zero lease is the host's own.
func (s Scope) Holds(id vnet.LeaseID) bool {
	return (s.Tenant == "" || s.Tenant == id.Tenant) && (s.Network == "" || s.Network == id.Network)
}

// Union is the smallest scope that holds all that the given ones hold.
func Union(first Scope, others ...Scope) Scope {
	for _, s := range others {
		if s.Tenant != first.Tenant {
			return Scope{}
		}
		if s.Network != first.Network {
			first.Network = ""
		}
	}
	return first
}

// Filter lists the samples that a scope holds.
func (s Scope) Filter(samples []Sample) []Sample {
	if s == (Scope{}) {
		return samples
	}
	held := make([]Sample, 0, len(samples))
	for _, one := range samples {
		if s.Holds(one.Lease) {
			held = append(held, one)
		}
	}
	return held
}
