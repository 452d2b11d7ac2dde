package lease

import (
	"fmt"
	"maps"

	"sublet/vnet"
)

// Impair makes a link of a running lease do something else, by command, until a
// stage states another impairment of it. Nothing of its bookings changes.
func (b *Book) Impair(id vnet.LeaseID, link string, both [2]vnet.Impairment) error {
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("impair a link of %s: %w", id, ErrUnknown)
	}
	if !e.State.Up() && e.State != vnet.Deploying {
		return fmt.Errorf("%w: %s is %s: only links of a network that runs can be impaired", ErrConflict, id, e.State)
	}
	if _, ok := e.Topology().Link(link); !ok {
		return &vnet.FieldError{Path: "link", Problem: fmt.Sprintf("%s has no link %q now", id, link)}
	}
	if err := vnet.CheckImpairment("impair", both); err != nil {
		return err
	}
	impaired := maps.Clone(e.Impaired) // readers have the former one
	if impaired == nil {
		impaired = make(map[string]vnet.Impaired)
	}
	impaired[link] = vnet.Impaired{Stage: e.Stage, Impair: both}
	e.Impaired, e.parts, b.stale = impaired, nil, true
	b.touch(e)
	return nil
}
