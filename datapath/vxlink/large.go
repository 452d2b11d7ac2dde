package vxlink

import (
	"net"
	"time"

	"sublet/plan"
)

// large finds how many frames were in the large packets that a tunnel's class dropped: it
// counts each packet as one. Bytes that came and neither left nor wait were dropped, in
// times in which it dropped some. (Packets that left cannot be compared: encapsulation
// loses the number of segments.) They are taken for full frames, so that there are rather
// too few.
type large struct {
	frames uint64 // so many, beside one of each packet
	outer  uint64 // bytes of outer headers
	full   uint64 // bytes of a full frame with them; 0: nothing is to be found

	at      time.Time
	came    uint64 // bytes, as the class counts
	queue   queued
	missing int64  // bytes, since drops began
	drops   uint64 // packets, since then
	begun   uint64 // frames, then
}

const (
	// stale is how old a reading may be to be compared with: probes leave by the class
	// without having come by the end.
	stale = 3 * time.Second
	// mostIn is how many frames a large packet has at most.
	mostIn = 64
	// inOuter6 is what outer headers of IPv6 have more than those of IPv4.
	inOuter6 = 20
)

// outerOf is the size of a tunnel's outer headers.
func outerOf(r vxlinkRecord) uint64 {
	if r.Address == net.IPv4len {
		return plan.OuterHeaders
	}
	return plan.OuterHeaders + inOuter6
}

// largeAt begins for frames that leave by tunnels. Elsewhere queues count frames.
func largeAt(out vxlinkRecord) large {
	if out.IsTunnel == 0 || out.List != 0 {
		return large{}
	}
	return large{outer: outerOf(out), full: uint64(out.Mtu) + header + outerOf(out)}
}

// add takes in a reading, and gives frames.
func (l *large) add(sum vxlinkCounts, q queued, now time.Time) uint64 {
	before := *l
	l.at, l.queue = now, q
	l.came = sum.Bytes + l.outer*sum.Packets - min(sum.Uncounted, sum.Bytes)
	if l.full == 0 || now.Sub(before.at) > stale || l.came < before.came || q.sent < before.queue.sent || q.dropped <= before.queue.dropped {
		l.missing, l.drops, l.begun = 0, 0, l.frames
		return l.frames
	}
	l.drops += q.dropped - before.queue.dropped
	l.missing += int64(l.came-before.came) - int64(q.sent-before.queue.sent) - (int64(q.backlog) - int64(before.queue.backlog))
	found := min(uint64(max(l.missing, 0))/l.full, l.drops*mostIn)
	l.frames = max(l.frames, l.begun+found-min(l.drops, found))
	return l.frames
}
