package ofswitch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/of13"
)

// devicePrefix begins the names of devices that are followed.
const devicePrefix = "eth"

// mostFollowed bounds port numbers: devices beyond it are no ports.
const mostFollowed = 1024

// watchLinks makes the kernel tell of devices that come, go, or change, and answer
// questions about them.
func (s *Switch) watchLinks() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	s.links = fd
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		return fmt.Errorf("listen for devices: %w", err)
	}
	if s.conn, err = kernel.Dial(); err != nil {
		return err
	}
	return s.watch(fd, tagLinks)
}

// drainLinks throws away what the kernel tells of devices: all are looked at anyway.
func (s *Switch) drainLinks() {
	buf := make([]byte, 16<<10)
	for {
		_, _, err := unix.Recvfrom(s.links, buf, 0)
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// openNew makes ports of the devices eth0, eth1, ... of the caller's network
// namespace: those that are no ports yet, or that were made anew. Device ethN is
// port N+1, so a port has its number again when it comes back. A device that
// cannot be opened is tried again at the next look.
func (s *Switch) openNew() {
	links, err := s.conn.Links()
	if err != nil {
		s.config.Log(err)
		return
	}
	for _, l := range links {
		if s.config.Local != "" && l.Name == s.config.Local {
			s.followLocal(l.Index)
			continue
		}
		at, ok := followed(l.Name)
		if !ok {
			continue
		}
		if at < len(s.devices) && s.devices[at] != nil {
			if s.devices[at].index == l.Index {
				continue
			}
			s.tables.RemovePort(s.devices[at].number)
			s.shut(s.devices[at])
		}
		if err := s.openAt(l.Name, l.Index, at); err != nil {
			s.config.Log(err)
		}
	}
}

// followLocal makes the device of port LOCAL that port, unless it is.
func (s *Switch) followLocal(index int) {
	if s.local != nil && s.local.index == index {
		return
	}
	if s.local != nil {
		s.tables.RemovePort(of13.PortLocal)
		s.shut(s.local)
	}
	if err := s.openLocal(index); err != nil {
		s.config.Log(err)
		if s.local != nil {
			s.shut(s.local)
		}
	}
}

// followed is the place of a device among ports.
func followed(name string) (at int, ok bool) {
	digits, ours := strings.CutPrefix(name, devicePrefix)
	at, err := strconv.Atoi(digits)
	return at, ours && err == nil && at >= 0 && at < mostFollowed && strconv.Itoa(at) == digits
}
