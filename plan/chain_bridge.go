package plan

import "slices"

// Bridged is what a host does for chains that are given another form, c, while
// packets of the former one are on their way or still being taken: it knows the
// hops, functions and remotes of both. Which packets begin where, entries says.
func (c Chains) Bridged(former Chains, entries []ChainEntry) Chains {
	b := c
	b.Lease, b.Entries = former.Lease, entries
	if c.Interface == "" {
		b.Interface, b.Local = former.Interface, former.Local
	}
	b.Functions = beside(c.Functions, former.Functions, func(f ChainFunction) string { return f.Name })
	b.Remotes = beside(c.Remotes, former.Remotes, func(r ChainRemote) string { return r.Name })
	type place struct {
		path  uint32
		index uint8
	}
	b.Hops = beside(c.Hops, former.Hops, func(h ChainHop) place { return place{h.Path, h.Index} })
	return b
}

// beside are items, and those of others that have another key.
func beside[T any, K comparable](items, others []T, key func(T) K) []T {
	all := slices.Clone(items)
	for _, o := range others {
		if !slices.ContainsFunc(items, func(i T) bool { return key(i) == key(o) }) {
			all = append(all, o)
		}
	}
	return all
}
