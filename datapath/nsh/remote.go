package nsh

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
)

// Flags of bpf_skb_adjust_room (include/uapi/linux/bpf.h): what is put in front.
const (
	roomFixedGSO = 1 << 0
	roomIPv4     = 1 << 1
	roomIPv6     = 1 << 2
	roomUDP      = 1 << 4
	roomEthernet = 1 << 6
)

// outerTTL survives any substrate.
const outerTTL = 64

// remoteRow is the complete outer headers of packets to another host, but for what
// a packet changes: lengths, sum, source port. Ethernet addresses are the kernel's
// to write (bpf_redirect_neigh).
func remoteRow(p Plane, r Remote, g ground) nshRemote {
	row := nshRemote{
		Flags: roomFixedGSO | roomUDP | roomEthernet, Device: g.chain, Priority: classOf(r.Class),
		Mtu: uint16(min(r.mtu(g), 65535)), PortBase: bpf.PortLeaseBase, PortMask: bpf.PortLeaseMask, Family: familyOf(r.Address),
	}
	if r.Source != 0 {
		row.PortBase, row.PortMask = r.Source, 0
	}
	header := make([]byte, 12, len(row.Header))
	header = outerIP(header, p.Local, r.Address)
	row.UdpAt = uint16(len(header))
	port := uint16(bpf.PortNsh)
	if r.Transport == GPE {
		port = bpf.PortVXLANGPE
	}
	header = binary.BigEndian.AppendUint16(append(header, 0, 0), port)
	header = append(header, 0, 0, 0, 0) // length; no sum (RFC 6935)
	if r.Transport == GPE {
		header = append(header, 0x0c, 0, 0, 4) // instance and protocol are valid; NSH
		header = binary.BigEndian.AppendUint32(header, r.VNI<<8)
	}
	row.Length = uint16(copy(row.Header[:], header))
	row.Flags |= roomIPv6
	if r.Address.Is4() {
		row.Flags ^= roomIPv6 | roomIPv4
		row.Sum = sum(header[14:34])
	}
	return row
}

func (r Remote) mtu(g ground) int {
	if r.MTU != 0 {
		return r.MTU
	}
	return g.mtu
}

func outerIP(header []byte, from, to netip.Addr) []byte {
	const tos = bpf.TOSLease
	if to.Is4() {
		header = append(header, 0x08, 0x00, 0x45, tos, 0, 0, 0, 0, 0x40, 0, outerTTL, unix.IPPROTO_UDP, 0, 0) // do not fragment
	} else {
		header = append(header, 0x86, 0xdd, 0x60|tos>>4, tos<<4&0xff, 0, 0, 0, 0, unix.IPPROTO_UDP, outerTTL)
	}
	return append(append(header, from.AsSlice()...), to.AsSlice()...)
}

// sum adds the words of a header as they lie in memory.
func sum(b []byte) uint16 {
	s := uint32(0)
	for at := 0; at < len(b); at += 2 {
		s += uint32(binary.NativeEndian.Uint16(b[at:]))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
