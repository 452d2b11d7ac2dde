package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// Classes of a wire, minor numbers of HTB's handle 1.
const (
	rootClass   = 1
	leasedClass = 2
	restClass   = 3
)

// buffering is how long a packet may wait for a busy wire.
const buffering = 15 // milliseconds

// Two of the largest segments the stack builds: less would refuse segments
// that the wire could carry.
const minBuffer = 2 * 64 << 10

// Shape of a wire, for a rate in bytes per second.
func buffer(rate uint64, wanted time.Duration) uint32 {
	if wanted > 0 {
		return uint32(max(rate*uint64(wanted.Microseconds())/1e6, fewest*vnet.DefaultMTU))
	}
	return uint32(max(rate*buffering/1000, minBuffer))
}

// burst lets the wire catch up after it was served late, by up to two
// milliseconds.
func burst(rate uint64, wanted time.Duration) uint32 {
	if wanted > 0 {
		return buffer(rate, wanted)
	}
	return uint32(max(rate*2/1000, minBuffer))
}

// fewest packets that a wire's buffer holds.
const fewest = 4

// shape limits what leaves by a device, leased packets strictly first: their
// class may use the whole rate by itself, the other only borrows what is left
// (HTB serves classes within their own rate before any that borrow).
func shape(c *kernel.Conn, device int, capacity vnet.Rate, buffering time.Duration) error {
	rate := capacity.BytesPerSecond()
	id := func(minor uint16) uint32 { return kernel.Handle(1, minor) }
	whole := kernel.HTBClass{Rate: rate, Ceil: rate, Burst: burst(rate, buffering), CeilBurst: burst(rate, buffering), Quantum: minBuffer}
	rest := whole
	rest.Rate, rest.Priority = 1, 7
	return c.Do(
		kernel.SetHTB(device, restClass),
		kernel.SetClass(device, id(rootClass), kernel.Handle(1, 0), whole),
		kernel.SetClass(device, id(leasedClass), id(rootClass), whole),
		kernel.SetClass(device, id(restClass), id(rootClass), rest),
		kernel.SetFIFO(device, kernel.Handle(leasedClass, 0), id(leasedClass), buffer(rate, buffering)),
		kernel.SetFIFO(device, kernel.Handle(restClass, 0), id(restClass), buffer(rate, buffering)),
	)
}

// errNoDelay says that this kernel cannot hold packets back (no netem).
var errNoDelay = errors.New("this kernel lacks netem")

const noDelayNote = "this kernel lacks netem: link latency is booked but not emulated (--delays does)"

// delay holds what leaves by a device back by the link's latency, behind the
// shaping and instead of the queues, which it bounds by packets.
func delay(c *kernel.Conn, device int, link vnet.SubstrateLink) error {
	if link.Latency == 0 {
		return nil
	}
	const latency64 = 10 // TCA_NETEM_LATENCY64, ns
	inFlight := link.Capacity.BytesPerSecond() / 1000 * uint64(link.Latency.Milliseconds()+buffering)
	limit := uint32(max(inFlight/uint64(link.WireMTU()), 1000))
	for _, minor := range []uint16{leasedClass, restClass} {
		m := kernel.SetQdisc(device, kernel.Handle(minor+10, 0), kernel.Handle(1, minor), "netem", func(m *kernel.Message) {
			options := make([]byte, 24) // struct tc_netem_qopt
			binary.NativeEndian.PutUint32(options[4:], limit)
			m.Raw(options).Uint64(latency64, uint64(link.Latency.Nanoseconds()))
		})
		err := c.Do(m)
		if errors.Is(err, unix.ENOENT) {
			return errNoDelay
		}
		if err != nil {
			return fmt.Errorf("delay by %s: %w", link.Latency, err)
		}
	}
	return nil
}
