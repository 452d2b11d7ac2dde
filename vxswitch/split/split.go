// Package split carries one virtual link over several paths (thesis 4.5.2):
// at its beginning a Splitter divides packets by weight and numbers them, at
// its end a Resequencer lets them out in the order of their numbers.
//
// Paths keep the order of what they carry and may lose packets; the
// Resequencer never waits longer than its stall for a number that does not
// come, and never lets a packet overtake.
package split

import "math/bits"

// Number counts the packets of one virtual link. It wraps; numbers compare as
// in RFC 1982, right as long as fewer than 2^31 packets are on their way.
type Number uint32

// Before says whether n was given out before m.
func (n Number) Before(m Number) bool { return int32(n-m) < 0 }

// Splitter divides packets among paths so that the bytes of each stay within
// a packet for each path of its weight's part.
type Splitter struct {
	weights []uint64
	sent    []uint64 // bytes by weight, in units of the product
	next    Number
}

// NewSplitter has one path for each weight. Weights are positive and at most
// 2^16.
func NewSplitter(weights []int) *Splitter {
	s := &Splitter{sent: make([]uint64, len(weights))}
	for _, w := range weights {
		s.weights = append(s.weights, uint64(w))
	}
	return s
}

// Choose takes a packet of a size in bytes and says its path, the one that is
// least ahead after it, and its number.
func (s *Splitter) Choose(size int) (path int, n Number) {
	best := uint64(1<<64 - 1)
	for i, w := range s.weights {
		if after := s.sent[i] + s.cost(size, w); after < best {
			path, best = i, after
		}
	}
	s.sent[path] = best
	s.settle()
	n = s.next
	s.next++
	return path, n
}

// cost of a packet to a path: bytes by weight, with 20 bits of fraction.
func (s *Splitter) cost(size int, weight uint64) uint64 { return uint64(size) << 20 / weight }

// settle takes what all paths have sent off, long before anything overflows.
func (s *Splitter) settle() {
	least := s.sent[0]
	for _, sent := range s.sent {
		least = min(least, sent)
	}
	if bits.Len64(least) < 50 {
		return
	}
	for i := range s.sent {
		s.sent[i] -= least
	}
}
