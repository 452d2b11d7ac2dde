package kernel

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Saved is an address or a route of a device as the kernel told it, which another
// device can get.
type Saved struct {
	kind uint16 // of the message that makes it
	head []byte // struct ifaddrmsg, struct rtmsg
	rest []byte // attributes
}

// Sizes of struct ifaddrmsg and struct rtmsg, and what x/sys does not name of
// linux/rtnetlink.h.
const (
	addressHead, routeHead = 8, 12
	rtaEncap, rtaNextHop   = 22, 30
)

// SavedAddresses lists the addresses with global scope that have no metric of their
// own, by device. Planned ones have one.
func (c *Conn) SavedAddresses() (map[int][]Saved, error) {
	answers, err := c.Dump(NewMessage(unix.RTM_GETADDR, 0, make([]byte, addressHead)))
	saved := make(map[int][]Saved)
	for _, b := range answers {
		if len(b) < addressHead || b[3] != unix.RT_SCOPE_UNIVERSE {
			continue
		}
		if a := parseAddress(b); a.Metric == 0 {
			saved[a.Index] = append(saved[a.Index], Saved{unix.RTM_NEWADDR, b[:addressHead], b[addressHead:]})
		}
	}
	return saved, err
}

// SavedRoutes lists the unicast routes of a protocol number in all tables, by device.
// Those over several devices, through tunnels, or by next hops that have numbers are
// left out: they need more than a device.
func (c *Conn) SavedRoutes(protocol uint8) (map[int][]Saved, error) {
	header := make([]byte, routeHead)
	header[5] = protocol
	answers, err := c.Dump(NewMessage(unix.RTM_GETROUTE, 0, header))
	saved := make(map[int][]Saved)
	for _, b := range answers {
		if len(b) < routeHead || b[5] != protocol || b[7] != unix.RTN_UNICAST {
			continue
		}
		if index := onlyDevice(b[routeHead:]); index != 0 {
			flags := binary.NativeEndian.Uint32(b[8:])
			binary.NativeEndian.PutUint32(b[8:], flags&unix.RTNH_F_ONLINK) // others say what became of it
			saved[index] = append(saved[index], Saved{unix.RTM_NEWROUTE, b[:routeHead], b[routeHead:]})
		}
	}
	return saved, err
}

// onlyDevice is the number of the device that a route needs; 0: it has none, or needs
// more.
func onlyDevice(attributes []byte) (index int) {
	more := false
	EachAttr(attributes, func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_OIF:
			index = int(uint32Of(value))
		case unix.RTA_MULTIPATH, rtaEncap, rtaNextHop:
			more = true
		}
	})
	if more {
		return 0
	}
	return index
}

// on is the message that gives it to a device. Labels of addresses begin with its name
// (devinet.c of Linux), and are left out where they do not.
func (s Saved) on(index int, name string) *Message {
	head := slices.Clone(s.head)
	if s.kind == unix.RTM_NEWADDR {
		binary.NativeEndian.PutUint32(head[4:], uint32(index))
	}
	m := NewMessage(s.kind, unix.NLM_F_CREATE|unix.NLM_F_EXCL, head)
	EachAttr(s.rest, func(kind uint16, value []byte) {
		switch {
		case s.kind == unix.RTM_NEWROUTE && kind == unix.RTA_OIF:
			value = binary.NativeEndian.AppendUint32(nil, uint32(index))
		case s.kind == unix.RTM_NEWADDR && kind == unix.IFA_LABEL && !strings.HasPrefix(stringOf(value), name):
			return
		}
		m.Attr(kind, value)
	})
	return m
}

// Restore gives them to a device, in an order that the kernel takes: a route may need
// another one first. What is there already stays, and what the kernel refuses is left out.
func (c *Conn) Restore(saved []Saved, index int, name string) {
	left := slices.Clone(saved)
	for before := -1; len(left) != before; {
		before = len(left)
		left = slices.DeleteFunc(left, func(s Saved) bool {
			err := c.Do(s.on(index, name))
			return err == nil || Exists(err)
		})
	}
}
