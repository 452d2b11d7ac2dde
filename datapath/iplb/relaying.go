package iplb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sublet/datapath/bpf"

	"github.com/cilium/ebpf"
)

// Relaying says which headers a node takes off.
type Relaying struct {
	Addresses []netip.Addr   // of this node
	Senders   []netip.Prefix // that outer headers may come from
	Inside    []netip.Prefix // where what was inside may go
	Shortcut  Shortcut
}

// Shortcut is when a node sends packets from the fabric, its own and others', to
// their next hops past the kernel's stack, by its routes and neighbours: faster.
type Shortcut = iplbShortcut

// WhereFree is where only the routing would see them: no hook of netfilter, IPsec
// policy, reverse-path filter, bridge or other program of traffic control, and no
// choice among equal paths by more than addresses and ports. Always is past those,
// too.
const (
	WhereFree = iplbShortcutSHORTCUT_FREE
	Always    = iplbShortcutSHORTCUT_ALWAYS
	Never     = iplbShortcutSHORTCUT_NEVER
)

// Shortcuts names them.
var Shortcuts = bpf.EnumNames(loadIplb, "shortcut", "SHORTCUT_")

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
		fill(t.c.Maps[iplbMapAllowedInner], inside),
		t.update(func(s *iplbState) {
			s.Locals, s.AclGen, s.Shortcut = mark(locals), max(s.AclGen+1, 1), r.Shortcut
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
	for k, v := range want {
		if err := m.Put(k, v); err != nil {
			return fmt.Errorf("fill %s: %w", m, err)
		}
	}
	return clearBut[K, uint32](m, want)
}

// clearBut takes out of a map all keys but some.
func clearBut[K comparable, V any](m *ebpf.Map, staying map[K]uint32) error {
	var key K
	var value V
	var gone []K
	for it := m.Iterate(); it.Next(&key, &value); {
		if _, stays := staying[key]; !stays {
			gone = append(gone, key)
		}
	}
	for _, k := range gone {
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("clear %s: %w", m, err)
		}
	}
	return nil
}
