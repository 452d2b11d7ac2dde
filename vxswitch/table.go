package vxswitch

import (
	"fmt"
	"math/bits"
	"net/netip"
)

// table is lookup 1: which virtual switch a frame belongs to. Every field is
// one hash lookup, prefixes one for each length in use (33 and 129 at most);
// the work does not depend on the number of virtual switches.
type table struct {
	used    [numFields]bool
	values  map[valueKey]ID
	macs    map[macKey]ID
	nets    map[netKey]ID
	lengths [2][3]uint64 // prefix lengths in use, IPv4 and IPv6, as bits
}

type valueKey struct {
	by    Field
	port  int16
	value uint32
}

type macKey struct {
	port int16
	mac  MAC
}

type netKey struct {
	port   int16
	prefix netip.Prefix
}

func newTable() table {
	return table{values: map[valueKey]ID{}, macs: map[macKey]ID{}, nets: map[netKey]ID{}}
}

// find returns whose frame it is.
func (t *table) find(port int, h *Header) (ID, bool) {
	for by := ByVNI; by < numFields; by++ {
		if !t.used[by] {
			continue
		}
		if id, ok := t.match(by, int16(port), h); ok {
			return id, true
		}
		if by == ByPort {
			break
		}
	}
	return 0, false
}

// match looks at one field, first as a claim of this port, then of any.
func (t *table) match(by Field, port int16, h *Header) (id ID, ok bool) {
	switch by {
	case ByMAC:
		if id, ok = t.macs[macKey{port, h.Src}]; !ok {
			id, ok = t.macs[macKey{AnyPort, h.Src}]
		}
		return id, ok
	case ByPrefix:
		return t.longest(port, h.DstIP)
	}
	value, has := h.value(by)
	if !has {
		return 0, false
	}
	if id, ok = t.values[valueKey{by, port, value}]; !ok {
		id, ok = t.values[valueKey{by, AnyPort, value}]
	}
	return id, ok
}

// value is the value of a field that is a number, and whether h has it.
func (h *Header) value(by Field) (uint32, bool) {
	switch by {
	case ByVNI:
		return h.VNI, h.HasVNI
	case ByLabel:
		return h.Label, h.HasLabel
	case ByVLAN:
		return uint32(h.VLAN), h.VLAN != 0
	case ByDSCP:
		return uint32(h.DSCP), h.DstIP.IsValid()
	default:
		return 0, true // ByPort
	}
}

// longest is longest-prefix match by a hash lookup for each length in use.
func (t *table) longest(port int16, a netip.Addr) (ID, bool) {
	if !a.IsValid() {
		return 0, false
	}
	family := familyOf(a)
	for w := len(t.lengths[family]) - 1; w >= 0; w-- {
		for m := t.lengths[family][w]; m != 0; {
			top := 63 - bits.LeadingZeros64(m)
			m &^= 1 << top
			p, _ := a.Prefix(w<<6 + top)
			if id, ok := t.nets[netKey{port, p}]; ok {
				return id, true
			}
			if id, ok := t.nets[netKey{AnyPort, p}]; ok {
				return id, true
			}
		}
	}
	return 0, false
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// add files a claim; two switches cannot claim the same.
func (t *table) add(id ID, c Claim) error {
	if err := c.check(); err != nil {
		return err
	}
	t.used[c.By] = true
	port := int16(c.Port)
	switch c.By {
	case ByMAC:
		return claim(t.macs, macKey{port, c.MAC}, id)
	case ByPrefix:
		p := c.Prefix.Masked()
		t.lengths[familyOf(p.Addr())][p.Bits()>>6] |= 1 << (p.Bits() & 63)
		return claim(t.nets, netKey{port, p}, id)
	case ByPort:
		return claim(t.values, valueKey{ByPort, port, 0}, id)
	default:
		return claim(t.values, valueKey{c.By, port, c.Value}, id)
	}
}

func claim[K comparable](m map[K]ID, k K, id ID) error {
	if other, ok := m[k]; ok && other != id {
		return fmt.Errorf("another virtual switch claims the same frames (%v): claims must differ", k)
	}
	m[k] = id
	return nil
}

func (c Claim) check() error {
	switch {
	case c.By >= numFields:
		return fmt.Errorf("a claim by field %d: there are %d", c.By, numFields)
	case c.Port < AnyPort || c.Port >= MaxPorts || c.By == ByPort && c.Port == AnyPort:
		return fmt.Errorf("a claim on port %d: name one of the physical ports", c.Port)
	case c.By == ByPrefix && !c.Prefix.IsValid():
		return fmt.Errorf("a claim by prefix names none")
	case c.By == ByVLAN && (c.Value < 1 || c.Value > 4094):
		return fmt.Errorf("a claim on VLAN %d: from 1 to 4094 are possible", c.Value)
	}
	return nil
}

// checkClaims checks the claims of all together, under trial IDs.
func (d *draft) checkClaims() error {
	t := newTable()
	for i := range d.list {
		for _, c := range d.list[i].Claims {
			if err := t.add(ID(i), c); err != nil {
				return fmt.Errorf("virtual switch %q: %w", d.list[i].Name, err)
			}
		}
	}
	return nil
}

// table files all claims, which are checked, under the IDs their switches have.
func (d *draft) table() table {
	t := newTable()
	for i := range d.list {
		for _, c := range d.list[i].Claims {
			_ = t.add(d.s.names[d.list[i].Name], c)
		}
	}
	return t
}
