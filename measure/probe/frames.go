package probe

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sublet/measure"
)

// Frames are what measures a way to a port at which the node's own program
// receives: packets of the port's protocol with a checksum that is wrong. A packet
// socket counts them where they arrive; the receiver's stack then drops them for
// their checksum, so that the program gets none and nobody answers (RFC 9293,
// section 3.1; RFC 768).

// ipVersion begins an IPv4 header of 20 bytes; that of IPv6 has a 6 in the upper half.
const (
	ipVersion  = 0x45
	ip6Version = 0x60
	ip6Header  = 40
)

// ipHeader is how long the header of an IP packet is.
func ipHeader(b []byte) int {
	if b[0]>>4 == 6 {
		return ip6Header
	}
	return measure.IPv4Header
}

// protocolOf is what an IP packet carries.
func protocolOf(b []byte) uint8 {
	if b[0]>>4 == 6 {
		return b[6]
	}
	return b[9]
}

// dontFragment is the bit of an IPv4 header's flags and offset.
const dontFragment = 0x4000

// frameHeader is where a frame's own header begins.
func frameHeader(b []byte) int {
	if protocolOf(b) == unix.IPPROTO_TCP {
		return ipHeader(b) + measure.TCPHeader
	}
	return ipHeader(b) + measure.UDPHeader
}

// newFrame is an IP packet of a flow's full size, without its own header.
func newFrame(f flow, from uint16) []byte {
	b := make([]byte, f.MTU)
	if f.Peer.Is6() {
		binary.BigEndian.PutUint16(b, ip6Version<<8|uint16(f.DSCP)<<6)
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ip6Header))
		b[6], b[7] = f.Frames, 64
		copy(b[8:], f.Local.AsSlice())
		copy(b[24:], f.Peer.AsSlice())
	} else {
		b[0], b[1], b[6], b[8], b[9] = ipVersion, f.DSCP<<2, dontFragment>>8, 64, f.Frames
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], f.Local.AsSlice())
		copy(b[16:], f.Peer.AsSlice())
		binary.BigEndian.PutUint16(b[10:], folded(sumOf(b[:measure.IPv4Header])))
	}
	l4 := b[ipHeader(b):]
	binary.BigEndian.PutUint16(l4, from)
	binary.BigEndian.PutUint16(l4[2:], f.Ports.UDP)
	if f.Frames == unix.IPPROTO_TCP {
		l4[12], l4[13] = measure.TCPHeader/4<<4, 0x10 // an acknowledgement
		binary.BigEndian.PutUint16(l4[14:], 0xffff)   // window
	} else {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	}
	return b
}

// checksumAt is where a protocol's checksum is in its header.
func checksumAt(proto uint8) int {
	if proto == unix.IPPROTO_TCP {
		return 16
	}
	return 6
}

// spoil gives a frame a checksum that is wrong, and never UDP's word for none.
func spoil(b []byte) {
	at := b[ipHeader(b)+checksumAt(protocolOf(b)):]
	binary.BigEndian.PutUint16(at, 0)
	wrong := checksum(b) ^ 0x5555
	if wrong == 0 {
		wrong = 0x1111
	}
	binary.BigEndian.PutUint16(at, wrong)
}

// checksum of what an IP packet carries, with its pseudo header (RFC 1071, RFC 8200
// section 8.1).
func checksum(b []byte) uint16 {
	head := ipHeader(b)
	addresses := b[12:head]
	if head == ip6Header {
		addresses = b[8:head]
	}
	l4 := b[head:]
	return folded(uint32(protocolOf(b)) + uint32(len(l4)) + sumOf(addresses) + sumOf(l4))
}

