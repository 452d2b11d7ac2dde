package vnet

import (
	"fmt"
	"time"
)

// PacketCost is the processor time that the kernel of a host spends on a packet, beside
// that of who sends and receives it.
type PacketCost struct {
	Fixed   float64 `json:"fixed_ns,omitempty"`    // each packet
	PerByte float64 `json:"per_byte_ns,omitempty"` // of its frame
	// Error is the largest part by which what was measured of a size of frames is off.
	Error float64 `json:"error,omitempty"`
}

// mostPacketCost bounds what is taken for measured, in ns.
const mostPacketCost = 1e6

// DefaultPacketCost stands in for one that nobody measured: that of a host which carries
// DefaultHostCapacity with frames of 900 bytes on one processor. It may be several times
// what a host takes.
var DefaultPacketCost = PacketCost{Fixed: 900 * 8 / float64(DefaultHostCapacity) * 1e9, Error: 1}

func (c PacketCost) known() bool { return c.Fixed > 0 || c.PerByte > 0 }

// check refuses what is no cost.
func (c PacketCost) check(path string) error {
	for _, x := range []float64{c.Fixed, c.PerByte, c.Error} {
		if !(x >= 0 && x <= mostPacketCost) {
			return fieldf(path, "%g is not between 0 and %g", x, float64(mostPacketCost))
		}
	}
	return nil
}

func (c PacketCost) of(packets, bytes uint64) time.Duration {
	return time.Duration(c.Fixed*float64(packets) + c.PerByte*float64(bytes))
}

// costs are those that were measured, or what stands in for them.
func (m Measurement) costs() (inside, tunnel PacketCost) {
	inside, tunnel = m.InsideCost, m.TunnelCost
	if !inside.known() {
		inside = DefaultPacketCost
	}
	if !tunnel.known() {
		tunnel = DefaultPacketCost
	}
	return inside, tunnel
}

// KernelTime is what the host's kernel spends on packets that enter and leave a link
// there (inside), or that enter or leave a tunnel.
func (m Measurement) KernelTime(inside bool, packets, bytes uint64) time.Duration {
	link, tunnel := m.costs()
	if inside {
		return link.of(packets, bytes)
	}
	return tunnel.of(packets, bytes)
}

// KernelError is the part by which KernelTime may be off.
func (m Measurement) KernelError() float64 {
	link, tunnel := m.costs()
	return max(link.Error, tunnel.Error)
}

func (c PacketCost) String() string {
	return fmt.Sprintf("%.0f ns a packet and %.3g ns a byte, to within %.0f %%", c.Fixed, c.PerByte, 100*c.Error)
}
