package ofswitch

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/datapath/xsk"
)

// PortKind is by what frames come and go.
type PortKind string

// Kinds of ports, which stand in front of their devices' names: xdp:eth1. A name alone
// is that of a packet socket.
const (
	PortPacket PortKind = "packet" // a packet socket on a device that is there
	PortXDP    PortKind = "xdp"    // AF_XDP sockets on a device that is there
	PortTAP    PortKind = "tap"    // a TAP device, which is made, and goes with the switch
)

// Port is a port as it is asked for.
type Port struct {
	Kind   PortKind
	Device string
}

// ParsePort reads DEVICE, packet:DEVICE, xdp:DEVICE or tap:DEVICE. Names of devices
// have no colon.
func ParsePort(text string) (p Port, err error) {
	kind, name, has := strings.Cut(text, ":")
	if !has {
		kind, name = string(PortPacket), text
	}
	p = Port{Kind: PortKind(kind), Device: name}
	switch p.Kind {
	case PortPacket, PortXDP, PortTAP:
	default:
		return p, fmt.Errorf("%q: a port is DEVICE, xdp:DEVICE or tap:DEVICE", text)
	}
	if name == "" || name == "." || name == ".." || len(name) >= unix.IFNAMSIZ || strings.ContainsAny(name, ":/% \t\n") {
		return p, fmt.Errorf("%q: %q is no name of a device: at most %d characters, none of them a space, :, / or %%", text, name, unix.IFNAMSIZ-1)
	}
	return p, nil
}

// suits says what keeps a port from a switch that is configured so.
func (p Port) suits(c *Config) error {
	switch {
	case p.Kind == PortPacket:
		return nil
	case c.Kernel:
		return fmt.Errorf("port %s:%s: the kernel datapath has its programs at devices: write %s alone, or choose the process datapath", p.Kind, p.Device, p.Device)
	case c.InBand != nil:
		return fmt.Errorf("port %s:%s: control in band comes by packet sockets: write %s alone, or have control out of band", p.Kind, p.Device, p.Device)
	}
	return nil
}

// Suits says which port cannot be one of such a switch, and why.
func (c *Config) Suits() error {
	for _, text := range c.Ports {
		p, err := ParsePort(text)
		if err == nil {
			err = p.suits(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens a port in the calling thread's network namespace. A silent one is only
// sent to.
func (p Port) open(number uint32, silent bool) (*device, error) {
	switch p.Kind {
	case PortXDP:
		return openXDP(p.Device, number)
	case PortTAP:
		return openTAP(p.Device, number)
	}
	return openDevice(p.Device, number, silent)
}

func openXDP(name string, number uint32) (*device, error) {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil, noDevice(name, number)
	}
	x, err := xsk.Open(name)
	if err != nil {
		return nil, fmt.Errorf("port %d: AF_XDP on %s: %w", number, name, err)
	}
	return &device{name: name, number: number, index: x.Link, fd: x.Out().FD(), xsk: x, speed: speedByName(name)}, nil
}

func noDevice(name string, number uint32) error {
	return fmt.Errorf("port %d: there is no device %q in this network namespace", number, name)
}

// offloads is what senders may leave undone for us to carry: checksums, segments of
// TCP and UDP (linux/if_tun.h).
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6

// openTAP makes a TAP device and sets it up. One that a program has made to stay is
// taken over.
func openTAP(name string, number uint32) (*device, error) {
	fd, err := tap(name)
	if err != nil {
		return nil, fmt.Errorf("port %d: make TAP device %s: %w", number, name, err)
	}
	index, err := raise(name)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("port %d: set TAP device %s up: %w", number, name, err)
	}
	return &device{name: name, number: number, index: index, fd: fd, tap: true, speed: speedByName(name), buf: make([]byte, virtio+tagRoom+maxFrame)}, nil
}

func tap(name string) (fd int, err error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return -1, errors.New("this kernel lacks TAP devices (modprobe tun), as sublet doctor says")
	} else if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err = errors.Join(named(unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)), carry(fd)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// named says why the kernel gives no TAP device of a name.
func named(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		return errors.New("there is another device of that name, or a program has it open")
	}
	return err
}

// carry has senders leave undone what they may; kernels before 6.2 have no USO.
func carry(fd int) (err error) {
	for _, set := range []int{offloads, offloads &^ (unix.TUN_F_USO4 | unix.TUN_F_USO6)} {
		if err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, set); err == nil || errors.Is(err, unix.EBADFD) {
			return nil // or there is no device, which has been told
		}
	}
	return err
}

// raise sets a device up.
func raise(name string) (index int, err error) {
	conn, err := kernel.Dial()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	link, err := conn.LinkByName(name)
	if err != nil {
		return 0, err
	}
	return link.Index, conn.Do(kernel.UpLink(link.Index))
}

// speedByName is speedOf for a port whose file cannot be asked.
func speedByName(name string) uint32 {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	return speedOf(fd, name)
}

// ended says whether nothing comes from a port's file any more: its device is gone.
// One whose error stays would wake the switch for ever, so it is waited for no longer.
func (s *Switch) ended(d *device, events uint32) bool {
	if d.xsk == nil && !d.tap || events&(unix.EPOLLERR|unix.EPOLLHUP) == 0 {
		return false
	}
	files := []int{d.fd}
	if d.xsk != nil {
		files = nil
		for _, socket := range d.xsk.Sockets {
			files = append(files, socket.FD())
		}
	}
	for _, fd := range files {
		_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, fd, nil) // it is there, or was taken out already
	}
	s.looked = 0
	return true
}

// elsewhere says whether a TAP device is there, though not in this namespace.
func (d *device) elsewhere() bool {
	if !d.tap {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) == 0
}

// readXDP gets one frame, in memory that is shared with the kernel until the next one
// is read.
func (d *device) readXDP(r *received) (ok bool) {
	if d.lent != nil {
		d.lent.Release()
	}
	var b []byte
	if b, d.lent = d.xsk.Next(); b == nil {
		return false
	}
	r.frame, r.mark = b[:len(b):len(b)], 0
	xsk.Describe(r.header[:], r.frame)
	r.checksum()
	return true
}

// readTAP gets one frame.
func (d *device) readTAP(r *received) (ok bool) {
	n, err := unix.Read(d.fd, d.buf)
	if err != nil || n < virtio {
		return false
	}
	copy(r.header[:], d.buf)
	r.frame, r.mark = d.buf[virtio:n:n], 0
	r.checksum()
	return true
}

// writeXDP puts a frame behind those that leave at the next flush.
func (d *device) writeXDP(frame []byte, header []byte) {
	out := d.xsk.Out()
	err := out.Put(header, frame)
	if errors.Is(err, xsk.ErrBusy) {
		_ = out.Send() // what keeps it from that, Put tells
		err = out.Put(header, frame)
	}
	if err != nil && !errors.Is(err, xsk.ErrBusy) {
		d.errors++
	}
}

// flush sends what ports keep to be sent together. busy says that a device did not
// take all.
func (s *Switch) flush() (busy bool) {
	kept := s.waiting[:0]
	for _, d := range s.waiting {
		if d.xsk == nil || len(d.xsk.Sockets) == 0 {
			continue // it was shut
		}
		if err := d.xsk.Out().Send(); err != nil {
			d.errors++
		}
		if d.waits = d.xsk.Out().Busy; d.waits {
			kept = append(kept, d)
		}
	}
	s.waiting = kept
	return len(kept) > 0
}
