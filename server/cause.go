package server

import (
	"strings"

	"sublet/vnet"
)

// cause is who changes the book, and what they do to it. Events that come of the
// change name both.
type cause struct {
	by     string
	tenant vnet.TenantID    // who it is; "": the operator, a host or the clock
	did    string           // in words that every tenant may read
	also   []vnet.Happening // told once the change is saved
}

// causeOf is a caller.
func causeOf(c *call, did string) *cause {
	of := &cause{by: c.Name, did: did}
	if c.Operator {
		of.by = vnet.OperatorName
	} else if c.Host == "" {
		of.tenant = c.Tenant
	}
	return of
}

// clock is the cause of what was due.
func clock() *cause { return &cause{by: "clock"} }

// tells adds an event of a lease.
func (c *cause) tells(id vnet.LeaseID, state string) {
	if c != nil {
		c.also = append(c.also, vnet.Happening{Lease: id, Kind: "change", What: id.String(), State: state})
	}
}

// of says the cause on an event. Whoever is touched by what another tenant did is
// not told who it was.
func (c *cause) of(h vnet.Happening) vnet.Happening {
	switch {
	case c == nil:
	case c.tenant != "" && h.Lease.Tenant != "" && h.Lease.Tenant != c.tenant:
		h.By = "another tenant"
	default:
		h.By = c.by
		if h.Why == "" {
			h.Why = c.did
		}
	}
	return h
}

// changesText is a list of changes in a line.
func changesText(list []vnet.Change) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c.String()
	}
	return strings.Join(texts, "; ")
}

// impairText says what a link was told to do to its frames.
func impairText(link string, both [2]vnet.Impairment) string {
	if both == ([2]vnet.Impairment{}) {
		return "link " + link + " not impaired"
	}
	return "link " + link + " impaired"
}
