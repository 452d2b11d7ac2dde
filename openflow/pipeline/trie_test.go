package pipeline

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"sublet/openflow/of13"
)

// A trie says which lengths of prefixes a packet has as all prefixes one by one say it,
// for all packets with the bits that it has looked at; and it is empty when they are gone.
func TestTriesTellLengths(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		width := []int{32, 128}[seed%2]
		some := func() of13.U128 {
			v := of13.U128{Hi: r.Uint64() & 0xe000_0003_0000_0000}
			if width == 128 {
				v.Lo = r.Uint64() & 0x8000_0000_0000_0003
			}
			return v
		}
		type prefix struct {
			value  of13.U128
			length int
		}
		var all []prefix
		var at trie
		has := func(v of13.U128, length int) bool {
			for _, p := range all {
				if p.length == length && v.And(leading(length)) == p.value {
					return true
				}
			}
			return false
		}
		for range 300 {
			if len(all) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(all))
				at.count(all[i].value, all[i].length, -1)
				all = append(all[:i], all[i+1:]...)
			} else {
				p := prefix{length: 1 + r.IntN(width)}
				p.value = some().And(leading(p.length))
				at.count(p.value, p.length, 1)
				all = append(all, p)
			}
			v, other := some(), some()
			w := at.walk(v, width)
			same := leading(w.checked)
			other = of13.U128{Hi: v.Hi&same.Hi | other.Hi&^same.Hi, Lo: v.Lo&same.Lo | other.Lo&^same.Lo}
			for length := 1; length <= width; length++ {
				if w.has(length) != has(v, length) || w.has(length) != has(other, length) {
					t.Fatalf("seed %d: %x and %x, of which %d bits were looked at: length %d of %v", seed, v, other, w.checked, length, all)
				}
			}
		}
		for _, p := range all {
			at.count(p.value, p.length, -1)
		}
		if at.root != nil {
			t.Errorf("seed %d: %+v is left", seed, *at.root)
		}
	}
}

// many are entries of so many masks: prefixes of destinations, with and without a port.
func many(number, masks int) (c *classifier) {
	c = &classifier{}
	for i := range number {
		at := i % masks
		e := &Entry{Priority: 5, age: uint64(i)}
		fields := []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.WithMask(of13.IPv4Dst, of13.U128{Lo: 0x0a000000 | uint64(i)*257&0xffffff}, of13.U128{Lo: 0xffffffff << (at % 20) & 0xffffffff})}
		if at >= 20 {
			fields = append(fields, of13.Exact(of13.IPProto, 17), of13.WithMask(of13.UDPDst, of13.U128{Lo: uint64(i)}, of13.U128{Lo: 0xffff << (at / 20) & 0xffff}))
		}
		e.Match = fields
		e.value, e.mask = keysOf(fields)
		if c.same(&e.value, &e.mask, 5) == nil {
			c.add(e)
		}
	}
	return c
}

// What no entry is for is told by few bits of its address, however many entries there are.
func TestFewBitsTellOfNoEntry(t *testing.T) {
	c := many(20_000, 64)
	var k, seen Key
	k.put(of13.EthType, 0x0800)
	k.put(of13.IPProto, 17)
	k.put(of13.IPv4Dst, 0xc0a80001)
	if e := c.lookup(&k, &seen); e != nil {
		t.Fatalf("%+v", e)
	}
	if n := bits.OnesCount64(seen.Get(of13.IPv4Dst)); n > 8 {
		t.Errorf("%d bits of the address were looked at", n)
	}
	if seen.Get(of13.UDPDst) != 0 || seen.Get(of13.IPProto) != 0 {
		t.Errorf("%x was looked at", seen)
	}
}

// Lookup among many entries of many masks, of packets that some are for and of others.
func BenchmarkManyMasks(b *testing.B) {
	for _, number := range []int{1000, 100_000} {
		for _, masks := range []int{1, 16, 64} {
			for _, net := range []uint64{0x0a000000, 0xc0a80000} {
				c := many(number, masks)
				b.Run(fmt.Sprintf("%d entries, %d masks, %d tables, net %x", number, masks, len(c.tuples), net), func(b *testing.B) {
					var k Key
					k.put(of13.EthType, 0x0800)
					k.put(of13.IPProto, 17)
					for i := 0; b.Loop(); i++ {
						var seen Key
						k.set(of13.IPv4Dst, net|uint64(i%number)*257&0xffffff)
						k.set(of13.UDPDst, uint64(i%number)&0xffff)
						c.lookup(&k, &seen)
					}
				})
			}
		}
	}
}
