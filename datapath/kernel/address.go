package kernel

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Address is an address of an interface: Local on device Index, and a route of
// the given metric to Reach, which may be one peer, a subnet, or Local alone
// (then there is no route).
type Address struct {
	Index  int
	Local  netip.Addr
	Reach  netip.Prefix
	Metric int
}

// AddAddress sets an address, replacing the metric of an equal one.
func (c *Conn) AddAddress(a Address) error {
	return c.Do(addressMessage(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, a))
}

// DeleteAddress removes an address; a missing one is fine.
func (c *Conn) DeleteAddress(a Address) error {
	err := c.Do(addressMessage(unix.RTM_DELADDR, 0, a))
	if NotFound(err) {
		return nil
	}
	return err
}

func addressMessage(kind uint16, flags int, a Address) *Message {
	header := make([]byte, 8) // struct ifaddrmsg
	header[0], header[1] = family(a.Local), uint8(a.Reach.Bits())
	binary.NativeEndian.PutUint32(header[4:], uint32(a.Index))
	m := NewMessage(kind, flags, header)
	m.Attr(unix.IFA_LOCAL, a.Local.AsSlice())
	if a.Reach.Contains(a.Local) { // so people see it as they expect
		m.Attr(unix.IFA_ADDRESS, a.Local.AsSlice())
	} else {
		m.Attr(unix.IFA_ADDRESS, a.Reach.Masked().Addr().AsSlice())
	}
	if a.Reach.Contains(a.Local) && a.Local.Is4() && a.Reach.Bits() < 31 {
		m.Attr(unix.IFA_BROADCAST, broadcast(a.Reach))
	}
	if a.Local.Is6() {
		m.Uint32(unix.IFA_FLAGS, unix.IFA_F_NODAD)
	}
	return m.Uint32(unix.IFA_RT_PRIORITY, uint32(a.Metric))
}

// broadcast is the last address of an IPv4 prefix.
func broadcast(p netip.Prefix) []byte {
	first := p.Masked().Addr().As4()
	last := binary.BigEndian.Uint32(first[:]) | (1<<(32-p.Bits()) - 1)
	return binary.BigEndian.AppendUint32(nil, last)
}

// HasRoute says that an address comes with a route.
func (a Address) HasRoute() bool { return !(a.Reach.IsSingleIP() && a.Reach.Addr() == a.Local) }

// RestoreRoute makes the route that comes with an address, which the kernel made with the
// address, once more in case somebody deleted it. One that is there is fine.
func (c *Conn) RestoreRoute(a Address) error {
	if !a.HasRoute() {
		return nil
	}
	header := make([]byte, 12) // struct rtmsg
	header[0], header[1] = family(a.Local), uint8(a.Reach.Bits())
	header[4], header[5] = unix.RT_TABLE_MAIN, unix.RTPROT_KERNEL
	header[6], header[7] = unix.RT_SCOPE_LINK, unix.RTN_UNICAST
	m := NewMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, header)
	m.Attr(unix.RTA_DST, a.Reach.Masked().Addr().AsSlice()).Uint32(unix.RTA_OIF, uint32(a.Index))
	if a.Local.Is4() {
		m.Attr(unix.RTA_PREFSRC, a.Local.AsSlice())
	}
	err := c.Do(m.Uint32(unix.RTA_PRIORITY, uint32(a.Metric)))
	if Exists(err) {
		return nil
	}
	return err
}

// Addresses lists the addresses with global scope of one device, or with index
// 0 of all.
func (c *Conn) Addresses(index int) ([]Address, error) {
	header := make([]byte, 8)
	binary.NativeEndian.PutUint32(header[4:], uint32(index))
	answers, err := c.Dump(NewMessage(unix.RTM_GETADDR, 0, header))
	if err != nil {
		return nil, err
	}
	var list []Address
	for _, b := range answers {
		if len(b) >= 8 && b[3] == unix.RT_SCOPE_UNIVERSE && (index == 0 || parseAddress(b).Index == index) {
			list = append(list, parseAddress(b))
		}
	}
	return list, nil
}

func parseAddress(b []byte) Address {
	a := Address{Index: int(binary.NativeEndian.Uint32(b[4:]))}
	var reach netip.Addr
	EachAttr(b[8:], func(kind uint16, v []byte) {
		switch kind {
		case unix.IFA_LOCAL:
			a.Local, _ = netip.AddrFromSlice(v)
		case unix.IFA_ADDRESS:
			reach, _ = netip.AddrFromSlice(v)
		case unix.IFA_RT_PRIORITY:
			a.Metric = int(uint32Of(v))
		}
	})
	if !a.Local.IsValid() { // IPv6 without a peer
		a.Local = reach
	}
	a.Reach = netip.PrefixFrom(reach, int(b[1])).Masked()
	return a
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
