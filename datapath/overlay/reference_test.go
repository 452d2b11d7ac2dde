package overlay

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"

	"sublet/datapath/bpf"
	"sublet/plan"
	"sublet/vnet"
)

// The slow reference: what the programs shall do, said again in plain Go without
// templates, tables of offsets or incremental sums.

// verdict of a program: drop with a cause and the entry that counts it, next,
// or redirect with what the packet is then.
type verdict struct {
	code  uint32      // of TCX
	cause overlayDrop // of a drop
	whose uint32      // number of the entry that counts; 0: nobody's
	mark  uint32
	frame []byte
	told  bool // dropped and counted; frame is what its sender is told
}

const (
	tcxNext     = 0xffffffff
	tcxDrop     = 2
	tcxRedirect = 7
)

func dropped2(whose uint32, cause overlayDrop) verdict {
	return verdict{code: tcxDrop, cause: cause, whose: whose}
}

// site is one host's tables.
type site struct {
	items   map[uint32]plan.Overlay
	nextHop nextHop
	index   int // of the interface
}

// slowFlow is what the outer headers take from the inner packet.
type slowFlow struct {
	version int // 4, 6; 0: not IP
	tos     byte
	hash    uint32
}

func flowOf(frame []byte) slowFlow {
	ports := func(next byte, at int) (n uint32) {
		if (next == 6 || next == 17 || next == 132) && len(frame) >= at+4 {
			n = binary.NativeEndian.Uint32(frame[at:])
		}
		return n
	}
	word := func(at int) uint64 { return uint64(binary.NativeEndian.Uint32(frame[at:])) }
	long := func(at int) uint64 { return binary.NativeEndian.Uint64(frame[at:]) }
	switch kind := binary.BigEndian.Uint16(frame[12:]); {
	case kind == 0x0800 && len(frame) >= 34:
		p := uint32(0)
		if frame[14]&15 == 5 && binary.BigEndian.Uint16(frame[20:])&0x3fff == 0 {
			p = ports(frame[23], 34)
		}
		return slowFlow{4, frame[15], mix(word(26)<<32|word(30), p, frame[23])}
	case kind == 0x86dd && len(frame) >= 54:
		a := long(22) ^ long(30)*hashA ^ (long(38)^long(46)*hashA)*hashB
		return slowFlow{6, frame[14]<<4 | frame[15]>>4, mix(a, ports(frame[20], 54), frame[20])}
	}
	return slowFlow{0, 0, mix(long(0)^word(8), uint32(binary.NativeEndian.Uint16(frame[12:])), 0)}
}

// slowSend is overlay_tx.
func (s *site) slowSend(id uint32, frame []byte) verdict {
	o, ok := s.items[id]
	if !ok {
		return dropped2(0, overlayDropDROP_UNKNOWN)
	}
	if s.nextHop.device == 0 || o.Interface == "nowhere" {
		return dropped2(id, overlayDropDROP_UNRESOLVED)
	}
	p, _ := protocolOf(o.Protocol)
	outer := 20
	if o.Remote.Is6() {
		outer = 40
	}
	if p.port != 0 {
		outer += 8
	}
	added := outer + len(p.header) // in front of what travels
	inside := frame
	if p.layer == 3 {
		inside = frame[14:]
	}
	most := s.nextHop.mtu - added
	if p.layer == 2 {
		most -= 14
	}
	if most = min(most, o.MTU); len(frame)-14 > most {
		if told := slowTell(frame, most); told != nil {
			return verdict{code: tcxRedirect, cause: overlayDropDROP_TOO_BIG, whose: id, mark: id, frame: told, told: true}
		}
		return dropped2(id, overlayDropDROP_TOO_BIG)
	}
	flow := flowOf(frame)
	if flow.version == 0 {
		if p.layer == 3 {
			return dropped2(id, overlayDropDROP_NOT_CARRIED)
		}
		inside = append(append([]byte(nil), inside...), make([]byte, max(0, 60-len(inside)))...)
	}
	return verdict{code: tcxRedirect, frame: s.slowHeaders(o, p, flow, inside)}
}