// sumOf adds words of 16 bits, of a packet at most.
func sumOf(b []byte) (sum uint32) {
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

func folded(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// byLink says whether a flow's frames are sent with the header of their link: the
// kernel puts no tag on, and would ask for the way of IPv6 packets.
func (f flow) byLink() bool { return f.Frames != 0 && (f.VLAN != 0 || f.Peer.Is6()) }

// nobody is the Ethernet address to which frames go that a chain takes: it writes that
// of its end over it.
var nobody = net.HardwareAddr{0x02, 0x53, 0x4c, 0x54, 0x52, 0x5b}

// linkHeader is what is in front of a flow's frames.
func linkHeader(f flow) ([]byte, error) {
	if !f.byLink() {
		return nil, nil
	}
	device, err := net.InterfaceByName(f.Interface)
	if err != nil {
		return nil, err
	}
	if len(device.HardwareAddr) != len(nobody) {
		return nil, fmt.Errorf("%s has no Ethernet address", f.Interface)
	}
	b := append(append([]byte(nil), nobody...), device.HardwareAddr...)
	if f.VLAN != 0 {
		b = binary.BigEndian.AppendUint16(b, unix.ETH_P_8021Q)
		b = binary.BigEndian.AppendUint16(b, f.VLAN)
	}
	return binary.BigEndian.AppendUint16(b, f.etherType()), nil
}

func (f flow) etherType() uint16 {
	if f.Peer.Is6() || f.Local.Is6() {
		return unix.ETH_P_IPV6
	}
	return unix.ETH_P_IP
}

// frameSender opens the socket by which frames leave, and another one that keeps a
// port for them, so that they are of no connection that the node has.
func frameSender(f flow) (fd, keeper int, port uint16, err error) {
	kind := unix.SOCK_DGRAM
	if f.Frames == unix.IPPROTO_TCP {
		kind = unix.SOCK_STREAM
	}
	family := unix.AF_INET
	if f.Local.Is6() {
		family = unix.AF_INET6
	}
	if keeper, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, -1, 0, fmt.Errorf("keep a port: %w", err)
	}
	if port, err = setUp(keeper, f, 0); err != nil {
		unix.Close(keeper)
		return -1, -1, 0, fmt.Errorf("keep a port on %s of %s: %w", f.Local, f.Interface, err)
	}
	if f.byLink() {
		fd, err = linkSender(f)
	} else if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err == nil {
		if _, err = setUp(fd, f, 0); err == nil {
			err = connectUDP(fd, f.Peer, 0)
		}
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		unix.Close(keeper)
		return -1, -1, 0, fmt.Errorf("send frames by %s: %w", f.Interface, err)
	}
	return fd, keeper, port, nil
}

// linkSender opens a socket by which whole frames leave, and none come.
func linkSender(f flow) (fd int, err error) {
	device, err := net.InterfaceByName(f.Interface)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	setBuffers(fd)
	if err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// frameSink counts frames that arrive for a port, beside whoever has it.
func frameSink(run uint64, f flow) (*sink, uint16, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open packet socket: %w", err)
	}
	if err := setUpFrames(fd, f); err != nil {
		unix.Close(fd)
		return nil, 0, fmt.Errorf("count frames on %s: %w", f.Interface, err)
	}
	return &sink{fd: fd, id: uint32(f.ID), run: run, frames: f.Frames, tally: &tally{}}, f.Ports.UDP, nil
}

// setUpFrames lets in what f's protocol and port say: from when the socket is bound.
func setUpFrames(fd int, f flow) error {
	setBuffers(fd)
	timeout := unix.NsecToTimeval(int64(wake))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	mask, version, proto, head := uint32(0xff), uint32(ipVersion), uint32(9), uint32(measure.IPv4Header)
	if f.Local.Is6() {
		mask, version, proto, head = 0xf0, ip6Version, 6, ip6Header
	}
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: version, SkipTrue: 5},
		bpf.LoadAbsolute{Off: proto, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(f.Frames), SkipTrue: 3},
		bpf.LoadAbsolute{Off: head + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(f.Ports.UDP), SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return err
	}
	device, err := net.InterfaceByName(f.Interface)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(f.etherType()), Ifindex: device.Index})
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
