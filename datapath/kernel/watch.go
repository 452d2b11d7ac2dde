package kernel

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watchBuffer holds a burst of some ten thousand events. When it overflows
// all the same, that is an event too: whoever listens reads everything again.
const watchBuffer = 16 << 20

// adoptEvery is how often new namespaces are looked for: events of one are
// heard only once it has a number in the host's (NETLINK_LISTEN_ALL_NSID).
const adoptEvery = time.Second

// Watch puts a token into events (which has room for one) whenever a device,
// address, route or qdisc changed in the host's namespace or in one of those
// below its run directory, until ctx ends. It may miss changes; a periodic
// audit is still needed.
func Watch(ctx context.Context, h *Host, events chan<- struct{}) error {
	var fd int
	err := In(h.home, func() (err error) {
		fd, err = listen()
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	seen := make(map[string]bool)
	buffer := make([]byte, receiveSize)
	for ctx.Err() == nil {
		h.adopt(seen)
		for until := time.Now().Add(adoptEvery); time.Now().Before(until) && ctx.Err() == nil; {
			_, _, err := unix.Recvfrom(fd, buffer, 0)
			switch err {
			case nil, unix.ENOBUFS:
				notify(events)
			case unix.EAGAIN, unix.EINTR:
			default:
				return fmt.Errorf("read events: %w", err)
			}
		}
	}
	return nil
}

func notify(events chan<- struct{}) {
	select {
	case events <- struct{}{}:
	default:
	}
}

// listen opens a socket for events of the calling thread's namespace and of
// all that have a number in it. Reads wait for a tenth of a second.
func listen() (int, error) {
	return listenTo(1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_TC-1) |
		1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) |
		1<<(unix.RTNLGRP_IPV6_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1))
}

// listenTo opens a socket for the events of some groups, as bits.
func listenTo(groups uint32) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("open a socket for events: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID, 1)
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})
	}
	if err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("listen for events: %w", err)
	}
	return fd, nil
}

// adopt gives the host's namespaces numbers, once each: seen has those done.
func (h *Host) adopt(seen map[string]bool) {
	names, err := h.Names("netns")
	if err != nil {
		return
	}
	c, err := h.Dial("")
	if err != nil {
		return
	}
	defer c.Close()
	present := make(map[string]bool, len(names))
	for _, name := range names {
		ns, err := h.Open(name)
		if err != nil {
			continue
		}
		if id := identity(ns, name); !present[id] {
			present[id] = true
			if !seen[id] {
				_ = c.Do(newNumber(ns)) // EEXIST: it has one
			}
		}
		ns.Close()
	}
	clear(seen)
	for id := range present {
		seen[id] = true
	}
}

// identity tells a namespace from a later one of the same name.
func identity(ns *os.File, name string) string {
	var st unix.Stat_t
	_ = unix.Fstat(int(ns.Fd()), &st)
	return fmt.Sprintf("%s:%d", name, st.Ino)
}

// newNumber asks for any free number (RTM_NEWNSID; -1).
func newNumber(ns *os.File) *Message {
	return NewMessage(unix.RTM_NEWNSID, 0, make([]byte, 4)). // struct rtgenmsg, padded
									Uint32(unix.NETNSA_NSID, math.MaxUint32).
									Uint32(unix.NETNSA_FD, uint32(ns.Fd()))
}
