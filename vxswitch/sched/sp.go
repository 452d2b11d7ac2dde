package sched

import (
	"math/bits"

	"sublet/vxswitch"
)

// SP is strict priority: 0 first, a class is served only while all higher ones
// are empty; round robin by frame inside a class (Anhalt, thesis, section
// 4.4.1.2). O(1) a frame.
type SP struct{}

func (SP) String() string { return "sp" }

// Bounded: see the cost above.
func (SP) Bounded() {}

// New returns a strict priority of n entries.
func (SP) New(n int, e vxswitch.Entries) vxswitch.Scheduler {
	s := &sp{e: e, class: make([]uint8, n), next: make([]int32, n), prev: make([]int32, n)}
	for c := range s.rings {
		s.rings[c] = ring{next: s.next, prev: s.prev, at: none} // an entry is in one ring at a time
	}
	return s
}

type sp struct {
	e          vxswitch.Entries
	rings      [vxswitch.MaxPriority]ring
	some       uint64 // classes that are not empty
	class      []uint8
	next, prev []int32
}

func (s *sp) Wake(i int) {
	c := s.e.Priority(i)
	s.class[i] = uint8(c)
	s.rings[c].add(i)
	s.some |= 1 << c
}

func (s *sp) Sleep(i int) {
	c := s.class[i]
	s.rings[c].remove(i)
	if s.rings[c].size == 0 {
		s.some &^= 1 << c
	}
}

func (s *sp) Changed(int) {}

func (s *sp) Pick(vxswitch.Time) int {
	if s.some == 0 {
		return vxswitch.Nobody
	}
	return s.rings[bits.TrailingZeros64(s.some)].at
}

func (s *sp) Sent(i, _ int) {
	if r := &s.rings[s.class[i]]; r.at == i {
		r.step()
	}
}
