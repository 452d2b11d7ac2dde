package report

import (
	"maps"
	"math"
	"reflect"
	"slices"
)

// Heads numbers the heads of samples. A head is all that a sample says beside its
// instant and its figures, and mostly the same in every round. Numbers count from
// 0, and hold for an era. It is not safe for concurrent use.
type Heads struct {
	era   uint64
	list  []Sample
	next  []uint32          // by number: which head came after it in the last round
	known map[uint64]uint32 // by hash; of two heads with one hash, the last
	sizes []int             // by number: about, in bytes
	size  int               // of all
	live  int               // of those of the last round
}

// spareHeads is how much heads may take that the last round had not, in bytes,
// beside as much again as those that it had.
const spareHeads = 1 << 20

// nothing stands for no head.
const nothing = math.MaxUint32

// NewHeads begins an era, whose number should be another than those of all eras
// before.
func NewHeads(era uint64) *Heads { return &Heads{era: era, known: make(map[uint64]uint32)} }

// Worn says that most heads are of things that are gone, or had another state: it
// is time for a new era.
func (h *Heads) Worn() bool { return h.size > 2*h.live+spareHeads }

// Since lists the heads of an era from a number on, or all if it is another era
// or never came that far, with the number of the first.
func (h *Heads) Since(era uint64, have int) (list []Sample, from int) {
	if era != h.era || have < 0 || have > len(h.list) {
		have = 0
	}
	return h.list[have:len(h.list):len(h.list)], have
}

// number finds a sample's head, or adds it. Rounds are alike: the guess is what
// came after the head before in the last round.
func (h *Heads) number(s *Sample, before uint32) uint32 {
	guess := uint32(0)
	if before != nothing {
		guess = h.next[before]
	}
	if int(guess) < len(h.list) && h.list[guess].sameHead(s) {
		return guess
	}
	n := h.find(s)
	if before != nothing {
		h.next[before] = n
	}
	return n
}

func (h *Heads) find(s *Sample) uint32 {
	sum := s.hashHead()
	if n, ok := h.known[sum]; ok && h.list[n].sameHead(s) {
		return n
	}
	n := uint32(len(h.list))
	h.list, h.next, h.known[sum] = append(h.list, s.head()), append(h.next, n+1), n
	h.sizes = append(h.sizes, h.list[n].Size())
	h.size += h.sizes[n]
	return n
}

// head is a sample's.
func (s *Sample) head() Sample {
	h := *s
	h.At = timeless
	h.Counters = slices.Clone(s.Counters)
	for i := range h.Counters {
		h.Counters[i].Value = 0
	}
	return h
}

// sameHead says whether two samples differ in instant and figures only.
func (s *Sample) sameHead(o *Sample) bool {
	return s.Key == o.Key && s.Kind == o.Kind && s.Lease == o.Lease && s.State == o.State && s.Why == o.Why && s.Host == o.Host &&
		slices.EqualFunc(s.Counters, o.Counters, func(a, b Counter) bool {
			return a.Name == b.Name && a.Unit == b.Unit && a.Cause == b.Cause && a.Gauge == b.Gauge
		}) && sameLabels(s.Labels, o.Labels)
}

// sameLabels compares labels. Parts share them between readings, which is quick to
// see.
func sameLabels(a, b map[string]string) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() || maps.Equal(a, b)
}

// hashHead is equal for equal heads.
func (s *Sample) hashHead() uint64 {
	sum := hashed(hashStart, string(s.Host), string(s.Kind), s.Key, string(s.Lease.Tenant), string(s.Lease.Network), string(s.State), s.Why)
	for _, c := range s.Counters {
		sum = hashed(sum, c.Name, string(c.Unit), c.Cause)
	}
	labels := uint64(0) // in no order
	for name, value := range s.Labels {
		labels += hashed(hashStart, name, value)
	}
	return sum ^ labels
}

// The hash is FNV-1a of 64 bits (Fowler, Noll, Vo), with a byte behind each text
// that is in no UTF-8.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hashed(sum uint64, texts ...string) uint64 {
	for _, t := range texts {
		for i := range len(t) {
			sum = (sum ^ uint64(t[i])) * hashPrime
		}
		sum = (sum ^ 0xff) * hashPrime
	}
	return sum
}
