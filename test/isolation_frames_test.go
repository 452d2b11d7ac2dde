package test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// floodPlan is what an attacker is told: where to send from, how much, and the
// addresses of everybody they should not reach.
type floodPlan struct {
	Device    string    `json:"device"`
	Frames    int       `json:"frames"`
	Signature signature `json:"signature"`
	MACs      [][6]byte `json:"macs"` // of peers, strangers, fabrics, hosts
	IPs       [][4]byte `json:"ips"`  // of nodes, hosts, the underlay
	VNIs      []uint32  `json:"vnis"` // of others
	Own       [6]byte   `json:"own"`
}

// Destinations that bridges, stacks or switches treat specially.
var specialMACs = [][6]byte{
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	{0x01, 0x80, 0xc2, 0, 0, 0}, {0x01, 0x80, 0xc2, 0, 0, 1}, {0x01, 0x80, 0xc2, 0, 0, 2}, {0x01, 0x80, 0xc2, 0, 0, 3}, // STP, pause, LACP, 802.1X
	{0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0x01, 0x80, 0xc2, 0, 0, 0x21}, // LLDP, GVRP
	{0x01, 0x00, 0x5e, 0, 0, 1}, {0x01, 0x00, 0x5e, 0, 0, 5}, // all hosts, OSPF
	{0x33, 0x33, 0, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 2}, // all nodes, all routers
	{}, {0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}, // nobody, CDP
}

// Tags before the EtherType: none, priority, VLAN, provider, double, triple.
var tagStacks = [][]byte{
	{}, {}, {},
	{0x81, 0, 0xe0, 0}, {0x81, 0, 0, 1}, {0x81, 0, 0x0f, 0xff}, {0x88, 0xa8, 0, 100},
	{0x88, 0xa8, 0, 1, 0x81, 0, 0, 1}, {0x81, 0, 0, 1, 0x81, 0, 0, 2}, {0x91, 0, 0, 1, 0x91, 0, 0, 2, 0x81, 0, 0, 3},
}

// forge makes one frame out of all these, by chance.
func (p *floodPlan) forge(r *rand.Rand) []byte {
	macs := append(slices.Clone(specialMACs), p.MACs...)
	destination, source := macs[r.IntN(len(macs))], p.Own
	if r.IntN(2) == 0 {
		source = macs[r.IntN(len(macs))]
	}
	frame := append(slices.Clone(destination[:]), source[:]...)
	frame = append(frame, tagStacks[r.IntN(len(tagStacks))]...)
	frame = append(frame, p.payload(r)...)
	if short := 64 - len(p.Signature) - len(frame); short > 0 {
		frame = append(frame, make([]byte, short)...)
	}
	return append(frame, p.Signature[:]...)
}

// payload begins with the EtherType.
func (p *floodPlan) payload(r *rand.Rand) []byte {
	switch r.IntN(8) {
	case 0:
		return p.arp(r)
	case 1:
		return p.ipv6(r)
	case 2: // others, among them: LLDP, 802.1X, slow protocols, MPLS, PPPoE, NSH, PTP, MACsec, loopback, experimental
		types := []uint16{0x88cc, 0x888e, 0x8809, 0x8847, 0x8848, 0x8863, 0x8864, 0x894f, 0x88f7, 0x88e5, 0x9000, 0x88b5, 0x86dd, 0x0800, 0, 38, 1500, 1501, 0xffff}
		junk := binary.BigEndian.AppendUint16(nil, types[r.IntN(len(types))])
		for range r.IntN(200) {
			junk = append(junk, byte(r.Uint32()))
		}
		return junk
	case 3: // 802.3 with LLC: spanning tree
		return append([]byte{0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0}, make([]byte, 30)...)
	}
	return p.ipv4(r)
}

// arp is a request, an answer, a gratuitous one or RARP, in anybody's name.
func (p *floodPlan) arp(r *rand.Rand) []byte {
	kinds := [][2]uint16{{0x0806, 1}, {0x0806, 2}, {0x8035, 3}, {0x8035, 4}}
	kind := kinds[r.IntN(len(kinds))]
	b := binary.BigEndian.AppendUint16(nil, kind[0])
	b = append(b, 0, 1, 8, 0, 6, 4)
	b = binary.BigEndian.AppendUint16(b, kind[1])
	sender, target := p.MACs[r.IntN(len(p.MACs))], p.IPs[r.IntN(len(p.IPs))]
	b = append(append(b, sender[:]...), p.ip(r)...)
	return append(append(b, make([]byte, 6)...), target[:]...)
}

