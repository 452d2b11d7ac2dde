package measure

import (
	"math"
	"time"

	"sublet/vnet"
)

// Header sizes in bytes. A frame is counted with its Ethernet header, without
// preamble and FCS (vnet.Rate).
const (
	EthernetHeader  = 14
	IPv4Header      = 20
	UDPHeader       = 8
	TCPHeader       = 20
	TimestampOption = 12 // RFC 7323, with its padding; on every segment after the handshake
)

// UDPOverhead is what Ethernet, IPv4 and UDP add to a datagram's payload.
const UDPOverhead = EthernetHeader + IPv4Header + UDPHeader

// UDPPayload is the payload of the largest datagram that fits an MTU.
func UDPPayload(mtu int) int { return mtu - IPv4Header - UDPHeader }

// UDPRates gives the frame rate and the payload rate of datagrams that
// arrived in a span, payload bytes in all.
func UDPRates(datagrams, payload uint64, span time.Duration) (frames, goodput vnet.Rate) {
	return Rate(float64(payload+datagrams*UDPOverhead), span), Rate(float64(payload), span)
}

// TCPCount is what one host's end of TCP connections has received, as the
// kernel's TCP_INFO counts it: real segments, whatever GRO made of them.
type TCPCount struct {
	Segments     uint64 `json:"segments"`      // all, pure acknowledgements too
	DataSegments uint64 `json:"data_segments"` // those with payload
	Payload      uint64 `json:"payload"`       // bytes received in order
	Headers      uint64 `json:"headers"`       // bytes of all segments' headers, Ethernet to TCP options
}

// Plus adds the counts of another connection.
func (c TCPCount) Plus(d TCPCount) TCPCount {
	return TCPCount{c.Segments + d.Segments, c.DataSegments + d.DataSegments, c.Payload + d.Payload, c.Headers + d.Headers}
}

// Since subtracts an earlier count.
func (c TCPCount) Since(d TCPCount) TCPCount {
	return TCPCount{
		less(c.Segments, d.Segments), less(c.DataSegments, d.DataSegments),
		less(c.Payload, d.Payload), less(c.Headers, d.Headers),
	}
}

// TCPHeaders is the frame overhead of one segment of a connection. Selective
// acknowledgements, on few segments during recovery only, are left out.
func TCPHeaders(timestamps bool) uint64 {
	if timestamps {
		return EthernetHeader + IPv4Header + TCPHeader + TimestampOption
	}
	return EthernetHeader + IPv4Header + TCPHeader
}

// TCPWindow is what arrived in one direction of a link during a window.
type TCPWindow struct {
	Begin, End TCPCount      // all that arrived, of data and of acknowledgements of the opposite data
	Final      TCPCount      // the same after the last byte, when nothing is out of order any more
	Span       time.Duration // from Begin to End
}

// Rates gives the frame rate and the payload rate of the window. Bytes in
// order jump when a hole is filled, segments do not; so payload is counted in
// segments, of the mean size they had when all was in order.
func (w TCPWindow) Rates() (frames, goodput vnet.Rate) {
	if w.Final.DataSegments == 0 {
		return 0, 0
	}
	size := float64(w.Final.Payload) / float64(w.Final.DataSegments)
	passed := w.End.Since(w.Begin)
	payload := size * float64(passed.DataSegments)
	return Rate(payload+float64(passed.Headers), w.Span), Rate(payload, w.Span)
}

// less subtracts counters that come from another process: never below zero.
func less(a, b uint64) uint64 { return a - min(a, b) }

// Rate of bytes in a span; 0 of an empty span.
func Rate(bytes float64, span time.Duration) vnet.Rate {
	if span <= 0 {
		return 0
	}
	return vnet.Rate(math.Round(bytes * 8 / span.Seconds()))
}
