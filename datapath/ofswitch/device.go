package ofswitch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
)

const (
	virtio   = 10      // bytes of struct virtio_net_hdr
	tagRoom  = 4       // for the VLAN tag that the kernel hands over beside a frame
	maxFrame = 1 << 16 // of a segment that is still to be cut
)

// device is a packet socket on a network device that is a port.
type device struct {
	name   string
	number uint32
	index  int
	fd     int
	buf    []byte // header, room for a tag, frame
	msg    unix.Msghdr
	iov    unix.Iovec
	aux    [64]byte
	errors uint64 // frames that the kernel did not take
}

func openDevice(name string, number uint32) (*device, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("port %d: there is no device %q in this network namespace", number, name)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	d := &device{name: name, number: number, index: link.Index, fd: fd, buf: make([]byte, virtio+tagRoom+maxFrame)}
	if err := d.bind(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("packet socket on %s: %w", name, err)
	}
	return d, nil
}

func (d *device) bind() error {
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_AUXDATA, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(d.fd, unix.SOL_PACKET, option, 1); err != nil {
			return err
		}
	}
	unix.SetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	unix.SetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20)
	member := unix.PacketMreq{Ifindex: int32(d.index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(d.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		return err
	}
	return unix.Bind(d.fd, &unix.SockaddrLinklayer{Protocol: 3 << 8, Ifindex: d.index}) // ETH_P_ALL, in network order
}

// describe says what the port is at present.
func (d *device) describe() (of13.Port, error) {
	p := of13.Port{Number: d.number, Name: d.name}
	link, err := net.InterfaceByIndex(d.index)
	if err != nil {
		p.State = of13.PortStateDown
		return p, err
	}
	copy(p.HWAddr[:], link.HardwareAddr)
	if link.Flags&net.FlagUp == 0 || link.Flags&net.FlagRunning == 0 {
		p.State = of13.PortStateDown
	}
	return p, nil
}

// received is a frame and what the kernel says of it.
type received struct {
	frame  []byte
	header [virtio]byte
	large  bool   // a segment that is still to be cut
	ports  uint32 // its first bytes behind IP, as they came
}

// read gets one frame; ok is false if there is none.
func (d *device) read(r *received) (ok bool) {
	d.iov.Base = &d.buf[tagRoom]
	d.iov.SetLen(len(d.buf) - tagRoom)
	d.msg = unix.Msghdr{Iov: &d.iov, Iovlen: 1, Control: &d.aux[0]}
	d.msg.SetControllen(len(d.aux))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(d.fd), uintptr(unsafe.Pointer(&d.msg)), 0)
	if errno != 0 || n < virtio {
		return false
	}
	copy(r.header[:], d.buf[tagRoom:])
	r.frame = d.buf[tagRoom+virtio : tagRoom+int(n)]
	if tag := d.tag(); tag != 0 && len(r.frame) >= 14 {
		r.frame = d.buf[virtio : tagRoom+int(n)]
		copy(r.frame, r.frame[tagRoom:tagRoom+12])
		binary.BigEndian.PutUint32(r.frame[12:], tag)
		if start := binary.NativeEndian.Uint16(r.header[6:]); r.header[0]&1 != 0 {
			binary.NativeEndian.PutUint16(r.header[6:], start+tagRoom)
			binary.NativeEndian.PutUint16(r.header[2:], binary.NativeEndian.Uint16(r.header[2:])+tagRoom)
		}
	}
	r.checksum()
	return true
}

// tag is the VLAN tag that the kernel hands over beside the frame (struct
// tpacket_auxdata); 0: none.
func (d *device) tag() uint32 {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&d.aux[0]))
	if d.msg.Controllen < unix.SizeofCmsghdr+20 || h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return 0
	}
	a := (*[5]uint32)(unsafe.Pointer(&d.aux[unix.SizeofCmsghdr]))
	if a[0]&unix.TP_STATUS_VLAN_VALID == 0 {
		return 0
	}
	tci, kind := a[4]&0xffff, a[4]>>16
	if a[0]&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		kind = unix.ETH_P_8021Q
	}
	return kind<<16 | tci
}

// write sends a frame that was made of a received one, if r is not nil.
func (d *device) write(frame []byte, r *received) {
	var header [virtio]byte
	if r != nil && r.large {
		header = r.ready(frame)
	}
	iov := [2]unix.Iovec{{Base: &header[0]}, {Base: &frame[0]}}
	iov[0].SetLen(virtio)
	iov[1].SetLen(len(frame))
	msg := unix.Msghdr{Iov: &iov[0], Iovlen: 2}
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(d.fd), uintptr(unsafe.Pointer(&msg)), 0)
	if errno != 0 && !errors.Is(errno, unix.ENOBUFS) {
		d.errors++
	}
}
