package live

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// openPacket opens a packet socket on a device that is there.
func openPacket(c PortConfig) (*device, error) {
	d := &device{packet: true, batched: true, fd: -1, tx: -1}
	if err := in(c.Namespace, func() error { return d.bind(c.Packet) }); err != nil {
		d.close()
		return nil, fmt.Errorf("open device %s: %w", c.Packet, err)
	}
	return d, nil
}

func (d *device) bind(name string) (err error) {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := conn.LinkByName(name)
	if err != nil {
		return err
	}
	if d.fd, err = packetSocket(); err != nil {
		return err
	}
	if d.tx, err = packetSocket(); err != nil {
		return err
	}
	for _, option := range []int{unix.PACKET_AUXDATA, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(d.fd, unix.SOL_PACKET, option, 1); err != nil {
			return err
		}
	}
	unix.SetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	if d.ring, err = newRing(d.fd); err != nil {
		return fmt.Errorf("map its ring: %w", err)
	}
	if err := promiscuous(d.fd, link.Index); err != nil {
		return err
	}
	d.link = link.Index
	if err := unix.Bind(d.tx, &unix.SockaddrLinklayer{Ifindex: link.Index}); err != nil {
		return err
	}
	return unix.Bind(d.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: link.Index})
}

// packetSocket is one that gets nothing before it is bound.
func packetSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// promiscuous keeps a device so as long as a packet socket is open.
func promiscuous(fd, link int) error {
	member := unix.PacketMreq{Ifindex: int32(link), Type: unix.PACKET_MR_PROMISC}
	return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member)
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// receive receives a frame from the socket to b.
func (d *device) receive(b []byte) int {
	d.iov.Base = &b[0]
	d.iov.SetLen(len(b))
	d.msg = unix.Msghdr{Iov: &d.iov, Iovlen: 1, Control: &d.aux[0]}
	d.msg.SetControllen(len(d.aux))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(d.fd), uintptr(unsafe.Pointer(&d.msg)), 0)
	if errno != 0 {
		return -1
	}
	return int(n)
}

// untuck puts the VLAN tag, which the kernel hands over beside the frame
// (struct tpacket_auxdata), back to its place.
func (d *device) untuck(f *slot) {
	if d.msg.Controllen < unix.SizeofCmsghdr+20 {
		return
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&d.aux[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return
	}
	a := (*[5]uint32)(unsafe.Pointer(&d.aux[unix.SizeofCmsghdr]))
	if a[0]&unix.TP_STATUS_VLAN_VALID == 0 {
		return
	}
	tci, proto := uint16(a[4]), uint16(a[4]>>16)
	if a[0]&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		proto = unix.ETH_P_8021Q
	}
	f.tag(proto, tci)
}
