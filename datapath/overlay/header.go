package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/plan"
	"sublet/vnet"
)

// Sizes of headers, bytes.
const (
	ethernetSize = 14
	ip4Size      = 20
	ip6Size      = 40
	udpSize      = 8
)

// outerTTL survives any substrate.
const outerTTL = 64

// Flags of bpf_skb_adjust_room (include/uapi/linux/bpf.h).
const (
	roomFixedGSO  = 1 << 0
	roomIPv4      = 1 << 1
	roomIPv6      = 1 << 2
	roomGRE       = 1 << 3
	roomUDP       = 1 << 4
	roomEthernet  = 1 << 6
	roomLinkShift = 56
)

// nextHop is how packets to the other end of a tunnel leave this host now.
type nextHop struct {
	device   int // 0: there is none at the moment, because of reason
	from, to [6]byte
	mtu      int // of the path
	reason   string
}

// path is what a next hop is looked up by. Many entries share one.
type path struct {
	device        string
	local, remote netip.Addr
	stack         bool // by the routes of the host, whatever the device
}

func pathOf(o plan.Overlay) path {
	return path{o.Interface, o.Local, o.Remote, o.Protocol == vnet.KernelVXLAN}
}

// addressing says how the outer packets of an entry are addressed.
type addressing struct {
	nextHop
	local, remote netip.Addr
	tos           uint8
	ports         [2]uint16 // the first, and how many
	whole         bool      // the other end takes large packets of datagrams
}

// entryOf builds an entry: everything but what a packet changes.
func entryOf(p *protocol, id uint32, a addressing, slot uint32) overlayEntry {
	e := overlayEntry{Slot: slot, Family: 4, Layer: p.layer, Device: uint32(a.device)}
	header, ip := a.outer(p)
	if a.remote.Is6() {
		e.Family = 6
	}
	if a.whole && p.port == bpf.PortVXLAN {
		e.Whole = 1
	}
	if p.stack {
		e.Stack = 1
	}
	if p.port != 0 {
		e.UdpAt = uint16(len(header))
		e.PortFirst, e.PortCount = a.ports[0], a.ports[1]
		header = append(binary.BigEndian.AppendUint16(append(header, 0, 0), p.port), 0, 0, 0, 0)
	}
	tunnel := len(header)
	header = append(header, p.withID(id)...)
	e.Length = uint16(copy(e.Header[:], header))
	e.Room = e.Length
	if p.layer == 3 {
		e.Room -= ethernetSize
	}
	if a.mtu > 0 {
		e.Mtu = uint16(min(a.mtu, maxPacket) - int(e.Room))
	}
	if p.flow != none {
		e.FlowAt = uint8(tunnel + p.flow)
	}
	p.word(&e, ip, tunnel)
	e.sums(ip)
	e.Flags, e.Shape = p.room(e.Family), shapeOf(e)
	return e
}

const maxPacket = 65535

// withID is the tunnel header with its identifier.
func (p *protocol) withID(id uint32) []byte {
	h := append([]byte(nil), p.header...)
	if p.id != none {
		word := binary.BigEndian.Uint32(h[p.id:])
		binary.BigEndian.PutUint32(h[p.id:], word|id<<8)
	}
	if p.name == vnet.NSH {
		binary.BigEndian.PutUint32(h[4:], id<<8) // of VXLAN-GPE, the same number
	}
	return h
}

// outer is the Ethernet and IP header; ip is where the latter begins.
func (a addressing) outer(p *protocol) (header []byte, ip int) {
	header = append(append(header, a.to[:]...), a.from[:]...)
	if a.remote.Is4() {
		header = append(header, 0x08, 0x00, 0x45, a.tos, 0, 0, 0, 0, 0x40, 0, outerTTL, p.next, 0, 0) // do not fragment
	} else {
		header = append(header, 0x86, 0xdd, 0x60|a.tos>>4, a.tos<<4, 0, 0, 0, 0, p.next, outerTTL)
	}
	header = append(header, a.local.AsSlice()...)
	return append(header, a.remote.AsSlice()...), ethernetSize
}

// word places what names the inner protocol.
func (p *protocol) word(e *overlayEntry, ip, tunnel int) {
	if p.layer != 3 || p.words.v4 == 0 {
		return
	}
	v4, v6 := p.words.v4, p.words.v6
	switch {
	case p.words.at != none:
		e.WordAt = uint16(tunnel + p.words.at)
	case e.Family == 4:
		e.WordAt = uint16(ip + 8)
		v4, v6 = v4|outerTTL<<8, v6|outerTTL<<8
	default:
		e.WordAt = uint16(ip + 6)
		v4, v6 = v4<<8|outerTTL, v6<<8|outerTTL
	}
	e.Word = [2]uint16{inMemory16(v4), inMemory16(v6)}
	binary.BigEndian.PutUint16(e.Header[e.WordAt:], v4)
}

