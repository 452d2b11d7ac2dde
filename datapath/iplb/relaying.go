package iplb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// Relaying says which headers a node takes off.
type Relaying struct {
	Addresses []netip.Addr   // of this node
	Senders   []netip.Prefix // that outer headers may come from
	Inside    []netip.Prefix // where what was inside may go
	// Shortcut sends relayed packets to their next hops past the kernel's stack,
	// by its routes and neighbours: faster, and past netfilter.
	Shortcut bool
}

// SetRelaying replaces it.
func (t *Table) SetRelaying(r Relaying) error {
	locals := make(map[uint32]uint32, len(r.Addresses))
	for _, a := range r.Addresses {
		if !a.Is4() {
			return fmt.Errorf("address %s is not IPv4", a)
		}
		b := a.As4()
		locals[binary.NativeEndian.Uint32(b[:])] = 1
	}
	senders, err := keysOf(r.Senders)
	if err != nil {
		return err
	}
	inside, err := keysOf(r.Inside)
	if err != nil {
		return err
	}
	return errors.Join(
		fill(t.c.Maps["locals"], locals),
		fill(t.c.Maps["senders"], senders),
		fill(t.c.Maps["inside"], inside),
		t.update(func(s *iplbState) {
			s.Locals, s.Walls, s.Shortcut = mark(locals), max(s.Walls+1, 1), 0
			if r.Shortcut {
				s.Shortcut = 1
			}
		}),
	)
}

func keysOf(prefixes []netip.Prefix) (map[iplbPrefix]uint32, error) {
	keys := make(map[iplbPrefix]uint32, len(prefixes))
	for _, p := range prefixes {
		if !p.IsValid() || !p.Addr().Is4() {
			return nil, fmt.Errorf("%s is not an IPv4 prefix", p)
		}
		keys[keyOf(p.Masked())] = 1
	}
	return keys, nil
}

// fill makes a map hold these keys and no others; what is there already is
// never missing in between.
func fill[K comparable](m *ebpf.Map, want map[K]uint32) error {
	var key K
	var value uint32
	var gone []K
	for it := m.Iterate(); it.Next(&key, &value); {
		if _, stays := want[key]; !stays {
			gone = append(gone, key)
		}
	}
	for k, v := range want {
		if err := m.Put(k, v); err != nil {
			return fmt.Errorf("fill %s: %w", m, err)
		}
	}
	for _, k := range gone {
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("clear %s: %w", m, err)
		}
	}
	return nil
}
