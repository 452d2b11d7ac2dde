package kernel

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Rings tells what rings of packet sockets take in one network namespace (packet(7),
// PACKET_RX_RING): memory of the kernel that no control group counts.
type Rings struct{ conn *Conn }

// FindRings asks about the network namespace of the calling thread.
func FindRings() (Rings, error) {
	c, err := dial(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return Rings{}, err
	}
	c.Foreign = true
	return Rings{c}, nil
}

// Close closes the socket.
func (r Rings) Close() error { return r.conn.Close() }

// Owns says whether a socket is of that network namespace.
func (r Rings) Owns(socket int) (bool, error) {
	ours, err := unix.GetsockoptUint64(r.conn.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false, fmt.Errorf("ask whose a socket is: %w", err)
	}
	theirs, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err == nil && ours == theirs, err
}

// Of linux/packet_diag.h.
const (
	packetShowRings = 4
	packetRxRing    = 2
	packetTxRing    = 3
	packetMessage   = 16 // struct packet_diag_msg
)

// Held is the sum in bytes.
func (r Rings) Held() (uint64, error) {
	request := make([]byte, 20) // struct packet_diag_req
	request[0] = unix.AF_PACKET
	binary.NativeEndian.PutUint32(request[8:], packetShowRings)
	answers, err := r.conn.Dump(NewMessage(unix.SOCK_DIAG_BY_FAMILY, 0, request))
	if err != nil {
		return 0, fmt.Errorf("list packet sockets: %w", err)
	}
	sum := uint64(0)
	for _, socket := range answers {
		if len(socket) < packetMessage {
			continue
		}
		EachAttr(socket[packetMessage:], func(kind uint16, ring []byte) {
			if (kind == packetRxRing || kind == packetTxRing) && len(ring) >= 8 {
				sum += RingSize(ring)
			}
		})
	}
	return sum, nil
}

// RingSize is what a ring of so many blocks of a size takes, with the list of them:
// struct tpacket_req and struct packet_diag_ring begin alike.
func RingSize(ring []byte) uint64 {
	size, count := binary.NativeEndian.Uint32(ring), binary.NativeEndian.Uint32(ring[4:])
	const pointer = 8
	return (uint64(size) + pointer) * uint64(count)
}
