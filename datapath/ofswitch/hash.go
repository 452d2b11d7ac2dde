package ofswitch

import "sync/atomic"

// factors are those of words of a key in the program, by which it finds a flow before
// it compares keys.
var factors = keyWords{
	0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93, 0xa0761d6478bd642f,
	0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x1d8e4e27c47d124f,
}

func (k *flowKey) hash() uint64 {
	h := uint64(k.mask)
	for i, w := range k.words {
		if i < short || k.large {
			h += w * factors[i]
		}
	}
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// bucket is where the program looks for a key, and for which tag.
func (c *cache) bucket(k *flowKey) (b *flowsBucket, tag uint32) {
	h := k.hash()
	return &c.buckets[h%uint64(len(c.buckets))], uint32(h>>32) | 1
}

// place is that of a flow in its bucket; -1: the program does not find it.
func (b *flowsBucket) place(tag, slot uint32) int {
	for w := range b.Tag {
		if b.Tag[w] == tag && b.Slot[w] == slot {
			return w
		}
	}
	return -1
}

// lead makes a flow one that is found; false: its bucket is full.
func (c *cache) lead(in *installed) bool {
	b, tag := c.bucket(&in.key)
	for w := range b.Tag {
		if b.Tag[w] == 0 {
			b.Slot[w] = in.slot
			atomic.StoreUint32(&b.Tag[w], tag)
			return true
		}
	}
	return false
}

// leads says whether the program finds a flow.
func (c *cache) leads(in *installed) bool {
	b, tag := c.bucket(&in.key)
	return b.place(tag, in.slot) >= 0
}

func (c *cache) erase(in *installed) {
	b, tag := c.bucket(&in.key)
	if w := b.place(tag, in.slot); w >= 0 {
		atomic.StoreUint32(&b.Tag[w], 0)
	}
}

// leadOnlyTo has no other slots be found.
func (c *cache) leadOnlyTo(kept map[uint32]bool) {
	for i := range c.buckets {
		for w, slot := range c.buckets[i].Slot {
			if !kept[slot] {
				atomic.StoreUint32(&c.buckets[i].Tag[w], 0)
			}
		}
	}
}