// slowTell is what the sender of a packet that is too big is told; nil: nothing.
func slowTell(frame []byte, mtu int) []byte {
	if frame[0]&1 != 0 || frame[6]&1 != 0 {
		return nil
	}
	told := append(append([]byte(nil), frame[6:12]...), frame[:6]...)
	p := frame[14:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		from, to := netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:]))
		if p[0] != 0x45 || p[6]&0x40 == 0 || p[6]&0x1f != 0 || p[7] != 0 || from.IsLoopback() || p[12] == 0 || p[12] >= 224 || p[16] >= 224 {
			return nil
		}
		if p[9] == 1 && p[20] != 0 && p[20] != 8 {
			return nil
		}
		ip := append([]byte{0x45, 0, 0, 56, 0, 0, 0x40, 0, 64, 1, 0, 0}, append(to.AsSlice(), from.AsSlice()...)...)
		binary.BigEndian.PutUint16(ip[10:], ^slowSum(ip))
		icmp := append([]byte{3, 4, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, p[:28]...)
		binary.BigEndian.PutUint16(icmp[2:], ^slowSum(icmp))
		return append(append(append(told, 8, 0), ip...), icmp...)
	case 0x86dd:
		if p[0]>>4 != 6 || p[8] == 0xff || p[8] == 0 || p[24] == 0xff || p[6] == 58 && p[40] < 128 {
			return nil
		}
		addresses := append(append([]byte(nil), p[24:40]...), p[8:24]...)
		icmp := append([]byte{2, 0, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, p[:48]...)
		pseudo := append(append([]byte(nil), addresses...), 0, 0, 0, 56, 0, 0, 0, 58) // RFC 8200 section 8.1
		binary.BigEndian.PutUint16(icmp[2:], ^slowSum(append(pseudo, icmp...)))
		ip := append([]byte{0x60, 0, 0, 0, 0, 56, 58, 64}, addresses...)
		return append(append(append(told, 0x86, 0xdd), ip...), icmp...)
	}
	return nil
}

// slowHeaders puts everything in front, from the inside out.
func (s *site) slowHeaders(o plan.Overlay, p *protocol, flow slowFlow, inside []byte) []byte {
	packet := append(slowTunnel(o, p, flow), inside...)
	next := p.next
	if next == 0 {
		next = map[int]byte{4: 4, 6: 41}[flow.version]
	}
	if p.port != 0 {
		source := 0xc000 + flow.hash&0xffff/4
		if p.rooted {
			source = 751 + flow.hash&0xffff*102/65536
		}
		udp := binary.BigEndian.AppendUint16(nil, uint16(source))
		udp = binary.BigEndian.AppendUint16(udp, p.port)
		udp = binary.BigEndian.AppendUint16(udp, uint16(len(packet)+8))
		packet = append(append(udp, 0, 0), packet...)
	}
	tos := byte(0xa0)
	if o.BestEffort {
		tos = 0
	}
	tos |= flow.tos & 3
	var ip []byte
	kind := uint16(0x0800)
	if o.Remote.Is4() {
		ip = []byte{0x45, tos, 0, 0, 0, 0, 0x40, 0, 64, next, 0, 0}
		binary.BigEndian.PutUint16(ip[2:], uint16(len(packet)+20))
		ip = append(append(ip, o.Local.AsSlice()...), o.Remote.AsSlice()...)
		binary.BigEndian.PutUint16(ip[10:], ^slowSum(ip))
	} else {
		kind = 0x86dd
		ip = binary.BigEndian.AppendUint32(nil, 6<<28|uint32(tos)<<20|flow.hash&0xfffff)
		ip = append(binary.BigEndian.AppendUint16(ip, uint16(len(packet))), next, 64)
		ip = append(append(ip, o.Local.AsSlice()...), o.Remote.AsSlice()...)
	}
	out := append(append([]byte(nil), s.nextHop.to[:]...), s.nextHop.from[:]...)
	return append(append(binary.BigEndian.AppendUint16(out, kind), ip...), packet...)
}

