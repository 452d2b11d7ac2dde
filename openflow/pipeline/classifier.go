package pipeline

import (
	"cmp"
	"container/heap"
	"iter"
	"maps"
	"slices"
)

// classifier finds entries by tuple space search: entries with one mask share a
// hash table. Tables are searched by their highest priority, so a search ends at
// the first one that cannot have a better entry. A table is searched in stages,
// so that no more of a packet is looked at than rules it out (Open vSwitch,
// lib/classifier.h, "Staged Lookup"). Where an address is what rules it out, tries say
// by which of its first bits; once walked they rule out further tables unsearched.
type classifier struct {
	tuples []*tuple // by priority, descending
	byMask map[Key]*tuple
	tries  [len(trieFields)]trie
	size   int
	oldest *Entry // of all, in the order in which they came
	newest *Entry
}

// stages are the words of keys in the order in which they are looked at: where a
// packet comes from, Ethernet, what is above it, ports.
var stages = [][]uint8{{0, 1, 2}, {3, 4}, {6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {5}}

// tuple has the entries of one mask.
type tuple struct {
	mask       Key
	prefixes   []prefixOf
	stages     []stage
	entries    map[uint64]*Entry // of a hash, the one that decides; others are behind it
	of         map[uint16]int    // number of entries of a priority
	priorities priorities
	highest    uint16
}

// stage is words of a mask that are not zero, and how many entries have a hash
// of these and of the words of the stages before; nil in the last stage, since
// the entries are by the hash of all.
type stage struct {
	words  []uint8
	hashes map[uint64]int
}

func newTuple(mask *Key) *tuple {
	t := &tuple{mask: *mask, prefixes: prefixesOf(mask), entries: make(map[uint64]*Entry), of: make(map[uint16]int)}
	for _, words := range stages {
		s := stage{hashes: make(map[uint64]int)}
		for _, w := range words {
			if mask[w] != 0 {
				s.words = append(s.words, w)
			}
		}
		if s.words != nil {
			t.stages = append(t.stages, s)
		}
	}
	if n := len(t.stages); n > 0 {
		t.stages[n-1].hashes = nil
	}
	return t
}

const hashStart = uint64(0x9e3779b97f4a7c15)

// hash adds the words of a stage to the hash of those before.
func (t *tuple) hash(h uint64, s *stage, k *Key) uint64 {
	for _, w := range s.words {
		h = mix(h ^ k[w]&t.mask[w])
	}
	return h
}

// note counts an entry in each stage and gives its hash.
func (t *tuple) note(k *Key, by int) uint64 {
	h := hashStart
	for i := range t.stages {
		s := &t.stages[i]
		h = t.hash(h, s, k)
		if s.hashes == nil {
			break
		}
		if s.hashes[h] += by; s.hashes[h] == 0 {
			delete(s.hashes, h)
		}
	}
	return h
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// matches says whether a key has the values of an entry of this tuple.
func (t *tuple) matches(k *Key, e *Entry) bool {
	return k.under(&e.value, &t.mask)
}

// find gives the entry with the highest priority, of those the oldest. The bits
// that were looked at are added to seen.
func (t *tuple) find(k, seen *Key) *Entry {
	h := hashStart
	for i := range t.stages {
		s := &t.stages[i]
		for _, w := range s.words {
			seen[w] |= t.mask[w]
		}
		if h = t.hash(h, s, k); s.hashes != nil && s.hashes[h] == 0 {
			return nil
		}
	}
	for e := t.entries[h]; e != nil; e = e.behind {
		if t.matches(k, e) {
			return e
		}
	}
	return nil
}

// before says whether an entry decides rather than another, which may be missing.
func (e *Entry) before(o *Entry) bool {
	return o == nil || e.Priority > o.Priority || e.Priority == o.Priority && e.age < o.age
}

// lookup finds the entry that decides, nil for none. The bits of the key that
// were looked at are added to seen: packets that agree in these meet the same.
func (c *classifier) lookup(k, seen *Key) (best *Entry) {
	var w walks
	for _, t := range c.tuples {
		if best != nil && t.highest < best.Priority {
			break
		}
		if w.rulesOut(t, seen) {
			continue
		}
		e := c.search(t, k, &w, seen)
		if e != nil && e.before(best) {
			best = e
		}
	}
	return best
}

// search is find, with as few bits looked at as tries can tell.
func (c *classifier) search(t *tuple, k *Key, w *walks, seen *Key) *Entry {
	if len(t.prefixes) == 0 {
		return t.find(k, seen)
	}
	var looked Key
	e := t.find(k, &looked)
	if e == nil {
		c.narrow(t, k, w, &looked)
	}
	seen.or(&looked)
	return e
}

// same finds the entry with a match and priority.
func (c *classifier) same(value, mask *Key, priority uint16) *Entry {
	t := c.byMask[*mask]
	if t == nil {
		return nil
	}
	for e := t.bucket(value); e != nil; e = e.behind {
		if e.value == *value && e.Priority == priority {
			return e
		}
	}
	return nil
}

// bucket is the entries of the hash of a key.
func (t *tuple) bucket(k *Key) *Entry {
	h := hashStart
	for i := range t.stages {
		h = t.hash(h, &t.stages[i], k)
	}
	return t.entries[h]
}

func (c *classifier) add(e *Entry) {
	t := c.byMask[e.mask]
	if t == nil {
		t = newTuple(&e.mask)
		if c.byMask == nil {
			c.byMask = make(map[Key]*tuple)
		}
		c.byMask[e.mask] = t
		c.tuples = append(c.tuples, t)
	}
	h := t.note(&e.value, 1)
	c.track(t, e, 1)
	first := t.entries[h]
	if e.before(first) {
		e.behind = first
		t.entries[h] = e
	} else {
		for !e.before(first.behind) {
			first = first.behind
		}
		e.behind, first.behind = first.behind, e
	}
	c.link(e)
	c.size++
	if t.of[e.Priority]++; t.of[e.Priority] == 1 {
		heap.Push(&t.priorities, e.Priority)
		c.rank(t)
	}
}

func (c *classifier) remove(e *Entry) {
	t := c.byMask[e.mask]
	h := t.note(&e.value, -1)
	c.track(t, e, -1)
	switch first := t.entries[h]; {
	case first != e:
		for first.behind != e {
			first = first.behind
		}
		first.behind = e.behind
	case e.behind == nil:
		delete(t.entries, h)
	default:
		t.entries[h] = e.behind
	}
	e.behind = nil
	c.unlink(e)
	c.size--
	if t.of[e.Priority]--; t.of[e.Priority] > 0 {
		return
	}
	if delete(t.of, e.Priority); len(t.of) == 0 {
		delete(c.byMask, t.mask)
		c.tuples = slices.DeleteFunc(c.tuples, func(x *tuple) bool { return x == t })
		return
	}
	c.rank(t)
}

// link puts an entry behind those that came before it: most are the newest.
func (c *classifier) link(e *Entry) {
	older := c.newest
	for older != nil && older.age > e.age {
		older = older.older
	}
	newer := c.oldest
	if older != nil {
		newer = older.newer
	}
	e.older, e.newer = older, newer
	*c.after(older), *c.ahead(newer) = e, e
}

func (c *classifier) unlink(e *Entry) {
	*c.after(e.older), *c.ahead(e.newer) = e.newer, e.older
	e.older, e.newer = nil, nil
}

// after is where the one behind an entry is kept; nil stands for the end.
func (c *classifier) after(e *Entry) **Entry {
	if e == nil {
		return &c.oldest
	}
	return &e.newer
}

func (c *classifier) ahead(e *Entry) **Entry {
	if e == nil {
		return &c.newest
	}
	return &e.older
}

// rank puts a tuple where its highest priority belongs.
func (c *classifier) rank(t *tuple) {
	for t.of[t.priorities[0]] == 0 {
		heap.Pop(&t.priorities)
	}
	if len(t.priorities) > 2*len(t.of)+16 {
		t.priorities = slices.SortedFunc(maps.Keys(t.of), func(a, b uint16) int { return int(b) - int(a) })
	}
	if t.highest == t.priorities[0] && len(t.of) > 1 {
		return
	}
	t.highest = t.priorities[0]
	slices.SortStableFunc(c.tuples, func(a, b *tuple) int { return int(b.highest) - int(a.highest) })
}

// priorities are those of a tuple's entries, the highest first, and some that no
// entry has any more.
type priorities []uint16

func (p priorities) Len() int           { return len(p) }
func (p priorities) Less(i, j int) bool { return p[i] > p[j] }
func (p priorities) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *priorities) Push(x any)        { *p = append(*p, x.(uint16)) }
func (p *priorities) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// within gives the entries whose match is equal to or more specific than
// another one, in the order in which they came. They may be removed meanwhile.
func (c *classifier) within(value, mask *Key) iter.Seq[*Entry] {
	if *mask == (Key{}) {
		return c.all()
	}
	return c.where(func(t *tuple) bool { return mask.within(&t.mask) }, mask, value, func(e *Entry) bool { return e.value.under(value, mask) })
}

// overlapping gives the entries of a priority that some packet meets together with a match.
func (c *classifier) overlapping(value, mask *Key, priority uint16) iter.Seq[*Entry] {
	some := func(t *tuple) bool { return t.of[priority] > 0 }
	return c.where(some, mask, value, func(e *Entry) bool {
		for w := range mask {
			if (e.value[w]^value[w])&e.mask[w]&mask[w] != 0 {
				return false
			}
		}
		return e.Priority == priority
	})
}

// all gives the entries in the order in which they came. The one that was given
// may be removed.
func (c *classifier) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for e := c.oldest; e != nil; {
			next := e.newer
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// where gives entries in the order in which they came. Of the tuple with the mask
// that is asked for, only those with the values can be wanted.
func (c *classifier) where(tuples func(*tuple) bool, mask, value *Key, want func(*Entry) bool) iter.Seq[*Entry] {
	var list []*Entry
	see := func(e *Entry) {
		for ; e != nil; e = e.behind {
			if want(e) {
				list = append(list, e)
			}
		}
	}
	for _, t := range c.tuples {
		switch {
		case !tuples(t):
		case t.mask == *mask:
			see(t.bucket(value))
		default:
			for _, e := range t.entries {
				see(e)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.age, b.age) })
	return slices.Values(list)
}
