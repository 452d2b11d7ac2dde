package pipeline

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"sublet/openflow/of13"
)

type group struct {
	of13.GroupDesc
	created int64
	count   of13.Count
	buckets []of13.Count
	hashes  []uint64 // by which flows choose among buckets
}

func newGroup(now int64, m *of13.GroupMod) *group {
	g := &group{GroupDesc: of13.GroupDesc{Kind: m.Kind, Group: m.Group, Buckets: slices.Clone(m.Buckets)}, created: now, buckets: make([]of13.Count, len(m.Buckets))}
	for i := range g.Buckets {
		g.Buckets[i].Actions = copyActions(g.Buckets[i].Actions)
	}
	g.hashes = bucketHashes(g.Buckets)
	return g
}

// bucketHashes tell buckets apart by what they do, not by their places, so that a
// bucket is the same one in a group that was modified. Like buckets are numbered.
func bucketHashes(buckets []of13.Bucket) []uint64 {
	hashes, alike := make([]uint64, len(buckets)), make(map[string]uint64)
	for i, b := range buckets {
		b.Weight = 0
		text := fmt.Sprintf("%+v", b)
		h := fnv.New64a()
		h.Write([]byte(text))
		hashes[i] = mix(h.Sum64() + alike[text])
		alike[text]++
	}
	return hashes
}

// group takes a packet through a group.
func (s *Switch) group(r *run, number uint32, depth int) {
	g := s.groups[number]
	if g == nil || depth >= maxDepth {
		return
	}
	s.see(Seen{What: SeenGroup, Depth: depth, Number: number})
	s.count(&r.packet, &g.count.Packets, &g.count.Bytes, nil)
	if s.trace != nil {
		s.trace.flow.groups = true
	}
	switch g.Kind {
	case of13.GroupTypeAll:
		for i := range g.Buckets {
			s.bucket(r, g, i, depth)
		}
	case of13.GroupTypeIndirect:
		s.bucket(r, g, 0, depth)
	case of13.GroupTypeSelect:
		s.bucket(r, g, s.pick(g, r), depth)
	case of13.GroupTypeFailover:
		s.bucket(r, g, slices.IndexFunc(g.Buckets, func(b of13.Bucket) bool { return s.live(&b) }), depth)
	}
}

// bucket executes a bucket on a copy of the packet; -1 drops it.
func (s *Switch) bucket(r *run, g *group, i, depth int) {
	if i < 0 || i >= len(g.Buckets) || s.met == maxMet {
		return
	}
	s.met++
	s.count(&r.packet, &g.buckets[i].Packets, &g.buckets[i].Bytes, nil)
	s.see(Seen{What: SeenBucket, Depth: depth, Number: uint32(i)})
	c := s.take(depth + 1)
	c.depth = depth + 1
	c.from(&r.packet)
	c.now, c.table, c.entry, c.reason = r.now, r.table, r.entry, r.reason
	c.set.clear()
	c.set.write(g.Buckets[i].Actions)
	s.finish(c, depth+1)
}

// pick chooses a bucket for a flow, each as often as its weight says: that of the
// highest score by weighted rendezvous hashing (Schindelhauer and Schomaker, "Weighted
// Distributed Hash Tables", logarithmic method). A flow keeps its bucket while that may be picked,
// whichever others come and go, but for those that come and take their share.
func (s *Switch) pick(g *group, r *run) int {
	r.packet.fresh()
	flow, best, highest := flowHash(&r.key), -1, 0.0
	for i := range g.Buckets {
		w := g.Buckets[i].Weight
		if w == 0 || !s.eligible(g, i) {
			continue
		}
		part := (float64(mix(flow^g.hashes[i])>>11) + 0.5) / (1 << 53) // of 1, neither 0 nor 1
		if score := float64(w) / -math.Log(part); score > highest {
			best, highest = i, score
		}
	}
	if best >= 0 && s.trace != nil {
		s.trace.see(&flowMask)
	}
	return best
}

// eligible says whether a bucket of a select group may be picked: one that
// watches something, only while that is live.
func (s *Switch) eligible(g *group, i int) bool {
	b := &g.Buckets[i]
	watches := b.WatchPort != of13.PortAny && b.WatchPort != 0 || b.WatchGroup != of13.GroupAny && b.WatchGroup != 0
	return !watches || s.live(b)
}

// flowHash is of what makes a flow: addresses, tag, protocols and ports.
func flowHash(k *Key) uint64 {
	h := uint64(1)
	for w := 3; w < len(flowMask); w++ {
		if flowMask[w] != 0 {
			h = mix(h ^ k[w]&flowMask[w])
		}
	}
	return h
}

// flowMask has of word 5 ports and protocol: neither class nor headers of extension.
var flowMask = Key{3: ^uint64(0), 4: ^uint64(0), 5: 0xffffffff00ff, 6: ^uint64(0), 7: ^uint64(0), 8: ^uint64(0), 9: ^uint64(0), 10: ^uint64(0)}

// live says whether a bucket's port, or a bucket of its group, is.
func (s *Switch) live(b *of13.Bucket) bool {
	return s.ports[b.WatchPort].works() || s.liveGroups()[b.WatchGroup]
}

func (p *port) works() bool {
	return p != nil && p.State&of13.PortStateDown == 0 && p.Config&of13.PortConfigDown == 0
}

// liveGroups are the groups with a live bucket, which are found once after each change
// of groups and ports: from those whose ports work to those that watch them.
func (s *Switch) liveGroups() map[uint32]bool {
	if s.alive != nil {
		return s.alive
	}
	s.alive = make(map[uint32]bool, len(s.groups))
	watching := make(map[uint32][]uint32)
	var found []uint32
	for n, g := range s.groups {
		for i := range g.Buckets {
			b := &g.Buckets[i]
			watching[b.WatchGroup] = append(watching[b.WatchGroup], n)
			if s.ports[b.WatchPort].works() {
				found = append(found, n)
			}
		}
	}
	for ; len(found) > 0; found = found[1:] {
		if n := found[0]; !s.alive[n] {
			s.alive[n] = true
			found = append(found, watching[n]...)
		}
	}
	return s.alive
}

func (g *group) stats(now int64, references uint32) of13.GroupStats {
	return of13.GroupStats{Group: g.Group, References: references, Count: g.count, Life: lifetime(now, g.created), Buckets: g.buckets}
}
