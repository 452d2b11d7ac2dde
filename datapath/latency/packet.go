package latency

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/vnet"
)

// packet is a probe or the answer to one. Times are of the clock of the host that
// wrote them: only differences of one host's tell something.
type packet struct {
	answer bool
	vni    vnet.VNI
	number uint32
	secret uint64        // an answer has that of its probe, which nobody else knows
	sent   time.Duration // by who asks
	// arrived is when the host that reads it took it off the wire.
	arrived time.Duration
	// asked and answered are when the other host took the probe off the wire and
	// when it sent the answer.
	asked, answered time.Duration
}

// Where a packet has what; all of it in the byte order of the host, as the magic.
const (
	atMagic    = 0
	atAnswer   = 4
	atVNI      = 8
	atNumber   = 12
	atSecret   = 16
	atSent     = 24
	atArrived  = bpf.LatencyArrived
	atAsked    = 40
	atAnswered = 48
	packetSize = 56
)

// wireBytes is what a packet takes of a wire: with Ethernet, IPv4 and UDP headers.
const wireBytes = packetSize + 14 + 20 + 8

func (p packet) encode() []byte {
	b := make([]byte, packetSize)
	binary.NativeEndian.PutUint32(b[atMagic:], bpf.LatencyMagic)
	if p.answer {
		b[atAnswer] = 1
	}
	binary.NativeEndian.PutUint32(b[atVNI:], uint32(p.vni))
	binary.NativeEndian.PutUint32(b[atNumber:], p.number)
	binary.NativeEndian.PutUint64(b[atSecret:], p.secret)
	for at, t := range map[int]time.Duration{atSent: p.sent, atAsked: p.asked, atAnswered: p.answered} {
		binary.NativeEndian.PutUint64(b[at:], uint64(t))
	}
	return b
}

// decode reads a packet that was taken from the socket now; ok: it is one.
func decode(b []byte, now time.Duration) (p packet, ok bool) {
	if len(b) != packetSize || binary.NativeEndian.Uint32(b[atMagic:]) != bpf.LatencyMagic {
		return p, false
	}
	at := func(i int) time.Duration { return time.Duration(binary.NativeEndian.Uint64(b[i:])) }
	p = packet{
		answer: b[atAnswer] == 1, vni: vnet.VNI(binary.NativeEndian.Uint32(b[atVNI:])), number: binary.NativeEndian.Uint32(b[atNumber:]),
		secret: binary.NativeEndian.Uint64(b[atSecret:]), sent: at(atSent), arrived: at(atArrived), asked: at(atAsked), answered: at(atAnswered),
	}
	if p.arrived <= 0 || p.arrived > now { // no program of ours is on the interface
		p.arrived = now
	}
	return p, true
}

// clock is CLOCK_MONOTONIC, which programs of the kernel read too.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail on Linux
	return time.Duration(t.Nano())
}
