package vxrouter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// groups are the kinds of change that matter.
const groups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) | 1<<(unix.RTNLGRP_TC-1) |
	1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV4_RULE-1) |
	1<<(unix.RTNLGRP_IPV4_NETCONF-1) | 1<<(unix.RTNLGRP_NEXTHOP-1) |
	1<<(unix.RTNLGRP_IPV6_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_RULE-1) |
	1<<(unix.RTNLGRP_IPV6_NETCONF-1)

// listen opens a socket for events of the calling thread's namespace. Reads
// wait in Go's poller, so a router costs no thread.
func listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a socket for events: %w", err)
	}
	var all uint32 = groups & (1<<32 - 1)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: all}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen for events: %w", err)
	}
	return os.NewFile(uintptr(fd), "events"), nil
}

// wait waits for a change that matters, at most until the next poll.
func (f *follower) wait(ctx context.Context) (changed bool) {
	f.events.SetReadDeadline(time.Now().Add(statePollEvery))
	buffer := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := f.events.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		if err != nil || f.matters(buffer[:n]) { // an error: some were lost
			return true
		}
	}
	return false
}

// drain forgets what is told already: it is about to be read.
func (f *follower) drain() {
	f.events.SetReadDeadline(time.Now().Add(time.Millisecond))
	buffer := make([]byte, 32<<10)
	for {
		if _, err := f.events.Read(buffer); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// matters says whether messages tell of anything but a known neighbour that
// was found to be still there.
func (f *follower) matters(b []byte) bool {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return true
		}
		n, mac, state, usable := parseNeighbour(b[unix.NLMSG_HDRLEN:size])
		if binary.NativeEndian.Uint16(b[4:]) != unix.RTM_NEWNEIGH {
			return true
		}
		if n.address.IsValid() { // else a bridge's
			v := f.viewOf(n)
			if was, known := v.neighbours[n]; known != usable || was != mac && usable {
				return true
			}
			if state&unix.NUD_STALE != 0 && v.wanted()[n] {
				f.touch(n)
			}
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false
}

// viewOf is what is known of a neighbour's family.
func (f *follower) viewOf(n neighbour) view {
	if familyOf(n.address) == ipv4 {
		return f.copies[0].view
	}
	return f.copies[1].view
}

// touch makes the kernel find out whether a neighbour is there, as a packet to
// it would: the fast path's packets do not pass where it counts them.
func (f *follower) touch(n neighbour) {
	_ = f.conn.UseNeighbour(n.address, n.index) // what is not found stays the stack's
}
