package vxlink

import (
	"net"
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

	known   bool   // what follows is, of the last reading
	came    uint64 // bytes, as the class counts
	queue   queued
	missing int64  // bytes, since drops began
	drops   uint64 // packets, since then
	begun   uint64 // frames, then
}

const (
	// mostIn is how many frames a large packet has at most.
	mostIn = 64
	// inOuter6 is what outer headers of IPv6 have more than those of IPv4.
	inOuter6 = 20
)

// outerOf is the size of a tunnel's outer headers.
func outerOf(r vxlinkRecord) uint64 {
	if r.Address == net.IPv4len {
		return r.outer()
	}
	return r.outer() + inOuter6
}

// largeAt begins for frames that leave by tunnels. Elsewhere queues count frames. What has
// just begun is compared with nothing.
func largeAt(out vxlinkRecord, begins bool) large {
	if out.IsTunnel == 0 || out.List != 0 {
		return large{}
	}
	return large{outer: outerOf(out), full: uint64(out.Mtu) + header + outerOf(out), known: begins}
}

// add takes in a reading, and gives frames.
func (l *large) add(sum vxlinkCounts, q queued) uint64 {
	before := *l
	l.known, l.queue = true, q
	l.came = sum.Bytes + l.outer*sum.Packets - min(sum.Uncounted, sum.Bytes)
	if l.came < before.came { // counters were emptied
		l.frames = 0
	}
	if l.full == 0 || !before.known || l.came < before.came || q.sent < before.queue.sent || q.dropped <= before.queue.dropped {
		l.missing, l.drops, l.begun = 0, 0, l.frames
		return l.frames
	}
	missing := int64(l.came-before.came) - int64(q.sent-before.queue.sent) - (int64(q.backlog) - int64(before.queue.backlog))
	if before.drops == 0 {
		missing = max(missing, 0) // probes left, without having come, for as long as the link was idle
	}
	l.drops += q.dropped - before.queue.dropped
	l.missing += missing
	found := min(uint64(max(l.missing, 0))/l.full, l.drops*mostIn)
	l.frames = max(l.frames, l.begun+found-min(l.drops, found))
	return l.frames
}