func (p *floodPlan) ip(r *rand.Rand) []byte {
	ip := p.IPs[r.IntN(len(p.IPs))]
	return ip[:]
}

// ipv4 is a packet whose header may lie, with options, as a fragment or whole.
func (p *floodPlan) ipv4(r *rand.Rand) []byte {
	inner, protocol := p.transport(r)
	header := []byte{0x45, 0, 0, 0, byte(r.Uint32()), byte(r.Uint32()), 0x40, 0, 64, protocol, 0, 0}
	header = append(append(header, p.ip(r)...), p.ip(r)...)
	switch r.IntN(10) {
	case 0: // options: NOP, loose source route, router alert
		header[0] = 0x47
		header = append(header, [][]byte{{1, 1, 1, 1, 1, 1, 1, 0}, append([]byte{131, 7, 4}, append(p.ip(r), 0)...), {148, 4, 0, 0, 1, 1, 1, 0}}[r.IntN(3)]...)
	case 1: // fragments: the first, a middle, an overlapping, the last
		binary.BigEndian.PutUint16(header[6:], []uint16{0x2000, 0x2001, 0x2003, 0x0005}[r.IntN(4)])
	case 2: // too short a header, other versions
		header[0] = []byte{0x40, 0x41, 0x44, 0x65, 0x4f, 0x05}[r.IntN(6)]
	case 3: // life
		header[8] = byte(r.IntN(2))
	}
	length := uint16(len(header) + len(inner))
	if r.IntN(12) == 0 {
		length = uint16(r.Uint32())
	}
	binary.BigEndian.PutUint16(header[2:], length)
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return append(append([]byte{8, 0}, header...), inner...)
}

// transport is what an IPv4 packet carries, with its protocol number.
func (p *floodPlan) transport(r *rand.Rand) ([]byte, byte) {
	switch r.IntN(8) {
	case 0: // IP in IP, and IPv6 in IP
		return p.bare(r), []byte{4, 41}[r.IntN(2)]
	case 1: // GRE: IPv4, Ethernet
		return append([][]byte{{0, 0, 8, 0}, {0, 0, 0x65, 0x58}}[r.IntN(2)], p.bare(r)...), 47
	case 2: // ICMP: echo, redirect, fragmentation needed
		return append([][]byte{{8, 0, 0, 0}, {5, 1, 0, 0}, {3, 4, 0, 0}}[r.IntN(3)], make([]byte, 32)...), 1
	case 3: // TCP SYN to a server of the host
		return []byte{0x80, 1, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0}, 6
	case 4: // IGMP, OSPF, PIM, VRRP, none
		return make([]byte, 24), []byte{2, 89, 103, 112, 0, 255}[r.IntN(6)]
	}
	return p.tunnelled(r), 17
}

// tunnelled is UDP as tunnels use it: VXLAN of somebody else's network to
// whoever listens, its extension, Geneve, and DHCP.
func (p *floodPlan) tunnelled(r *rand.Rand) []byte {
	port := []uint16{4789, 4789, 4789, 4790, 6081, 8472, 67, 68}[r.IntN(8)]
	vni := p.VNIs[r.IntN(len(p.VNIs))]
	inner := p.bare(r)
	b := binary.BigEndian.AppendUint16([]byte{byte(r.Uint32()), 1}, port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+8+len(inner)))
	b = append(b, 0, 0, 8, 0, 0, 0)
	return append(binary.BigEndian.AppendUint32(b, vni<<8), inner...)
}

// bare is a frame inside a tunnel.
func (p *floodPlan) bare(r *rand.Rand) []byte {
	destination := p.MACs[r.IntN(len(p.MACs))]
	return append(append(append(slices.Clone(destination[:]), p.Own[:]...), 0x88, 0xb5), make([]byte, 20)...)
}

// ipv6 is neighbour discovery in a router's name, or hop-by-hop options.
func (p *floodPlan) ipv6(r *rand.Rand) []byte {
	next := []byte{58, 0, 60, 43, 44, 59}[r.IntN(6)]
	b := []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, next, 255}
	local := []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(r.Uint32())}
	all := []byte{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(1 + r.IntN(2))}
	b = append(append(b, local...), all...)
	discovery := []byte{134, 135, 136, 137, 133}[r.IntN(5)] // router advertisement and the rest
	return append(append(b, discovery, 0, 0, 0), make([]byte, 28)...)
}

// checksum is RFC 1071's.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
