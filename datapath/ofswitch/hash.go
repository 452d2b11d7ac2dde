package ofswitch

// hash is what the program finds a flow by, before it compares keys.
func (k *flowKey) hash() uint64 {
	h := uint64(k.mask) + 1
	for i, w := range k.words {
		if i < short || k.large {
			h = mix(h, w)
		}
	}
	return h
}

// mix adds a word to a hash, as the program does.
func mix(hash, word uint64) uint64 {
	hash = (hash ^ word) * 0x9e3779b97f4a7c15
	return hash ^ hash>>32
}
