package pipeline

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

const (
	headroom = 256 // for headers that are pushed
	minFrame = 60  // of Ethernet, without its check sequence
)

// packet is a frame on its way through the tables. Offsets are from the frame's
// beginning; 0 stands for a header that is not there.
type packet struct {
	room  []byte // frame, with room for headers before it
	b     []byte // frame
	key   Key
	stale bool // key and offsets are of the frame as it was
	short bool // something was popped: it may be shorter than Ethernet allows

	// headless says that there is no Ethernet: its addresses are zeros, and its type is
	// that of the packet.
	headless bool

	typeAt  int // of the Ethernet type after VLAN tags
	l3, l4  int
	protoAt int  // of the byte that names the protocol of l4
	routed  bool // by a routing header: the destination in checksums is another one
	part    bool // a fragment, the first one too
	queue   uint32
	inPort  uint32

	segments uint64 // packets that it stands for
	did      changes
}

// load takes a copy of a frame.
func (p *packet) load(frame []byte, port uint32) {
	if n := headroom + len(frame) + minFrame; cap(p.room) < n {
		p.room = make([]byte, n+2048)
	}
	p.b = p.room[headroom : headroom+len(frame)]
	copy(p.b, frame)
	p.inPort, p.queue, p.short, p.headless = port, 0, false, false
	p.segments, p.did = 1, changes{}
	p.key[0], p.key[1] = 0, 0
	p.parse()
}

// from makes p a copy of another packet.
func (p *packet) from(o *packet) {
	room := p.room
	if cap(room) < headroom+len(o.b)+minFrame {
		room = make([]byte, headroom+len(o.b)+2048)
	}
	*p = *o
	p.room = room
	p.b = room[headroom : headroom+len(o.b)]
	copy(p.b, o.b)
}

// headStart is where the frame is in its room.
func (p *packet) headStart() int { return cap(p.room) - cap(p.b) }

// insert makes room for n bytes at an even offset. What would not fit into the
// room before the frame is not inserted, and false is returned.
func (p *packet) insert(at, n int) bool {
	start := p.headStart()
	if start < n {
		return false
	}
	p.b = p.room[:cap(p.room)][start-n : start+len(p.b)]
	copy(p.b, p.b[n:n+at])
	clear(p.b[at : at+n])
	p.stale = true
	return true
}

// remove takes n bytes out.
func (p *packet) remove(at, n int) {
	copy(p.b[n:], p.b[:at])
	p.b = p.b[n:]
	p.stale, p.short = true, true
}

// finish gives the frame as it leaves: at least as long as Ethernet asks, if it
// is shorter because something was popped.
func (p *packet) finish() []byte {
	for p.short && len(p.b) < minFrame {
		p.b = append(p.b, 0)
	}
	return p.b
}

func (p *packet) u16(at int) uint16 { return binary.BigEndian.Uint16(p.b[at:]) }
func (p *packet) u32(at int) uint32 { return binary.BigEndian.Uint32(p.b[at:]) }

func (p *packet) has(at, n int) bool { return at+n <= len(p.b) }

func (p *packet) fresh() {
	if p.stale {
		p.parse()
	}
}

// parse reads all fields but metadata and tunnel, which are not in the frame.
func (p *packet) parse() {
	p.key = Key{p.key[0], p.key[1]}
	p.key.put(of13.InPort, uint64(p.inPort))
	p.key.put(of13.InPhyPort, uint64(p.inPort))
	p.typeAt, p.l3, p.l4, p.protoAt, p.routed, p.stale, p.part = 0, 0, 0, 0, false, false, false
	if !p.has(0, 14) {
		return
	}
	k := &p.key
	k.put128(of13.EthDst, of13.ReadU128(p.b[:6]))
	k.put128(of13.EthSrc, of13.ReadU128(p.b[6:12]))
	at := 12
	for isVLAN(p.u16(at)) && p.has(at, 6) {
		if at == 12 {
			tci := uint64(p.u16(14))
			k.put(of13.VLANVID, of13.VLANPresent|tci&0xfff)
			k.put(of13.VLANPCP, tci>>13)
		}
		at += 4
	}
	p.typeAt, p.l3 = at, at+2
	k.put(of13.EthType, uint64(p.u16(at)))
	p.network(p.u16(at))
}

