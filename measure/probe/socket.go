package probe

import (
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// socketBuffer holds 100 ms at 2.5 Gbit/s, so that neither sender nor
	// receiver is the limit while the other processes have the cores. Without
	// the right to force it, the kernel gives net.core.[rw]mem_max.
	socketBuffer = 32 << 20

	// wake is how often a blocked thread looks whether it is over.
	wake = 100 * time.Millisecond
)

// udpSocket opens a blocking datagram socket on the flow's local address that
// sends and receives by its interface only, at a port; 0: any.
func udpSocket(f flow, at uint16) (fd int, port uint16, err error) {
	if !f.Local.Is4() {
		return -1, 0, fmt.Errorf("open UDP socket on %s: %s is not an IPv4 address", f.Interface, f.Local)
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, fmt.Errorf("open UDP socket: %w", err)
	}
	if port, err = setUp(fd, f, at); err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("open UDP socket on %s of %s: %w", f.Local, f.Interface, err)
	}
	return fd, port, nil
}

// setUp sizes, times, ties and binds a datagram socket and returns its port.
func setUp(fd int, f flow, at uint16) (uint16, error) {
	setBuffers(fd)
	timeout := unix.NsecToTimeval(int64(wake))
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &timeout); err != nil {
			return 0, fmt.Errorf("set time limit: %w", err)
		}
	}
	if err := setClass(fd, f); err != nil {
		return 0, err
	}
	if err := unix.BindToDevice(fd, f.Interface); err != nil {
		return 0, fmt.Errorf("bind to device: %w", err)
	}
	if err := unix.Bind(fd, socketAddress(f.Local, at)); err != nil {
		return 0, fmt.Errorf("bind: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("read port: %w", err)
	}
	if six, ok := name.(*unix.SockaddrInet6); ok {
		return uint16(six.Port), nil
	}
	return uint16(name.(*unix.SockaddrInet4).Port), nil
}

func socketAddress(a netip.Addr, port uint16) unix.Sockaddr {
	if a.Is6() {
		return &unix.SockaddrInet6{Addr: a.As16(), Port: int(port)}
	}
	return &unix.SockaddrInet4{Addr: a.As4(), Port: int(port)}
}

// setClass gives what a socket of IPv4 sends the flow's DSCP.
func setClass(fd int, f flow) error {
	if f.DSCP == 0 || f.Local.Is6() {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, int(f.DSCP)<<2); err != nil {
		return fmt.Errorf("set DSCP: %w", err)
	}
	return nil
}

// setBuffers asks for large buffers; what the kernel refuses only makes the
// probe more sensitive to a busy machine.
func setBuffers(fd int) {
	for _, o := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], socketBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], socketBuffer)
		}
	}
}

// connectUDP fixes the peer of a datagram socket.
func connectUDP(fd int, peer netip.Addr, port uint16) error {
	if !peer.Is4() {
		return fmt.Errorf("connect UDP socket: %s is not an IPv4 address", peer)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: peer.As4(), Port: int(port)}); err != nil {
		return fmt.Errorf("connect UDP socket to %s:%d: %w", peer, port, err)
	}
	return nil
}

// socketDrops counts the datagrams a socket had no room for (SO_MEMINFO).
func socketDrops(fd int) uint64 {
	const dropsIndex = 8 // SK_MEMINFO_DROPS, linux/sock_diag.h
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[dropsIndex])
}

// transient says that a blocked call should be tried again: its time was up,
// a signal came, or an earlier datagram found nobody.
func transient(err error) bool {
	switch err {
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED, unix.ENOBUFS, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return true
	}
	return false
}
