package impair

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// OpenTap makes a TAP device in the calling thread's namespace, with a number;
// 0: any. It goes when the file is closed.
func OpenTap(name string, index int) (int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return -1, fmt.Errorf("name a TAP device %q: %w", name, err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	if index > 0 {
		err = unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, index)
	}
	if err == nil {
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("make TAP device %s: %w", name, err)
	}
	return fd, nil
}
