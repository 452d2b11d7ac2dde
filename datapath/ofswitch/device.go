package ofswitch

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/datapath/xsk"
	"sublet/openflow/of13"
	"sublet/vnet"
)

const (
	virtio   = 10      // bytes of struct virtio_net_hdr
	tagRoom  = 4       // for the VLAN tag that the kernel hands over beside a frame
	maxFrame = 1 << 16 // of a segment that is still to be cut
)

// device is what carries frames of a network device that is a port: a packet socket,
// AF_XDP sockets, or a TAP device's file.
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
	silent bool   // what it receives is read elsewhere
	speed  uint32 // Mbit/s that the device tells; 0: none
	queues queues

	xsk   *xsk.Device // nil: no AF_XDP port
	lent  *xsk.Socket // which has lent the frame that was read; nil: none
	waits bool        // frames wait for the next flush
	tap   bool        // fd is a TAP device's

	address [6]byte // of the device, as it was seen last

	control *device // the same device for control in band; nil: there is none
}

func openDevice(name string, number uint32, silent bool) (*device, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, noDevice(name, number)
	}
	return openIndex(name, link.Index, number, silent)
}

// openIndex is openDevice for a device whose index is known.
func openIndex(name string, index int, number uint32, silent bool) (*device, error) {
	fd, err := packetSocket(index, silent, nil)
	if err != nil {
		return nil, fmt.Errorf("packet socket on %s: %w", name, err)
	}
	d := &device{name: name, number: number, silent: silent, index: index, fd: fd, speed: speedOf(fd, name), buf: make([]byte, virtio+tagRoom+maxFrame)}
	member := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("packet socket on %s: %w", name, err)
	}
	return d, nil
}

// packetSocket opens a socket by which frames leave a device, and come from it unless
// it is silent; only is a filter of them.
func packetSocket(index int, silent bool, only []bpf.RawInstruction) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	if err := errors.Join(filterPacket(fd, only), bindPacket(fd, index, silent)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// filterPacket has a socket, which is not bound yet, receive what a filter accepts.
func filterPacket(fd int, only []bpf.RawInstruction) error {
	if len(only) == 0 {
		return nil
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(only)), Filter: (*unix.SockFilter)(unsafe.Pointer(&only[0])), // struct sock_filter, as both have it
	})
}

func bindPacket(fd, index int, silent bool) error {
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_AUXDATA, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			return err
		}
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20)
	address := unix.SockaddrLinklayer{Protocol: 3 << 8, Ifindex: index} // ETH_P_ALL, in network order
	if silent {
		address.Protocol = 0
	}
	return unix.Bind(fd, &address)
}

// describe says what the port is at present.
func (d *device) describe(conn *kernel.Conn) (of13.Port, error) {
	p := of13.Port{Number: d.number, Name: d.name}
	link, err := conn.LinkByIndex(d.index)
	if err != nil && d.elsewhere() {
		p.HWAddr = d.address
		return p, nil
	}
	if err != nil {
		p.State = of13.PortStateDown
		return p, err
	}
	p.HWAddr, d.address = link.Hardware, link.Hardware
	speed := d.speed
	told, err := vnet.ParseRate(link.Alias) // the device's own speed tells nothing then
	if err == nil {
		speed = uint32(min(told/vnet.Mbit, math.MaxUint32))
	}
	p.MaxSpeed = 1000 * speed
	p.CurrentSpeed = p.MaxSpeed
	if rate := cmp.Or(d.queues.rate*8, uint64(told)); rate > 0 {
		p.CurrentSpeed = uint32(min(rate/uint64(vnet.Kbit), math.MaxUint32))
		p.MaxSpeed = max(p.MaxSpeed, p.CurrentSpeed)
	}
	p.Current = feature(speed)
	p.Supported = p.Current
	if !link.Runs {
		p.State = of13.PortStateDown
	}
	return p, nil
}

