package inband

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// MaxControllers bounds a Filter's controllers, and MaxGateways its gateways: what
// tells control from data is done to each frame.
const MaxControllers, MaxGateways = 8, 8

// Filter tells control from data.
type Filter struct {
	controllers []netip.AddrPort
	asked       []netip.Addr // of controllers and gateways
}

// NewFilter makes one; of more than MaxControllers and MaxGateways the first count.
func NewFilter(controllers []netip.AddrPort, gateways []netip.Addr) *Filter {
	f := &Filter{}
	for _, c := range controllers[:min(len(controllers), MaxControllers)] {
		c = netip.AddrPortFrom(c.Addr().Unmap().WithZone(""), c.Port())
		f.controllers, f.asked = append(f.controllers, c), append(f.asked, c.Addr())
	}
	for _, g := range gateways[:min(len(gateways), MaxGateways)] {
		f.asked = append(f.asked, g.Unmap().WithZone(""))
	}
	slices.SortFunc(f.asked, netip.Addr.Compare)
	f.asked = slices.Compact(f.asked)
	return f
}

// Controllers are those that count.
func (f *Filter) Controllers() []netip.AddrPort { return f.controllers }

// Control is what a frame of control is about.
type Control struct {
	Asked netip.Addr // a controller or gateway: the frame is to it, from it or about it
	From  bool       // its sender is there
	Asks  bool       // it asks where Asked is
}

const (
	etherLen  = 14
	typeIPv4  = 0x0800
	typeARP   = 0x0806
	typeIPv6  = 0x86dd
	arpLen    = 28
	ipv4Len   = 20
	ipv6Len   = 40
	tcpLen    = 20
	tcp       = 6
	icmp6     = 58
	solicit   = 135
	advertise = 136
	ndLen     = 24 // of a solicitation or advertisement without options
)

// Look says whether a frame is control, and of what. A frame with a VLAN tag is not.
func (f *Filter) Look(frame []byte) (c Control, is bool) {
	if len(frame) < etherLen {
		return c, false
	}
	b := frame[etherLen:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeARP:
		return f.arp(b)
	case typeIPv4:
		return f.ipv4(b)
	case typeIPv6:
		return f.ipv6(b)
	}
	return c, false
}

func (f *Filter) arp(b []byte) (c Control, is bool) {
	if len(b) < arpLen {
		return c, false
	}
	sender, target := netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	return f.about(sender, target, binary.BigEndian.Uint16(b[6:]) == 1)
}

// about is control between who asks or answers, if it is.
func (f *Filter) about(sender, target netip.Addr, asks bool) (c Control, is bool) {
	if slices.Contains(f.asked, sender) {
		return Control{Asked: sender, From: true}, true
	}
	return Control{Asked: target, Asks: asks}, slices.Contains(f.asked, target)
}

func (f *Filter) ipv4(b []byte) (c Control, is bool) {
	if len(b) < ipv4Len || b[9] != tcp || binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
		return c, false
	}
	header := int(b[0]&15) * 4
	if header < ipv4Len || len(b) < header+tcpLen {
		return c, false
	}
	return f.tcp(netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])), b[header:])
}

func (f *Filter) ipv6(b []byte) (c Control, is bool) {
	if len(b) < ipv6Len {
		return c, false
	}
	from, to := netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	next := b[ipv6Len:]
	switch {
	case b[6] == tcp && len(next) >= tcpLen:
		return f.tcp(from, to, next)
	case b[6] == icmp6 && len(next) >= ndLen && (next[0] == solicit || next[0] == advertise):
		if slices.Contains(f.asked, from) {
			return Control{Asked: from, From: true}, true
		}
		target := netip.AddrFrom16([16]byte(next[8:]))
		if slices.Contains(f.asked, target) {
			return Control{Asked: target, Asks: next[0] == solicit}, true
		}
		return Control{Asked: to}, slices.Contains(f.asked, to)
	}
	return c, false
}

func (f *Filter) tcp(from, to netip.Addr, b []byte) (c Control, is bool) {
	source, target := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if slices.Contains(f.controllers, netip.AddrPortFrom(from, source)) {
		return Control{Asked: from, From: true}, true
	}
	return Control{Asked: to}, slices.Contains(f.controllers, netip.AddrPortFrom(to, target))
}
