package vxlink

import (
	"math"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Sizes in bytes. The largest packet a stack hands down at once (GSO) is
// about 5 ms of the rate, so that slow links stay smooth. A token bucket holds
// two of them, at least 3 ms, so that fast links lose little when the kernel's
// timers wait for a busy processor. A queue holds 30 ms, so that four CUBIC
// streams fill a link of up to 70 ms round trip, a sender may be kept off its
// processor for as long, and a loaded link adds no more delay than that
// (measured: docs/research/measurements.md).
const (
	largestGSO  = 64 << 10
	header      = 14
	gsoTime     = 5  // ms
	burstTime   = 3  // ms, at high rates
	queueTime   = 30 // ms
	queueGSO    = 4  // packets, at low rates
	largestFIFO = 32 << 20
	shapedBurst = 5 * largestGSO / 2 // of frames of 60 bytes with 50 of headers, and some
)

// bytesIn is what a rate passes in some milliseconds.
func bytesIn(rate vnet.Rate, ms int64) int64 {
	return int64(rate.BytesPerSecond()) / 1000 * ms
}

// gsoSize is the largest packet to build for a link of a rate; 0: no limit.
func gsoSize(rate vnet.Rate, mtu int) int64 {
	if rate == 0 {
		return largestGSO
	}
	return min(max(bytesIn(rate, gsoTime), 2*int64(mtu+header)), largestGSO)
}

// burst and queue are those of a shaper of a rate. A GSO packet is counted
// with the headers of all its segments, up to an eighth more than its size.
func burst(rate vnet.Rate, mtu int) uint32 {
	gso := gsoSize(rate, mtu)
	return uint32(max(2*gso+gso/4, bytesIn(rate, burstTime)))
}

func queue(rate vnet.Rate, mtu int) uint32 {
	gso := gsoSize(rate, mtu)
	return uint32(min(max(bytesIn(rate, queueTime), queueGSO*(gso+gso/8)), largestFIFO))
}

// shaper enforces a rate on tenants' frames.
func shaper(rate vnet.Rate, mtu int) kernel.Shaper {
	return kernel.Shaper{Rate: rate.BytesPerSecond(), Burst: burst(rate, mtu), Limit: queue(rate, mtu)}
}

// Priorities of HTB classes: who may borrow first.
const (
	leased     = 0
	bestEffort = 7
)

// htb is the class of outer frames. The quantum shares what is borrowed:
// one frame at least, two milliseconds of the rate otherwise.
func htb(rate, ceil vnet.Rate, mtu int, priority uint32) kernel.HTBClass {
	return kernel.HTBClass{
		Rate: rate.BytesPerSecond(), Ceil: ceil.BytesPerSecond(),
		Burst: burst(rate, mtu), CeilBurst: burst(ceil, mtu),
		Quantum:  uint32(min(max(bytesIn(rate, 2), int64(mtu+header+plan.OuterHeaders)), largestGSO*2)),
		Priority: priority,
	}
}

// alike says that two sizes are the same but for what the kernel's units of
// time round off.
func alike(a, b uint32) bool {
	off := int64(a) - int64(b)
	return max(off, -off) <= int64(b)/64+64
}

// isShaper says that a token bucket read back is the wanted one.
func isShaper(have, want kernel.Shaper) bool {
	return have.Rate == want.Rate && have.Limit == want.Limit && alike(have.Burst, want.Burst)
}

// isClass says that a class read back is the wanted one.
func isClass(have, want kernel.HTBClass) bool {
	return have.Rate == want.Rate && have.Ceil == want.Ceil && have.Priority == want.Priority &&
		alike(have.Burst, want.Burst) && alike(have.CeilBurst, want.CeilBurst)
}

// A tunnel's class counts outer frames, its rate tenants' frames. So its
// ceiling follows their mean size, from that of full frames to the one below
// which the tenant's own share pays (plan.Outer); the plan booked the latter.
//
// Relay lists are not in what it counts, and wires carry them (plan.WireRate). With
// smaller frames there are more of them, so the ceiling falls by what they take.

// outer is a rate of frames of a mean size, with their outer headers.
func outer(rate, mean, headers uint64) uint64 { return rate + (rate*headers+mean-1)/mean }

// ceiling for frames of a mean size. Planned ones that follow nothing are what
// they are.
func (r vxlinkRecord) ceiling(mean uint64) uint64 {
	if r.BestEffort != 0 {
		return r.Ceil
	}
	mean = min(max(mean, 1), uint64(r.Mtu)+header)
	ceil := r.listed(mean)
	if r.Shaped != 0 { // else they come shaped
		ceil = min(ceil, outer(r.Shaped, mean, r.outer()))
	}
	return ceil
}

// listed is the planned ceiling less what frames of a mean size and their lists
// would take of a wire above what the smallest do that the substrate pays for.
// Rates are below 2^43 byte/s, so that nothing overflows.
func (r vxlinkRecord) listed(mean uint64) uint64 {
	list, paid, own := uint64(r.List), plan.MeanFrame+r.outer(), mean+r.outer()
	if list == 0 || own >= paid {
		return r.Ceil
	}
	return r.Ceil * (paid + list) * own / (paid * (own + list))
}

// full is the ceiling for full frames, which a class has to begin with.
func (r vxlinkRecord) full() uint64 { return r.ceiling(math.MaxUint64) }

// lowest is the smallest ceiling there is.
func (r vxlinkRecord) lowest() uint64 { return min(r.full(), r.ceiling(1)) }

// Kernels that leave headers out of what they count (bpf.Undercounts) let a
// class pass more than its rates. So these follow the share that is counted:
// least of a thousand and more.
const least = 850

// allows says whether a ceiling is one of those that the record's class takes.
func (r vxlinkRecord) allows(ceil uint64, undercounts bool) bool {
	lowest := r.lowest()
	if undercounts {
		lowest = lowest * least / 1000
	}
	return lowest <= ceil && ceil <= r.Ceil
}

// guaranteed is the rate that a class read back has if the record's class takes
// it, else the planned one.
func (r vxlinkRecord) guaranteed(have uint64, undercounts bool) uint64 {
	if undercounts && r.Rate*least/1000 <= have && have < r.Rate {
		return have
	}
	return r.Rate
}

// takes says whether a class read back is one that the record may have.
func (r vxlinkRecord) takes(have kernel.HTBClass, undercounts bool) bool {
	return r.allows(have.Ceil, undercounts) && isClass(have, r.class(have.Ceil, r.guaranteed(have.Rate, undercounts)))
}

// class of the physical interface with one of its ceilings and rates, byte/s.
func (r vxlinkRecord) class(ceil, rate uint64) kernel.HTBClass {
	priority := uint32(leased)
	if r.BestEffort != 0 {
		priority = bestEffort
	}
	return htb(vnet.Rate(min(rate, ceil))*8, vnet.Rate(ceil)*8, int(r.Mtu)+plan.OuterHeaders, priority)
}

func (r vxlinkRecord) parent() uint16 {
	if r.BestEffort != 0 {
		return minorBest
	}
	return minorLeases
}

// limit of the class's queue, in bytes. What comes shaped comes in bursts as long as the
// shaper lets pass at once: chains' pass one large packet (datapath/nsh), to which small
// frames' headers add as much again and more.
func (r vxlinkRecord) limit() uint32 {
	limit := queue(vnet.Rate(r.Ceil)*8, int(r.Mtu)+plan.OuterHeaders)
	if r.Shaped == 0 && r.BestEffort == 0 {
		return max(limit, shapedBurst)
	}
	return limit
}
