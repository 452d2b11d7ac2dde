package vnode

import (
	"encoding/binary"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// answerWithin is how long a machine may take to answer for its address once it is
// there.
const answerWithin = 200 * time.Millisecond

// awaits says for which address a machine has to answer before it is ready: the
// first of IPv4 of its first interface that has one, by the number of the TAP device;
// invalid: none.
func awaits(nics []nic) (tap int, address netip.Addr) {
	for i := range nics {
		for _, a := range nics[i].addresses {
			if a.Local.Is4() {
				return nics[i].tap, a.Local
			}
		}
	}
	return 0, address
}

// answers asks a machine, by its TAP device, who has an address (RFC 826, with no
// address of the sender as in RFC 5227), and says whether it has. Nobody else is
// asked.
func (s *supervisor) answers(tap int, address netip.Addr) (found bool) {
	network, err := os.Open(s.room("net"))
	if err != nil {
		return false
	}
	defer network.Close()
	_ = kernel.In(network, func() error {
		found = hasAddress(tap, address)
		return nil
	})
	return found
}

// Frames of address resolution.
const (
	arpRequest, arpReply = 1, 2
	arpFrame             = 14 + 28
	arpProtocol          = 0x0806
	everyFrame           = 0x0300 // ETH_P_ALL in network order: others see frames only after they were sent on
)

// asker is who asks, an address of no card.
var asker = [6]byte{2, 0, 0, 0, 0, 1}

func hasAddress(device int, address netip.Addr) bool {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everyFrame)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	at := &unix.SockaddrLinklayer{Ifindex: device, Protocol: everyFrame}
	wait := unix.NsecToTimeval(int64(answerWithin))
	if unix.Bind(fd, at) != nil || unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait) != nil {
		return false
	}
	if unix.Sendto(fd, question(address), 0, at) != nil {
		return false
	}
	frame := make([]byte, 2*arpFrame)
	for end := time.Now().Add(answerWithin); time.Now().Before(end); {
		n, err := unix.Read(fd, frame)
		if err != nil {
			return false
		}
		b := frame[:n]
		if n >= arpFrame && binary.BigEndian.Uint16(b[12:]) == arpProtocol && binary.BigEndian.Uint16(b[20:]) == arpReply && netip.AddrFrom4([4]byte(b[28:])) == address {
			return true
		}
	}
	return false
}

// question is an Ethernet frame that asks everybody who has an address.
func question(address netip.Addr) []byte {
	b := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	b = append(b, asker[:]...)
	b = append(b, 8, 6, 0, 1, 8, 0, 6, 4, 0, arpRequest) // Ethernet and IPv4
	b = append(b, asker[:]...)
	b = append(b, make([]byte, 4+6)...)
	return append(b, address.AsSlice()...)
}
