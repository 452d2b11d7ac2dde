package lease

import (
	"fmt"
	"maps"
	"time"

	"sublet/vnet"
)

// Impair makes a link of a running lease do something else, by command, until a
// stage states another impairment of it. Nothing of its bookings changes.
func (b *Book) Impair(now time.Time, id vnet.LeaseID, link string, both [2]vnet.Impairment) error {
	e, err := b.linkOf(id, link, "impaired")
	if err != nil {
		return err
	}
	if err := vnet.CheckImpairment("impair", both); err != nil {
		return err
	}
	e.Impaired = with(e.Impaired, link, vnet.Impaired{Stage: e.Stage, Impair: both})
	return b.commanded(now, e)
}

// SetDown makes a link of a running lease fail, or mends it, by command, until a
// stage states the one or the other. Nothing of its bookings changes.
func (b *Book) SetDown(now time.Time, id vnet.LeaseID, link string, down bool) error {
	e, err := b.linkOf(id, link, "taken down or up")
	if err != nil {
		return err
	}
	e.LinkStates = with(e.LinkStates, link, vnet.LinkState{Stage: e.Stage, Down: down})
	return b.commanded(now, e)
}

// linkOf finds a lease of which a link is to be changed.
func (b *Book) linkOf(id vnet.LeaseID, link, how string) (*entry, error) {
	e, ok := b.entries[id]
	if !ok {
		return nil, fmt.Errorf("change a link of %s: %w", id, ErrUnknown)
	}
	if !e.State.Up() && e.State != vnet.Deploying {
		return nil, fmt.Errorf("%w: %s is %s: only links of a network that runs can be %s", ErrConflict, id, e.State, how)
	}
	if _, ok := e.Topology().Link(link); !ok {
		return nil, &vnet.FieldError{Path: "link", Problem: fmt.Sprintf("%s has no link %q now", id, link)}
	}
	return e, nil
}

// with is a copy of a map with one more, since readers have the former one.
func with[V any](m map[string]V, key string, v V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]V)
	}
	m[key] = v
	return m
}

// commanded has the hosts do what was asked for by command.
func (b *Book) commanded(now time.Time, e *entry) error {
	e.parts, b.stale = nil, true
	b.touch(e)
	return b.Tick(now)
}
