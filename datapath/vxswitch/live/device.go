package live

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/datapath/xsk"
	"sublet/vnet"
)

// device is an open port: a file that is read and written one frame at a time,
// each behind a virtio header.
type device struct {
	fd      int
	what    string      // it was opened for (PortConfig, opens)
	tx      int         // of a packet socket: what is written goes by another one
	link    int         // index of the device in its namespace
	packet  bool        // a packet socket: the kernel keeps VLAN tags beside the frame
	batched bool        // what is written waits for more (writeAll)
	xdp     *xsk.Device // AF_XDP sockets
	iov     unix.Iovec
	msg     unix.Msghdr
	aux     [64]byte
	ring    *ring  // of a packet socket
	out     *burst // the same
}

// open makes or opens what c says.
func open(c PortConfig, rate vnet.Rate) (d *device, err error) {
	switch {
	case c.XDP != "":
		d, err = openXDP(c)
	case c.Packet != "":
		d, err = openPacket(c)
	default:
		d, err = openTap(c, rate)
	}
	if err == nil {
		d.what = c.opens()
	}
	return d, err
}

// openTap makes a TAP device where it belongs and hands it the offloads that
// keep segments whole. It goes when the file is closed.
func openTap(c PortConfig, rate vnet.Rate) (*device, error) {
	d := &device{fd: -1}
	if err := in(c.Namespace, func() error { return d.makeTap(c, rate) }); err != nil {
		d.close()
		return nil, fmt.Errorf("make TAP device %s: %w", c.Tap, err)
	}
	return d, nil
}

// in runs f in the namespace of a file, or here.
func in(namespace string, f func() error) error {
	if namespace == "" {
		return f()
	}
	ns, err := kernel.OpenNamespace(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.In(ns, f)
}

// What the kernel may leave undone for us to carry: checksums, TCP and UDP
// segments (linux/if_tun.h).
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6

func (d *device) makeTap(c PortConfig, rate vnet.Rate) error {
	ifr, err := unix.NewIfreq(c.Tap)
	if err != nil {
		return err
	}
	if d.fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(d.fd, unix.TUNSETIFF, ifr); err != nil {
		return err
	}
	for _, set := range []int{offloads, offloads &^ (unix.TUN_F_USO4 | unix.TUN_F_USO6)} { // kernels before 6.2 have no USO
		if err = unix.IoctlSetInt(d.fd, unix.TUNSETOFFLOAD, set); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	return d.place(c, rate)
}

// place sets the device up.
func (d *device) place(c PortConfig, rate vnet.Rate) error {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := conn.LinkByName(c.Tap)
	if err != nil {
		return err
	}
	d.link = link.Index
	return conn.Do(tapSettings(link.Index, c, rate), kernel.UpLink(link.Index))
}

// tapSettings: a short queue, because what waits there waits beside the
// switch's own buffers; and no segment longer than a few milliseconds of rate.
func tapSettings(index int, c PortConfig, rate vnet.Rate) *kernel.Message {
	m := kernel.ChangeLink(index)
	m.Uint32(unix.IFLA_TXQLEN, 256)
	if c.MTU > 0 {
		m.Uint32(unix.IFLA_MTU, uint32(c.MTU))
	}
	if mac, err := parseMAC(c.Address); err == nil {
		m.Attr(unix.IFLA_ADDRESS, mac[:])
	}
	kernel.SetGSO(m, int(min(65536, max(2*1514, rate/8/500))))
	return m
}

// stale says that c names another device, or that the one a socket was opened
// on has its name no more. A TAP device lives as long as its file.
func (d *device) stale(c PortConfig) bool {
	if d.what != c.opens() {
		return true
	}
	if !d.batched || d.fd < 0 {
		return false
	}
	there := 0
	err := in(c.Namespace, func() error {
		conn, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		link, err := conn.LinkByName(c.device())
		there = link.Index
		return err
	})
	return err == nil && there != d.link
}

// tap says that d is a TAP device.
func (d *device) tap() bool { return !d.packet && d.xdp == nil && d.fd >= 0 }

// missed are the frames that found the socket full since it was asked last.
func (d *device) missed() (n uint64) {
	if d.xdp != nil {
		return d.xdp.Lost()
	}
	if !d.packet {
		return 0
	}
	st, err := unix.GetsockoptTpacketStats(d.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(st.Drops)
}

// files are those to watch for frames.
func (d *device) files() (list []int) {
	if d.xdp == nil {
		return []int{d.fd}
	}
	for _, s := range d.xdp.Sockets {
		list = append(list, s.FD())
	}
	return list
}

func (d *device) close() {
	if d.xdp != nil {
		d.xdp.Close()
	} else if d.fd >= 0 {
		unix.Close(d.fd)
	}
	if d.packet && d.tx >= 0 {
		unix.Close(d.tx)
	}
	d.fd, d.tx = -1, -1
	d.ring.unmap()
}

// read reads a frame into f; none is false. piece is for a long one, which f
// then keeps.
func (d *device) read(f *slot, piece []byte) (ok, kept bool) {
	f.off = headroom
	if d.xdp != nil {
		return d.takeXDP(f, piece)
	}
	if d.ring != nil {
		what := d.ring.take(f)
		for what == lost {
			what = d.ring.take(f)
		}
		if what != elsewhere {
			return what == whole, false
		}
	}
	n := 0
	if d.packet {
		n = d.receive(piece[headroom:])
	} else {
		n = d.readTap(piece[headroom:])
	}
	if n < least {
		return false, false
	}
	kept = f.came(piece, n)
	if d.packet {
		d.untuck(f)
	}
	return true, kept
}

// least is the shortest that a device may bring.
const least = virtio + 14

// readTap reads a frame to b: the kernel takes longer to read into two pieces
// than copying a short one does.
func (d *device) readTap(b []byte) int {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(d.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return -1
	}
	return int(n)
}

// errBusy: the device's queue is full.
var errBusy = xsk.ErrBusy

// write writes a frame to a TAP device.
func (d *device) write(f *slot) error {
	b := f.whole()
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(d.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return told(errno)
}

// told is what the kernel says of a frame.
func told(errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.EAGAIN, unix.ENOBUFS:
		return errBusy
	}
	return errno
}
