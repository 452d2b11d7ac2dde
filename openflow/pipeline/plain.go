package pipeline

// plain finds the entry that decides as the specification tells of it: all are
// gone through, field by field. It is what lookup is compared with.
func (c *classifier) plain(k *Key) (best *Entry) {
	for e := range c.all() {
		if meets(e, k) && e.before(best) {
			best = e
		}
	}
	return best
}

// meets compares a packet with a match one field at a time.
func meets(e *Entry, k *Key) bool {
	for _, f := range e.Match {
		if k.get128(f.ID).And(f.Mask) != f.Value.And(f.Mask) {
			return false
		}
	}
	return true
}
