package conversation

import (
	"strconv"
	"strings"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Report reads "HOST [REVISION]" or "HOST KIND KEY=PROBLEM": what an agent
// says that went through a plan of a revision.
func Report(revision uint64, words []string) (report.Report, error) {
	told := report.Report{Host: vnet.HostID(words[0]), Revision: revision}
	if len(words) == 2 {
		var err error
		told.Revision, err = strconv.ParseUint(words[1], 10, 64)
		return told, err
	}
	if len(words) > 2 {
		key, problem, _ := strings.Cut(strings.Join(words[2:], " "), "=")
		told.Tried, told.Revision = told.Revision, 0
		told.Errors = report.Errors{itemError(plan.Kind(words[1]), key, problem)}
	}
	return told, nil
}

// itemError is one of an item. "not asked yet" of a reach is not known yet.
func itemError(kind plan.Kind, key, problem string) report.ItemError {
	e := report.ItemError{Kind: kind, Key: key, Lease: leaseOf(key), Text: problem}
	if kind != plan.KindReach {
		return e
	}
	e.Lease, e.Op = leaseOf(key+"#"), plan.Carry
	if problem == "not asked yet" {
		e.Op = plan.Await
	}
	return e
}

// leaseOf is the lease of a link, by its key in a conversation; none: an uplink's.
func leaseOf(key string) vnet.LeaseID {
	fabric, _, ok := strings.Cut(key, "#")
	tenant, network, _ := strings.Cut(fabric, ".")
	if !ok {
		return vnet.LeaseID{}
	}
	return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}
}
