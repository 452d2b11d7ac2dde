package vnet

import (
	"math/bits"
	"time"
)

// Path splitting: a virtual link may be carried by several paths when its
// request allows it (VirtualLink.Paths). Unless the order of packets is kept
// otherwise (OrderKept), flows are spread over them by a hash into ShareUnits
// buckets, so that packets of one flow keep their order; a path's share is the
// number of buckets that lead to it.
const (
	// ShareUnits is how finely shares are counted: the 256 weights of the
	// kernel's multipath next hops, and a table of one byte per bucket.
	ShareUnits = 256
	// MaxPaths bounds the paths of one virtual link.
	MaxPaths = 8
	// DefaultSpread bounds how much slower than its fastest path a link's
	// slowest may be when the request does not say.
	DefaultSpread = 10 * time.Millisecond
)

// PathOrder says how several paths share what a link carries.
type PathOrder string

// Path orders. By flow, each flow goes by one path, and gets that path's part at
// most. Kept, packets are numbered where they are divided, by bytes, and put back
// into order at the other end, so that one flow gets all paths together.
const (
	OrderByFlow PathOrder = ""
	OrderKept   PathOrder = "kept"
)

// KeepsOrder says whether packets of the link are numbered when it has several
// paths, which takes room of each.
func (l VirtualLink) KeepsOrder() bool { return l.Order == OrderKept && l.MayPaths() > 1 }

// PathShare is one of the paths that carry a virtual link, and its part of
// the link's flows in ShareUnits.
type PathShare struct {
	Path  Path `json:"path"`
	Units int  `json:"units"` // 1 to ShareUnits; those of a link add up to ShareUnits
}

// Of is the path's part of a rate of the link, rounded up to whole bit/s, so
// that the parts never carry less than the whole.
func (p PathShare) Of(r Rate) Rate {
	if r == Unbounded || p.Units == ShareUnits {
		return r
	}
	high, low := bits.Mul64(uint64(r), uint64(p.Units))
	low, carry := bits.Add64(low, ShareUnits-1, 0)
	quotient, _ := bits.Div64(high+carry, low, ShareUnits)
	return Rate(quotient)
}

// Whole is the largest rate of the link of which the path's part is at most r.
func (p PathShare) Whole(r Rate) Rate {
	if r == Unbounded || p.Units == ShareUnits {
		return r
	}
	high, low := bits.Mul64(uint64(r), ShareUnits)
	if high >= uint64(p.Units) {
		return Unbounded
	}
	quotient, _ := bits.Div64(high, low, uint64(p.Units))
	return Rate(min(quotient, uint64(Unbounded)))
}

// Bandwidth is the path's part of what is asked of the link.
func (p PathShare) Bandwidth(b Bandwidth) Bandwidth {
	return Bandwidth{Min: p.Of(b.Min), Max: p.Of(b.Max)}
}

// Paths lists the paths that carry a virtual link with their shares; nil: the
// link is not mapped.
func (m Mapping) Paths(link string) []PathShare {
	if split, ok := m.Splits[link]; ok {
		return split
	}
	if path, ok := m.Links[link]; ok {
		return []PathShare{{Path: path, Units: ShareUnits}}
	}
	return nil
}

// MayPaths is how many paths the link allows, at least one.
func (l VirtualLink) MayPaths() int { return max(1, l.Paths) }

// MaySpread is Spread with its default.
func (l VirtualLink) MaySpread() time.Duration {
	if l.Spread == 0 {
		return DefaultSpread
	}
	return l.Spread
}