func isVLAN(kind uint16) bool { return kind == 0x8100 || kind == 0x88a8 }
func isMPLS(kind uint16) bool { return kind == 0x8847 || kind == 0x8848 }

func (p *packet) network(kind uint16) {
	k, at := &p.key, p.l3
	switch {
	case kind == 0x0800 && p.has(at, 20):
		p.ipv4()
	case kind == 0x86dd && p.has(at, 40):
		p.ipv6()
	case kind == 0x0806 && p.has(at, 28):
		k.put(of13.ARPOp, uint64(p.u16(at+6)))
		k.put128(of13.ARPSHA, of13.ReadU128(p.b[at+8:at+14]))
		k.put(of13.ARPSPA, uint64(p.u32(at+14)))
		k.put128(of13.ARPTHA, of13.ReadU128(p.b[at+18:at+24]))
		k.put(of13.ARPTPA, uint64(p.u32(at+24)))
	case isMPLS(kind) && p.has(at, 4):
		shim := uint64(p.u32(at))
		k.put(of13.MPLSLabel, shim>>12)
		k.put(of13.MPLSTC, shim>>9&7)
		k.put(of13.MPLSBOS, shim>>8&1)
	case kind == of13.EthTypeNSH:
		p.service()
	case kind == 0x88e7 && p.has(at, 4):
		k.put(of13.PBBISID, uint64(p.u32(at)&0xffffff))
	}
}

func (p *packet) ipv4() {
	k, at := &p.key, p.l3
	k.put(of13.IPv4Src, uint64(p.u32(at+12)))
	k.put(of13.IPv4Dst, uint64(p.u32(at+16)))
	k.put(of13.IPProto, uint64(p.b[at+9]))
	k.put(of13.IPDSCP, uint64(p.b[at+1]>>2))
	k.put(of13.IPECN, uint64(p.b[at+1]&3))
	p.protoAt = at + 9
	p.part = p.u16(at+6)&0x3fff != 0
	head := int(p.b[at]&15) * 4
	if head >= 20 && p.u16(at+6)&0x1fff == 0 { // a later fragment has no ports
		p.transport(at+head, p.b[at+9])
	}
}

// transport reads ports, or types and codes, at an offset.
func (p *packet) transport(at int, proto byte) {
	k := &p.key
	switch {
	case (proto == 6 && p.has(at, 20)) || (proto == 17 && p.has(at, 8)) || (proto == 132 && p.has(at, 12)):
		k.put(of13.TCPSrc, uint64(p.u16(at)))
		k.put(of13.TCPDst, uint64(p.u16(at+2)))
	case (proto == 1 || proto == 58) && p.has(at, 4):
		k.put(of13.ICMPv4Type, uint64(p.b[at]))
		k.put(of13.ICMPv4Code, uint64(p.b[at+1]))
	default:
		return
	}
	if p.l4 = at; proto == 58 && p.has(at, 24) && p.key.Get(of13.EthType) == 0x86dd {
		p.neighbour(at)
	}
}

// neighbour reads solicitations and advertisements.
func (p *packet) neighbour(at int) {
	if p.b[at] != 135 && p.b[at] != 136 {
		return
	}
	p.key.put128(of13.NDTarget, of13.ReadU128(p.b[at+8:at+24]))
	if option := p.linkAddress(); option > 0 {
		id := of13.NDSLL
		if p.b[at] == 136 {
			id = of13.NDTLL
		}
		p.key.put128(id, of13.ReadU128(p.b[option:option+6]))
	}
}

// linkAddress is where the link-layer address of a solicitation's source, or of
// an advertisement's target, is; 0: there is none.
func (p *packet) linkAddress() int {
	want := p.b[p.l4] - 134 // option 1 of type 135, option 2 of type 136
	for at := p.l4 + 24; p.has(at, 8); at += int(p.b[at+1]) * 8 {
		if p.b[at] == want && p.b[at+1] == 1 {
			return at + 2
		}
		if p.b[at+1] == 0 {
			break
		}
	}
	return 0
}
