package pipeline

import (
	"math/bits"

	"sublet/openflow/of13"
)

// A trie has the prefixes of a field that entries of a table match, so that it is seen
// from a packet's first bits which lengths none of them has there (Open vSwitch,
// lib/classifier.h, "Prefix Tracking"). Paths without a fork are one node.
type trie struct{ root *trieNode }

// trieNode is a prefix.
type trieNode struct {
	value   of13.U128 // from the highest bit
	length  int
	entries int // that have it
	child   [2]*trieNode
}

// trieField is a field that has a trie.
type trieField struct {
	place
	width int
	grain int // bits that are seen are made a multiple of it, so that there are few masks
}

// trieFields: fields of other protocols that share bits with these are the same to a
// trie.
var trieFields = [...]trieField{
	{places[of13.IPv4Dst], 32, 8}, {places[of13.IPv4Src], 32, 8}, {places[of13.IPv6Dst], 128, 16}, {places[of13.IPv6Src], 128, 16},
}

// of gives a field's bits, from the highest bit.
func (f *trieField) of(k *Key) of13.U128 {
	if f.width > 64 {
		return of13.U128{Hi: k[f.word-1], Lo: k[f.word]}
	}
	return of13.U128{Hi: k[f.word] >> f.shift << (64 - f.width)}
}

// first adds a field's first bits to a mask.
func (f *trieField) first(n int, to *Key) {
	n = min((n+f.grain-1)/f.grain*f.grain, f.width)
	m := leading(n)
	if f.width > 64 {
		to[f.word-1] |= m.Hi
		to[f.word] |= m.Lo
		return
	}
	to[f.word] |= m.Hi >> (64 - f.width) << f.shift
}

// prefix is the length of the prefix that a mask has of a field; 0: none, or not only one.
func (f *trieField) prefix(mask *Key) int {
	m := f.of(mask)
	n := bits.LeadingZeros64(^m.Hi)
	if n == 64 {
		n += bits.LeadingZeros64(^m.Lo)
	}
	if m != leading(n) {
		return 0
	}
	return n
}

// leading is a mask of the first bits.
func leading(n int) of13.U128 {
	if n <= 64 {
		return of13.U128{Hi: ^(^uint64(0) >> n)}
	}
	return of13.U128{Hi: ^uint64(0), Lo: ^(^uint64(0) >> (n - 64))}
}

// agreed is in how many of their first bits two values agree.
func agreed(a, b of13.U128) int {
	if n := bits.LeadingZeros64(a.Hi ^ b.Hi); n < 64 {
		return n
	}
	return 64 + bits.LeadingZeros64(a.Lo^b.Lo)
}

func bitOf(v of13.U128, n int) int {
	if n < 64 {
		return int(v.Hi >> (63 - n) & 1)
	}
	return int(v.Lo >> (127 - n) & 1)
}

// count notes that so many more entries have a prefix.
func (t *trie) count(value of13.U128, length, by int) {
	at := &t.root
	var path []**trieNode
	for {
		n := *at
		if n == nil {
			*at = &trieNode{value: value, length: length, entries: by}
			return
		}
		same := min(agreed(value, n.value), length, n.length)
		if same < n.length { // they part within the node's way
			fork := &trieNode{value: value.And(leading(same)), length: same}
			fork.child[bitOf(n.value, same)] = n
			*at, n = fork, fork
		}
		path = append(path, at)
		if n.length == length {
			n.entries += by
			break
		}
		at = &n.child[bitOf(value, n.length)]
	}
	for i := len(path) - 1; i >= 0; i-- {
		if !prune(path[i]) {
			return
		}
	}
}

// prune takes a node away that no entry needs and where no ways part.
func prune(at **trieNode) bool {
	n := *at
	switch {
	case n.entries > 0 || n.child[0] != nil && n.child[1] != nil:
		return false
	case n.child[0] != nil:
		*at = n.child[0]
	default:
		*at = n.child[1]
	}
	return true
}

// walk is what a trie says of a packet.
type walk struct {
	done    bool
	checked int       // first bits of the field, which say all of this
	lengths [3]uint64 // of prefixes that it has: a bit each
}

func (w *walk) has(length int) bool { return w.lengths[length>>6]>>(length&63)&1 != 0 }

func (t *trie) walk(value of13.U128, width int) (w walk) {
	w.done = true
	for n := t.root; n != nil; n = n.child[bitOf(value, n.length)] {
		if same := agreed(value, n.value); same < n.length {
			w.checked = same + 1
			return w
		}
		if n.entries > 0 {
			w.lengths[n.length>>6] |= 1 << (n.length & 63)
		}
		if w.checked = n.length; n.length == width || n.child[0] == nil && n.child[1] == nil {
			return w
		}
		w.checked++
	}
	return w
}

// prefixOf is that an entry of a tuple has a prefix of a field.
type prefixOf struct{ field, length int }

func prefixesOf(mask *Key) (list []prefixOf) {
	for i := range trieFields {
		if n := trieFields[i].prefix(mask); n > 0 {
			list = append(list, prefixOf{i, n})
		}
	}
	return list
}

// track notes an entry's prefixes.
func (c *classifier) track(t *tuple, e *Entry, by int) {
	for _, p := range t.prefixes {
		c.tries[p.field].count(trieFields[p.field].of(&e.value), p.length, by)
	}
}

// walks are those of one packet.
type walks [len(trieFields)]walk

// rulesOut says whether a trie that was walked tells that no entry of a tuple has a
// packet's prefix, and adds the bits that tell it to seen.
func (w *walks) rulesOut(t *tuple, seen *Key) bool {
	for _, p := range t.prefixes {
		if at := &w[p.field]; at.done && !at.has(p.length) {
			trieFields[p.field].first(min(at.checked, p.length), seen)
			return true
		}
	}
	return false
}

// narrow has fewer bits looked at, if a search without a result looked at a prefix
// of which a trie tells by fewer that no entry has it.
func (c *classifier) narrow(t *tuple, k *Key, w *walks, looked *Key) {
	for _, p := range t.prefixes {
		f, at := &trieFields[p.field], &w[p.field]
		if f.prefix(looked) < p.length {
			continue
		}
		if !at.done {
			*at = c.tries[p.field].walk(f.of(k), f.width)
		}
		if !at.has(p.length) {
			*looked = Key{}
			f.first(min(at.checked, p.length), looked)
			return
		}
	}
}

func (k *Key) or(m *Key) {
	for w := range k {
		k[w] |= m[w]
	}
}
