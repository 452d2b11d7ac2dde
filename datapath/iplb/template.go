package iplb

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sublet/plan"
)

// outerTTL is more than any fabric has hops.
const outerTTL = 64

// protocols of the header that leads to a relay, by form.
var protocols = map[plan.Relaying]byte{plan.ByIPIP: 4, plan.ByGRE: 47, plan.ByUDP: 17}

// template is all headers of a path. Every one leads to its relay, and carries
// the next header, or the packet. Of those by UDP, only the first is sent,
// and the addresses of the others.
func (t *Table) template(relays []netip.Addr, form plan.Relaying) iplbPath {
	form = cmp.Or(form, plan.ByIPIP)
	p := iplbPath{Up: 1, Count: uint32(len(relays)), Form: iplbForm(slices.Index(forms(), string(form)))}
	if form == plan.BySRv6 {
		t.segments(&p, relays)
		return p
	}
	for i, relay := range relays {
		h := p.Headers[i][:]
		const dontFragment = 0x40
		h[0], h[6], h[8], h[9] = 0x45, dontFragment, outerTTL, protocols[form]
		copy(h[12:], t.Source.AsSlice())
		copy(h[16:], relay.AsSlice())
		p.Sums[i] = sumOf(h)
	}
	return p
}

// sumOf adds up the 16-bit words of a header as they lie in memory (RFC 1071).
func sumOf(h []byte) uint16 {
	sum := uint32(0)
	for ; len(h) > 1; h = h[2:] {
		sum += uint32(binary.NativeEndian.Uint16(h))
	}
	sum = sum&0xffff + sum>>16
	return uint16(sum + sum>>16)
}

// segments fills in the source, and the segments in the order of visiting.
func (t *Table) segments(p *iplbPath, relays []netip.Addr) {
	all := t.Source6.AsSlice()
	for _, r := range relays {
		all = append(all, r.AsSlice()...)
	}
	for i := range p.Headers {
		all = all[copy(p.Headers[i][:], all):]
	}
}

// segmentsOf reads them back.
func segmentsOf(p iplbPath) (relays []netip.Addr) {
	var all []byte
	for _, h := range p.Headers {
		all = append(all, h[:]...)
	}
	for i := range min(p.Count, MaxRelays) {
		relays = append(relays, netip.AddrFrom16([16]byte(all[16*(i+1):16*(i+2)])))
	}
	return relays
}

// relaysOf reads the relays back out of a template, as a key of Table.paths.
func relaysOf(p iplbPath) string { return fmt.Sprint(addressesOf(p)) }

func addressesOf(p iplbPath) (relays []netip.Addr) {
	if p.Form == iplbFormFORM_SRV6 {
		return segmentsOf(p)
	}
	for i := range min(p.Count, MaxRelays) {
		relays = append(relays, netip.AddrFrom4([4]byte(p.Headers[i][16:20])))
	}
	return relays
}

// sharesOf deals the slots to paths in proportion to their weights, at least one
// to each, in turns: neighbouring slots belong to different paths.
func sharesOf(paths []plan.RelayPath) (slots [1024]uint8) {
	total := uint64(0)
	for _, p := range paths {
		total += uint64(max(p.Weight, 1))
	}
	given := make([]uint64, len(paths))
	for slot := range slots {
		best, most := 0, int64(-1<<62)
		for i, p := range paths {
			// What it should have by now less what it has, in 1/total slots.
			due := int64(uint64(slot+1)*uint64(max(p.Weight, 1))) - int64(given[i]*total)
			if given[i] == 0 && len(slots)-slot <= len(paths)-i {
				due = 1 << 62 // its last chance
			}
			if due > most {
				best, most = i, due
			}
		}
		given[best]++
		slots[slot] = uint8(best)
	}
	return slots
}

// keyOf is a prefix as the kernel's trie has it.
func keyOf(p netip.Prefix) iplbPrefix {
	a := p.Addr().As4()
	return iplbPrefix{Bits: uint32(p.Bits()), Address: binary.NativeEndian.Uint32(a[:])}
}

func prefixOf(k iplbPrefix) netip.Prefix {
	return netip.PrefixFrom(addrOf(k.Address), int(k.Bits))
}

// addrOf is an address as it lies in memory.
func addrOf(word uint32) netip.Addr {
	var a [4]byte
	binary.NativeEndian.PutUint32(a[:], word)
	return netip.AddrFrom4(a)
}
