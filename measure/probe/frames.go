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

// ipVersion begins an IPv4 header of 20 bytes.
const ipVersion = 0x45

// dontFragment is the bit of an IPv4 header's flags and offset.
const dontFragment = 0x4000

// frameHeader is where a frame's own header begins.
func frameHeader(proto uint8) int {
	if proto == unix.IPPROTO_TCP {
		return measure.IPv4Header + measure.TCPHeader
	}
	return measure.IPv4Header + measure.UDPHeader
}

// newFrame is an IPv4 packet of a flow's full size, without its own header.
func newFrame(f flow, from uint16) []byte {
	b := make([]byte, f.MTU)
	b[0], b[6], b[8], b[9] = ipVersion, dontFragment>>8, 64, f.Frames
	source, target := f.Local.As4(), f.Peer.As4()
	copy(b[12:], source[:])
	copy(b[16:], target[:])
	l4 := b[measure.IPv4Header:]
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
	at := b[measure.IPv4Header+checksumAt(b[9]):]
	binary.BigEndian.PutUint16(at, 0)
	wrong := checksum(b) ^ 0x5555
	if wrong == 0 {
		wrong = 0x1111
	}
	binary.BigEndian.PutUint16(at, wrong)
}

// checksum of what an IPv4 packet carries, with its pseudo header (RFC 1071).
func checksum(b []byte) uint16 {
	l4 := b[measure.IPv4Header:]
	sum := uint32(b[9]) + uint32(len(l4))
	for i := 12; i < measure.IPv4Header; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for ; len(l4) > 1; l4 = l4[2:] {
		sum += uint32(binary.BigEndian.Uint16(l4))
	}
	if len(l4) > 0 {
		sum += uint32(l4[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// frameSender opens the socket by which frames leave, and another one that keeps a
// port for them, so that they are of no connection that the node has.
func frameSender(f flow) (fd, keeper int, port uint16, err error) {
	kind := unix.SOCK_DGRAM
	if f.Frames == unix.IPPROTO_TCP {
		kind = unix.SOCK_STREAM
	}
	if keeper, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, -1, 0, fmt.Errorf("keep a port: %w", err)
	}
	if port, err = setUp(keeper, f, 0); err != nil {
		unix.Close(keeper)
		return -1, -1, 0, fmt.Errorf("keep a port on %s of %s: %w", f.Local, f.Interface, err)
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err == nil {
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
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: ipVersion, SkipTrue: 5},
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(f.Frames), SkipTrue: 3},
		bpf.LoadAbsolute{Off: measure.IPv4Header + 2, Size: 2},
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
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: device.Index})
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
