package emulate

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

// Lengths in bytes: payload of a datagram, the Ethernet, IPv4 and UDP headers
// before it, and one relay's.
const (
	payload = 972
	headers = 14 + 20 + 8
	relayed = 20
)

// rotation interleaves flows: the next packet is of the flow that is most
// behind its share, so no flow sends in bursts.
type rotation struct{ shares, due []float64 }

func newRotation(shares []float64, start func() float64) *rotation {
	r := &rotation{shares: shares, due: make([]float64, len(shares))}
	for i, s := range shares {
		r.due[i] = s * start() // flows begin anywhere in their turn
	}
	return r
}

func (r *rotation) next() int {
	most := 0
	for i, s := range r.shares {
		r.due[i] += s
		if r.due[i] > r.due[most] {
			most = i
		}
	}
	r.due[most]--
	return most
}

// sender is one host's flows to its target.
type sender struct {
	flows    []*net.UDPConn
	rotation *rotation
	gap      time.Duration // between packets
	head     [payload]byte
	sent     uint64                         // that count
	late     time.Duration                  // of the latest that counted
	from, to int                            // hosts
	trace    func(flow int) (number uint32) // of each packet; nil: none
}

func (s *sender) close() {
	for _, c := range s.flows {
		c.Close()
	}
}

// send paces packets until the context ends. counts says whether they do now.
func (s *sender) send(ctx context.Context, run uint32, counts *atomic.Bool) {
	binary.BigEndian.PutUint32(s.head[:], magic)
	binary.BigEndian.PutUint32(s.head[4:], run)
	due := time.Now()
	for ctx.Err() == nil {
		wait := time.Until(due)
		if wait > 0 {
			time.Sleep(wait)
		}
		s.one(counts.Load(), -time.Until(due))
		due = due.Add(s.gap)
	}
}

func (s *sender) one(counts bool, late time.Duration) {
	s.head[8] = 0
	if counts {
		s.head[8] = 1
		s.sent++
		s.late = max(s.late, late)
	}
	flow := s.rotation.next()
	if s.trace != nil {
		binary.BigEndian.PutUint16(s.head[9:], uint16(s.from))
		binary.BigEndian.PutUint16(s.head[11:], uint16(flow))
		binary.BigEndian.PutUint32(s.head[13:], s.trace(flow))
	}
	// What the host's own queue refuses is lost like what the fabric loses.
	_, _ = s.flows[flow].Write(s.head[:])
}
