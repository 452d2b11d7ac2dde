package pipeline

import (
	"iter"
	"slices"
)

// classifier finds entries by tuple space search: entries with one mask share a
// hash table. Tables are searched by their highest priority, so a search ends at
// the first one that cannot have a better entry.
type classifier struct {
	tuples []*tuple // by priority, descending
	byMask map[Key]*tuple
	size   int
}

// tuple has the entries of one mask.
type tuple struct {
	mask    Key
	words   []uint8 // those of the mask that are not zero
	entries map[uint64][]*Entry
	of      map[uint16]int // number of entries of a priority
	highest uint16
}

// hash is of the words of a key that the mask has, masked.
func (t *tuple) hash(k *Key) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range t.words {
		h = mix(h ^ k[w]&t.mask[w])
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
	for _, w := range t.words {
		if k[w]&t.mask[w] != e.value[w] {
			return false
		}
	}
	return true
}

// find gives the entry with the highest priority, of those the oldest.
func (t *tuple) find(k *Key) (best *Entry) {
	for _, e := range t.entries[t.hash(k)] {
		if t.matches(k, e) && e.before(best) {
			best = e
		}
	}
	return best
}

// before says whether an entry decides rather than another, which may be missing.
func (e *Entry) before(o *Entry) bool {
	return o == nil || e.Priority > o.Priority || e.Priority == o.Priority && e.age < o.age
}

// lookup finds the entry that decides, nil for none. The bits of the key that
// were looked at are added to seen: packets that agree in these meet the same.
func (c *classifier) lookup(k, seen *Key) (best *Entry) {
	for _, t := range c.tuples {
		if best != nil && t.highest < best.Priority {
			break
		}
		for _, w := range t.words {
			seen[w] |= t.mask[w]
		}
		if e := t.find(k); e != nil && e.before(best) {
			best = e
		}
	}
	return best
}

// same finds the entry with a match and priority.
func (c *classifier) same(value, mask *Key, priority uint16) *Entry {
	t := c.byMask[*mask]
	if t == nil {
		return nil
	}
	for _, e := range t.entries[t.hash(value)] {
		if e.value == *value && e.Priority == priority {
			return e
		}
	}
	return nil
}

func (c *classifier) add(e *Entry) {
	t := c.byMask[e.mask]
	if t == nil {
		t = &tuple{mask: e.mask, entries: make(map[uint64][]*Entry), of: make(map[uint16]int)}
		for w, m := range e.mask {
			if m != 0 {
				t.words = append(t.words, uint8(w))
			}
		}
		if c.byMask == nil {
			c.byMask = make(map[Key]*tuple)
		}
		c.byMask[e.mask] = t
		c.tuples = append(c.tuples, t)
	}
	h := t.hash(&e.value)
	t.entries[h] = append(t.entries[h], e)
	c.size++
	if t.of[e.Priority]++; t.of[e.Priority] == 1 {
		c.rank(t)
	}
}

func (c *classifier) remove(e *Entry) {
	t := c.byMask[e.mask]
	h := t.hash(&e.value)
	list := slices.DeleteFunc(t.entries[h], func(x *Entry) bool { return x == e })
	t.entries[h] = list
	if len(list) == 0 {
		delete(t.entries, h)
	}
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

// rank puts a tuple where its highest priority belongs.
func (c *classifier) rank(t *tuple) {
	t.highest = 0
	for p := range t.of {
		t.highest = max(t.highest, p)
	}
	slices.SortStableFunc(c.tuples, func(a, b *tuple) int { return int(b.highest) - int(a.highest) })
}

// within gives the entries whose match is equal to or more specific than
// another one. They may be removed meanwhile.
func (c *classifier) within(value, mask *Key) iter.Seq[*Entry] {
	return c.where(func(t *tuple) bool { return mask.within(&t.mask) }, func(e *Entry) bool { return e.value.under(value, mask) })
}

// overlapping gives the entries of a priority that some packet meets together with a match.
func (c *classifier) overlapping(value, mask *Key, priority uint16) iter.Seq[*Entry] {
	all := func(t *tuple) bool { return t.of[priority] > 0 }
	return c.where(all, func(e *Entry) bool {
		for w := range mask {
			if (e.value[w]^value[w])&e.mask[w]&mask[w] != 0 {
				return false
			}
		}
		return e.Priority == priority
	})
}

// where gives entries in the order in which they came.
func (c *classifier) where(tuples func(*tuple) bool, want func(*Entry) bool) iter.Seq[*Entry] {
	var list []*Entry
	for _, t := range c.tuples {
		if !tuples(t) {
			continue
		}
		for _, bucket := range t.entries {
			for _, e := range bucket {
				if want(e) {
					list = append(list, e)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return int(a.age) - int(b.age) })
	return slices.Values(list)
}