// sums are those of the outer IPv4 header without what packets change, for
// both inner protocols.
func (e *overlayEntry) sums(ip int) {
	if e.Family != 4 {
		return
	}
	for i := range e.Sum {
		h := e.Header
		if e.WordAt != 0 && int(e.WordAt) < ip+ip4Size {
			binary.NativeEndian.PutUint16(h[e.WordAt:], e.Word[i])
		}
		sum := uint32(0)
		for at := ip; at < ip+ip4Size; at += 2 {
			sum += uint32(binary.NativeEndian.Uint16(h[at:]))
		}
		for sum > 0xffff {
			sum = sum&0xffff + sum>>16
		}
		e.Sum[i] = uint16(sum)
	}
}

// room tells the kernel what is put in front, so that it can cut packets.
func (p *protocol) room(family uint8) uint64 {
	flags := uint64(roomFixedGSO | roomIPv4)
	if family == 6 {
		flags = roomFixedGSO | roomIPv6
	}
	switch p.next {
	case unix.IPPROTO_UDP:
		flags |= roomUDP
	case unix.IPPROTO_GRE:
		flags |= roomGRE
	}
	if p.layer == 2 {
		flags |= roomEthernet | ethernetSize<<roomLinkShift
	}
	return flags
}

// shapes are the headers that have a writer of their own in the program.
var shapes = bpf.EnumNames(loadOverlay, "shape", "SHAPE_")

// shapeOf finds the writer that knows where everything is, by its name; 0: there
// is none.
func shapeOf(e overlayEntry) uint8 {
	name := strconv.Itoa(int(e.Length))
	for _, place := range []struct {
		word string
		at   int
	}{{"udp", int(e.UdpAt)}, {"word", int(e.WordAt)}, {"flow", int(e.FlowAt)}} {
		if place.at != 0 {
			name += fmt.Sprintf("-%s%d", place.word, place.at)
		}
	}
	return uint8(max(slices.Index(shapes(), name), 0))
}

// endKey is the key of a tunnel's receiving end.
func endKey(p *protocol, o plan.Overlay) uint64 {
	number := uint32(o.VNI)
	if p.id == none {
		number = senderNumber(address(o.Remote))
	}
	return uint64(p.kind)<<32 | uint64(number)
}

// endOf builds the receiving end of a tunnel, and its key.
func endOf(p *protocol, o plan.Overlay, uplink, trunk int, slot uint32) (uint64, overlayTunnelEnd, error) {
	end := overlayTunnelEnd{
		Remote: address(o.Remote), Local: address(o.Local),
		Uplink: uint32(uplink), Target: uint32(trunk), Mark: uint32(o.VNI), Slot: slot,
	}
	if p.rooted {
		end.Ports = bpf.PortUser
	}
	if p.layer == 3 {
		to, from, _ := strings.Cut(o.Ethernet, " ")
		a, err := net.ParseMAC(to)
		b, err2 := net.ParseMAC(from)
		if err := errors.Join(err, err2); err != nil {
			return 0, end, err
		}
		copy(end.Ethernet[copy(end.Ethernet[:], a):], b)
	}
	return endKey(p, o), end, nil
}

// address is IPv6, or IPv4 in the last four bytes.
func address(a netip.Addr) overlayIn6Addr {
	var to overlayIn6Addr
	s := a.AsSlice()
	copy(to.U6Addr8[16-len(s):], s)
	return to
}

// The mixing of overlay.bpf.c, which numbers senders and hashes flows.
const hashA, hashB = 0xff51afd7ed558ccd, 0x9e3779b97f4a7c15

func mix(addresses uint64, ports uint32, protocol uint8) uint32 {
	return uint32((addresses ^ (uint64(ports)<<8|uint64(protocol)+1)*hashA) * hashB >> 32)
}

// senderNumber stands for a sender of a protocol that carries no identifier:
// number() in overlay.bpf.c.
func senderNumber(a overlayIn6Addr) uint32 {
	w := [4]uint32{}
	for i := range w {
		w[i] = binary.NativeEndian.Uint32(a.U6Addr8[4*i:])
	}
	if w[0]|w[1]|w[2] == 0 {
		return w[3]
	}
	return mix((uint64(w[0])<<32|uint64(w[1]))^(uint64(w[2])<<32|uint64(w[3]))*hashA, 0, 6)
}
