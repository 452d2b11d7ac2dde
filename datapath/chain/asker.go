package chain

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// asker begins connections of TCP to a node of a balancer, by the way on which flows
// come to it, and ends them as soon as they are answered: by SYN, and RST behind the
// SYN that comes back (RFC 9293, section 3.5).
type asker struct {
	fd       int
	index    int
	hardware [6]byte
	from, to netip.Addr
	port     uint16
	any      bool // a node that refuses lives too
	sequence uint32
}

// answered is what a node said.
type answered int

const (
	nothing answered = iota
	accepts
	refuses
)

// closedPort is of a service that nobody runs any more (discard, RFC 863): to be asked
// where no port is stated.
const closedPort = 9

// openAsker opens the interface by which a node is asked; nil: it is not there.
func openAsker(host *kernel.Host, c plan.Chains, f plan.ChainFunction, b plan.ChainBackend) *asker {
	home, err := host.Open(plan.Namespace(c.Lease, plan.ChainHome))
	if err != nil {
		return nil
	}
	defer home.Close()
	a := &asker{fd: -1, from: f.Asker, to: b.Address, port: f.Port, any: f.Port == 0}
	if a.any {
		a.port = closedPort
	}
	if err := kernel.In(home, func() error { return a.open(b.Interface) }); err != nil {
		a.close()
		return nil
	}
	return a
}

func (a *asker) open(device string) error {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	a.index = i.Index
	copy(a.hardware[:], i.HardwareAddr)
	if a.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		a.fd = -1
		return err
	}
	const everyIP = unix.ETH_P_IP>>8 | unix.ETH_P_IP&0xff<<8 // in network order
	return errors.Join(
		unix.SetsockoptInt(a.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(a.fd, &unix.SockaddrLinklayer{Protocol: everyIP, Ifindex: a.index}),
	)
}

func (a *asker) close() {
	if a != nil && a.fd >= 0 {
		unix.Close(a.fd)
		a.fd = -1
	}
}

// Flags of TCP.
const (
	flagSYN = 1 << 1
	flagRST = 1 << 2
	flagACK = 1 << 4
)

// ask begins a connection; false: the interface is gone.
func (a *asker) ask() bool {
	if a == nil {
		return true // and is to be opened
	}
	a.sequence = rand.Uint32()
	return a.send(flagSYN, a.sequence)
}

func (a *asker) send(flags byte, sequence uint32) bool {
	return unix.Sendto(a.fd, a.segment(flags, sequence), 0, &unix.SockaddrLinklayer{Ifindex: a.index}) == nil
}

// answer reads what came.
func (a *asker) answer() (said answered) {
	if a == nil {
		return nothing
	}
	frame := make([]byte, 256)
	for {
		n, err := unix.Read(a.fd, frame)
		if err != nil {
			return said
		}
		switch flags, ok := a.read(frame[:n]); {
		case !ok:
		case flags&flagRST != 0 && a.any:
			said = accepts
		case flags&flagRST != 0:
			said = refuses
		case flags&(flagSYN|flagACK) == flagSYN|flagACK:
			said = accepts
			a.send(flagRST, a.sequence+1)
		}
	}
}

const (
	ethernetHeader = 14
	ipHeader       = 20
	tcpHeader      = 20
)

// segment is a frame of TCP without data. The way to the node writes its address over
// the one that it goes to.
func (a *asker) segment(flags byte, sequence uint32) []byte {
	b := append(a.hardware[:], a.hardware[:]...)
	b = append(b, 8, 0)
	b = append(b, 0x45, 0, 0, ipHeader+tcpHeader, 0, 0, 0x40, 0, 64, unix.IPPROTO_TCP, 0, 0)
	b = append(append(b, a.from.AsSlice()...), a.to.AsSlice()...)
	binary.BigEndian.PutUint16(b[ethernetHeader+10:], checksum(b[ethernetHeader:], 0))
	b = binary.BigEndian.AppendUint16(b, plan.AskPort)
	b = binary.BigEndian.AppendUint16(b, a.port)
	b = binary.BigEndian.AppendUint32(b, sequence)
	const words, window = tcpHeader / 4 << 4, 4
	b = append(b, 0, 0, 0, 0, words, flags, window, 0, 0, 0, 0, 0)
	// The pseudo header is the addresses, the protocol and the length (RFC 9293, section 3.1).
	sum := checksum(b[ethernetHeader+12:], unix.IPPROTO_TCP+tcpHeader)
	binary.BigEndian.PutUint16(b[ethernetHeader+ipHeader+16:], sum)
	return b
}

// checksum is that of the internet over an even number of bytes (RFC 1071).
func checksum(b []byte, sum uint32) uint16 {
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// read are the flags of a frame that answers the last question.
func (a *asker) read(b []byte) (flags byte, ok bool) {
	if len(b) < ethernetHeader+ipHeader || binary.BigEndian.Uint16(b[12:]) != unix.ETH_P_IP {
		return 0, false
	}
	ip := b[ethernetHeader:]
	head := int(ip[0]&15) * 4
	if ip[9] != unix.IPPROTO_TCP || head < ipHeader || len(ip) < head+tcpHeader ||
		netip.AddrFrom4([4]byte(ip[12:16])) != a.to || netip.AddrFrom4([4]byte(ip[16:20])) != a.from {
		return 0, false
	}
	tcp := ip[head:]
	return tcp[13], binary.BigEndian.Uint16(tcp) == a.port && binary.BigEndian.Uint16(tcp[2:]) == plan.AskPort &&
		binary.BigEndian.Uint32(tcp[8:]) == a.sequence+1
}