// speedOf asks a device for its speed, by ETHTOOL_GSET (linux/ethtool.h). Devices that
// come once the switch is confined are not asked.
func speedOf(fd int, name string) uint32 {
	const get, unknown = 1, 0xffff
	var command struct {
		cmd, supported, advertising uint32
		speed                       uint16
		_                           [14]byte
		speedHigh                   uint16
		_                           [14]byte
	}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data *byte
		_    [16]byte // the union of struct ifreq is larger than a pointer
	}
	command.cmd = get
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = (*byte)(unsafe.Pointer(&command))
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&command)
	if errno != 0 || command.speed == unknown && command.speedHigh == unknown {
		return 0
	}
	return uint32(command.speedHigh)<<16 | uint32(command.speed)
}

// feature is the bit of a speed in Mbit/s among the features of ports (OpenFlow 1.3.5,
// 7.2.1, enum ofp_port_features), all full duplex.
func feature(speed uint32) uint32 {
	const other = 1 << 10
	switch speed {
	case 0:
		return 0
	case 10:
		return 1 << 1
	case 100:
		return 1 << 3
	case 1000:
		return 1 << 5
	case 10_000:
		return 1 << 6
	case 40_000:
		return 1 << 7
	case 100_000:
		return 1 << 8
	case 1_000_000:
		return 1 << 9
	}
	return other
}

// received is a frame and what the kernel says of it.
type received struct {
	frame  []byte
	header [virtio]byte
	large  bool   // a segment that is still to be cut
	ports  uint32 // its first bytes behind IP, as they came
	mark   uint32 // what a program has marked it with
}

// packets is how many a frame stands for.
func (r *received) packets() int {
	size := int(binary.NativeEndian.Uint16(r.header[4:]))
	head := int(binary.NativeEndian.Uint16(r.header[6:])) + 8 // of UDP
	if r.header[1]&0x7f != unix.VIRTIO_NET_HDR_GSO_UDP_L4 && head+5 <= len(r.frame) {
		head += int(r.frame[head+4]>>4)*4 - 8
	}
	if r.header[1] == 0 || size == 0 || len(r.frame) <= head {
		return 1
	}
	return (len(r.frame) - head + size - 1) / size
}

// read gets one frame; ok is false if there is none.
func (d *device) read(r *received) (ok bool) {
	switch {
	case d.xsk != nil:
		return d.readXDP(r)
	case d.tap:
		return d.readTAP(r)
	}
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
	tag, mark := d.beside()
	r.mark = mark
	if tag != 0 && len(r.frame) >= 14 {
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

// beside is what the kernel hands over beside a frame: its VLAN tag (struct
// tpacket_auxdata), 0 for none, and its mark.
func (d *device) beside() (tag, mark uint32) {
	for b := d.aux[:d.msg.Controllen]; len(b) >= unix.SizeofCmsghdr; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		if h.Len < unix.SizeofCmsghdr || h.Len > uint64(len(b)) {
			break
		}
		data := b[unix.SizeofCmsghdr:h.Len]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_MARK && len(data) >= 4:
			mark = binary.NativeEndian.Uint32(data)
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(data) >= 20:
			tag = tagIn(data)
		}
		b = b[min((int(h.Len)+7)&^7, len(b)):]
	}
	return tag, mark
}

func tagIn(aux []byte) uint32 {
	status := binary.NativeEndian.Uint32(aux)
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return 0
	}
	tci, kind := uint32(binary.NativeEndian.Uint16(aux[16:])), uint32(binary.NativeEndian.Uint16(aux[18:]))
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		kind = unix.ETH_P_8021Q
	}
	return kind<<16 | tci
}

// write sends a frame that was made of a received one, if r is not nil.
func (d *device) write(frame []byte, r *received) { d.writeBy(d.fd, frame, r) }

// writeBy sends it by one of the device's sockets.
func (d *device) writeBy(socket int, frame []byte, r *received) {
	var header [virtio]byte
	if r != nil && r.large {
		header = r.ready(frame)
	}
	if d.xsk != nil {
		d.writeXDP(frame, header[:])
		return
	}
	iov := [2]unix.Iovec{{Base: &header[0]}, {Base: &frame[0]}}
	iov[0].SetLen(virtio)
	iov[1].SetLen(len(frame))
	_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(socket), uintptr(unsafe.Pointer(&iov[0])), uintptr(len(iov)))
	if errno != 0 && !errors.Is(errno, unix.ENOBUFS) {
		d.errors++
	}
}