// slowTunnel is the tunnel header, written as the standards have it.
func slowTunnel(o plan.Overlay, p *protocol, flow slowFlow) []byte {
	id := uint32(o.VNI)
	with := func(first uint32, words ...uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, first)
		for _, w := range words {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	kind := map[int]uint32{4: 0x0800, 6: 0x86dd}[flow.version]
	next := map[int]uint32{4: 4, 6: 41}[flow.version]
	switch p.name {
	case vnet.VXLAN, vnet.LISP:
		return with(0x08000000, id<<8)
	case vnet.NSH:
		return with(0x0c000004, id<<8, 0x0fc60103, id<<8|255, 0, 0, 0, 0)
	case vnet.Geneve:
		return with(0x00006558, id<<8)
	case vnet.NVGRE:
		return with(0x20006558, id<<8|flow.hash&0xff)
	case vnet.GRETAP:
		return with(0x00006558)
	case vnet.GRE:
		return with(kind)
	case vnet.GUE:
		return with(next << 16)
	}
	return nil // IPIP
}

func slowSum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// slowOuter is an outer header as slowReceive reads it.
type slowOuter struct {
	from, to netip.Addr
	at, size int
	next     byte
	tos      byte
	damaged  bool
}

func slowRead(frame []byte) (o slowOuter, ok bool) {
	switch kind := binary.BigEndian.Uint16(frame[12:]); {
	case kind == 0x0800 && len(frame) >= 34:
		if binary.BigEndian.Uint16(frame[20:])&0x1fff != 0 {
			return o, false
		}
		o.from, _ = netip.AddrFromSlice(frame[26:30])
		o.to, _ = netip.AddrFromSlice(frame[30:34])
		o.at, o.size = 34, 14+int(binary.BigEndian.Uint16(frame[16:]))
		o.next, o.tos = frame[23], frame[15]
		o.damaged = frame[14] != 0x45 || frame[20]&0x20 != 0 || slowSum(frame[14:34]) != 0xffff
	case kind == 0x86dd && len(frame) >= 54:
		o.from, _ = netip.AddrFromSlice(frame[22:38])
		o.to, _ = netip.AddrFromSlice(frame[38:54])
		o.at, o.size = 54, 54+int(binary.BigEndian.Uint16(frame[18:]))
		o.next, o.tos = frame[20], frame[14]<<4|frame[15]>>4
		o.damaged = frame[14]>>4 != 6
	default:
		return o, false
	}
	return o, true
}

// slowReceive is overlay_rx, on the interface with an index.
func (s *site) slowReceive(index int, frame []byte) verdict {
	o, ok := slowRead(frame)
	if !ok {
		return verdict{code: tcxNext}
	}
	refuse := func(cause overlayDrop) verdict {
		for _, item := range s.items {
			if item.Local == o.to || address(item.Local) == address(o.to) {
				return dropped2(0, cause)
			}
		}
		return verdict{code: tcxNext}
	}
	rest := frame[o.at:]
	source, udpLength := 0, -1
	var p *protocol
	version := 0
	switch o.next {
	case 17:
		if len(rest) < 8 {
			return verdict{code: tcxNext}
		}
		source, udpLength = int(binary.BigEndian.Uint16(rest)), int(binary.BigEndian.Uint16(rest[4:]))
		for i := range protocols {
			if protocols[i].port != 0 && protocols[i].port == binary.BigEndian.Uint16(rest[2:]) {
				p = &protocols[i]
			}
		}
		rest = rest[8:]
	case 47:
		if len(rest) < 4 {
			return verdict{code: tcxNext}
		}
		p, version = slowGRE(rest)
	case 4, 41:
		p, _ = protocolOf(vnet.IPIP)
		version = map[byte]int{4: 4, 41: 6}[o.next]
	}
	if p == nil {
		return verdict{code: tcxNext}
	}
	if o.damaged || o.size > len(frame) || udpLength >= 0 && udpLength != o.size-o.at {
		return refuse(overlayDropDROP_MALFORMED)
	}
	id, length, v, ok := slowHeader(p, rest)
	if !ok {
		return refuse(overlayDropDROP_MALFORMED)
	}
	if version == 0 {
		version = v
	}
	at := len(frame) - len(rest) + length
	if p.port != bpf.PortVXLAN && at >= o.size {
		return refuse(overlayDropDROP_MALFORMED)
	}
	return s.slowAccept(index, frame, o, p, id, source, at, version, refuse)
}

// slowGRE tells GRE's protocols apart.
func slowGRE(rest []byte) (*protocol, int) {
	name, version := vnet.Encapsulation(""), 0
	key := rest[0]&0x20 != 0
	switch kind := binary.BigEndian.Uint16(rest[2:]); {
	case kind == 0x6558 && key:
		name = vnet.NVGRE
	case kind == 0x6558:
		name = vnet.GRETAP
	case kind == 0x0800 && !key:
		name, version = vnet.GRE, 4
	case kind == 0x86dd && !key:
		name, version = vnet.GRE, 6
	default:
		return nil, 0
	}
	p, _ := protocolOf(name)
	return p, version
}

// slowHeader checks a tunnel header. version is what it says of the inner
// packet: 4, 6; 0: nothing; -1: something else.
func slowHeader(p *protocol, h []byte) (id uint32, length, version int, ok bool) {
	if len(h) < len(p.header) && p.port == bpf.PortVXLAN {
		return 0, 0, 0, false
	}
	has := func(n int) bool { return len(h) >= n }
	word := func(at int) uint32 { return binary.BigEndian.Uint32(h[at:]) }
	switch p.name {
	case vnet.VXLAN:
		return word(4) >> 8, 8, 0, word(0) == 0x08000000 && word(4)&0xff == 0
	case vnet.LISP:
		return lead(has(8), func() uint32 { return word(4) >> 8 }), 8, 0, has(8) && h[0] == 8
	case vnet.NSH:
		if !has(16) || word(0) != 0x0c000004 || h[9]&0x3f < 6 || h[11] != 3 {
			return 0, 0, 0, false
		}
		return word(12) >> 8, 8 + int(h[9]&0x3f)*4, 0, true
	case vnet.Geneve:
		if !has(8) || word(0)&0xc0c0ffff != 0x6558 {
			return 0, 0, 0, false
		}
		return word(4) >> 8, 8 + int(h[0]&0x3f)*4, 0, true
	case vnet.NVGRE:
		return lead(has(8), func() uint32 { return word(4) >> 8 }), 8, 0, has(8) && word(0) == 0x20006558
	case vnet.GRETAP:
		return 0, 4, 0, has(4) && word(0) == 0x6558
	case vnet.GRE:
		return 0, 4, 0, has(4) && word(0)>>16 == 0
	case vnet.GUE:
		if !has(4) || h[0]&0xe0 != 0 || h[2] != 0 || h[3] != 0 {
			return 0, 0, 0, false
		}
		return 0, 4 + int(h[0]&0x1f)*4, map[byte]int{4: 4, 41: 6}[h[1]] - lead2(h[1] != 4 && h[1] != 41), true
	}
	return 0, 0, 0, true // IPIP
}

func lead(there bool, f func() uint32) uint32 {
	if !there {
		return 0
	}
	return f()
}

func lead2(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find is the tunnel that a packet belongs to.
//
// A sender's address goes by a number of 32 bits: a stranger with the same one
// (one in ten million random packets was) is told apart afterwards.
func (s *site) find(p *protocol, id uint32, o slowOuter) (uint32, plan.Overlay, bool) {
	for number, item := range s.items {
		q, _ := protocolOf(item.Protocol)
		if q != p || item.Interface == "nowhere" {
			continue
		}
		if p.id != none && number == id || p.id == none && senderNumber(address(item.Remote)) == senderNumber(address(o.from)) {
			return number, item, true
		}
	}
	return 0, plan.Overlay{}, false
}

func (s *site) slowAccept(index int, frame []byte, o slowOuter, p *protocol, id uint32, source, at, version int, refuse func(overlayDrop) verdict) verdict {
	number, item, ok := s.find(p, id, o)
	switch {
	case !ok || address(item.Local) != address(o.to):
		return refuse(overlayDropDROP_UNKNOWN)
	case address(item.Remote) != address(o.from):
		return dropped2(number, overlayDropDROP_SENDER)
	case p.rooted && source >= 1024:
		return dropped2(number, overlayDropDROP_PORT)
	case index != s.index:
		return dropped2(number, overlayDropDROP_INTERFACE)
	}
	inside := frame[at:o.size]
	if o.size < at {
		return dropped2(number, overlayDropDROP_MALFORMED)
	}
	var made []byte
	if p.layer == 2 {
		if len(inside) < 14 {
			return dropped2(number, overlayDropDROP_MALFORMED)
		}
		made = append(made, inside...)
	} else {
		kind := []byte{8, 0}
		if inside[0]>>4 == 6 {
			kind = []byte{0x86, 0xdd}
		}
		if v := int(inside[0] >> 4); v != 4 && v != 6 || version != 0 && v != version {
			return dropped2(number, overlayDropDROP_MALFORMED)
		}
		to, from, _ := strings.Cut(item.Ethernet, " ")
		a, _ := net.ParseMAC(to)
		b, _ := net.ParseMAC(from)
		made = append(append(append(append(made, a...), b...), kind...), inside...)
	}
	least := 20 // of what the kernel leaves behind the Ethernet header
	switch kind := binary.BigEndian.Uint16(made[12:]); {
	case kind == 0x86dd, kind != 0x0800 && o.at == 54:
		least = 40
	}
	if len(made)-14 < least {
		return dropped2(number, overlayDropDROP_MALFORMED)
	}
	if !slowMark(made, o.tos&3) {
		return dropped2(number, overlayDropDROP_CONGESTED)
	}
	return delivered(made, number)
}

// slowDecapped is overlay_decapped.
func (s *site) slowDecapped(frame []byte, mark uint32) verdict {
	number := mark &^ (1 << 30)
	item, ok := s.items[number]
	p, _ := protocolOf(item.Protocol)
	if mark == number || !ok || p.name != vnet.VXLAN || item.Interface == "nowhere" {
		return dropped2(0, overlayDropDROP_UNKNOWN)
	}
	return delivered(frame, number)
}

// delivered is what the far end of a trunk gets.
func delivered(frame []byte, mark uint32) verdict {
	if kind := binary.BigEndian.Uint16(frame[12:]); kind != 0x0800 && kind != 0x86dd {
		mark |= 1 << 31
	}
	return verdict{code: tcxRedirect, frame: frame, mark: mark}
}

// slowMark is RFC 6040, figure 4.
func slowMark(frame []byte, outer byte) bool {
	kind := binary.BigEndian.Uint16(frame[12:])
	get := func() byte {
		if kind == 0x0800 {
			return frame[15] & 3
		}
		return frame[15] >> 4 & 3
	}
	if kind != 0x0800 && kind != 0x86dd {
		return true
	}
	inner := get()
	switch {
	case outer == 3 && inner == 0:
		return false
	case outer == 3, outer == 1 && inner == 2:
	default:
		return true
	}
	if kind == 0x86dd {
		frame[15] = frame[15]&^0x30 | outer<<4
		return true
	}
	// The sum is updated, not made anew: a wrong one stays wrong.
	was := binary.BigEndian.Uint16(frame[14:])
	frame[15] = frame[15]&^3 | outer
	is := binary.BigEndian.Uint16(frame[14:])
	sum := uint32(^binary.BigEndian.Uint16(frame[24:])) + uint32(^was) + uint32(is)
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(frame[24:], ^uint16(sum))
	return true
}
