package lease

import (
	"fmt"
	"slices"
	"time"

	"sublet/lease/policy"
	"sublet/vnet"
)

// Reasons for which leases end.
const (
	whyReleased = "released"
	whyOver     = "its window is over"
)

// lifeOf is the life of a lease that was stored before leases had one.
func lifeOf(l vnet.Lease) vnet.Life {
	life := vnet.Life{Admitted: l.Window.Start}
	if l.State == vnet.Ended {
		life.Ended, life.Why = l.Window.End, "not noted"
	}
	return life
}

// countUses adds up what a request takes, once.
func (e *entry) countUses() {
	if e.uses == nil {
		e.uses, e.links = policy.Uses(e.Held()), len(e.Request.Union().Links)
	}
}

// record is what the ledger says of an entry.
func (e *entry) record() vnet.Record {
	e.countUses()
	r := vnet.Record{
		Serial: e.Serial, Tenant: e.Request.Tenant, Network: e.Request.Network, Owner: e.Owner, State: e.State,
		Admitted: e.Life.Admitted, Start: e.Window.Start, End: e.Window.End, Ran: e.Life.Ran, Ended: e.Life.Ended, Why: e.Life.Why,
	}
	r.Links = e.links
	for _, u := range e.uses {
		r.Nodes = max(r.Nodes, int(u.Amounts[0]))
		r.CPU = max(r.CPU, vnet.CPU(u.Amounts[1]))
		r.Memory = max(r.Memory, vnet.Bytes(u.Amounts[2]))
		r.Bandwidth = max(r.Bandwidth, vnet.Rate(u.Amounts[3]))
	}
	if a := e.Account; a != nil {
		r.Used = a.Used
		if a.Quote != nil {
			r.Quoted = a.Quote.Total
		}
	}
	if v := e.Verdict; v != nil {
		r.Checked, r.Verdict = v.Time, string(v.Says())
	}
	return r
}

// records are those of leases that changed and that the ledger does not have
// like this, by Serial.
func (b *Book) records() (list []vnet.Record) {
	for e := range b.changed.entries {
		r := e.record()
		if r != e.recorded {
			list = append(list, r)
			b.changed.entries[e] = r
		}
	}
	slices.SortFunc(list, func(x, y vnet.Record) int { return int(int64(x.Serial - y.Serial)) })
	return list
}

// ended notes when and why a lease ended.
func (e *entry) ended(at time.Time, why string) {
	if e.Lost != nil {
		why = fmt.Sprintf("%s; it was lost: %s", why, brief(e.Lost.Reasons))
	}
	e.Life.Ended, e.Life.Why = at.Round(0).UTC(), why
}
