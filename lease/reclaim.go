package lease

import (
	"cmp"
	"slices"

	"sublet/vnet"
)

// History bounds how many ended leases of each tenant are remembered.
const History = 32

// reclaim gives back the addresses and tunnel identifiers of ended leases that
// their hosts have removed.
func (b *Book) reclaim() {
	for _, e := range slices.Clone(b.draining) {
		if remaining := b.rollout.Remaining(e.ID(), e.allHosts()); len(remaining) > 0 {
			b.setState(e, vnet.Ended, "being removed from "+list(remaining))
			continue
		}
		b.vnis.free(e.VNIs)
		if e.Move != nil {
			b.vnis.free(e.Move.VNIs)
		}
		e.VNIs, e.Addresses, e.LinkAddresses, e.Move, e.Message = nil, nil, nil, nil, ""
		if e.Lost != nil {
			e.Message = "ended: " + brief(e.Lost.Reasons)
		}
		b.touch(e)
	}
}

// keepHistory keeps a lease that is over, and drops the oldest of its tenant's
// history beyond the bound. Those whose names were taken again are gone already. The
// one that has just ended stays, however old it is: who ended it is told so.
func (b *Book) keepHistory(e *entry) {
	past := append(b.history[e.Request.Tenant], e)
	past = slices.DeleteFunc(past, func(old *entry) bool { return b.entries[old.ID()] != old })
	slices.SortFunc(past, func(x, y *entry) int { return cmp.Compare(x.Serial, y.Serial) })
	for len(past) > History {
		oldest := 0
		if past[0] == e {
			oldest = 1
		}
		delete(b.entries, past[oldest].ID())
		b.touch(past[oldest])
		past = slices.Delete(past, oldest, oldest+1)
	}
	b.history[e.Request.Tenant] = past
}
