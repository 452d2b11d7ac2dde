package ofload

import (
	"encoding/binary"
	"time"

	"sublet/openflow/of13"
)

// Frames that are handed over: Ethernet of an EtherType for experiments (IEEE
// 802 Std 802-2014, 9.2.3), with the packet's number.
const (
	etherType = 0x88b5
	numberAt  = 14
	ports     = 4
)

// send hands over one packet, due at an instant.
func (g *generator) send(p *peer, due time.Time) {
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.slots[slot] = pending{due: due, live: true}
	from, to := g.addresses(p)
	putAddress(g.frame, to)
	putAddress(g.frame[6:], from)
	binary.BigEndian.PutUint16(g.frame[12:], etherType)
	binary.BigEndian.PutUint32(g.frame[numberAt:], slot)
	g.fields[0] = of13.Exact(of13.InPort, from%ports+1)
	g.in = of13.PacketIn{Buffer: slot, Total: uint16(len(g.frame)), Reason: of13.PacketNoMatch, Match: of13.Match{Fields: g.fields[:]}, Data: g.frame}
	p.conn.Send(0, &g.in)
	if g.state == counting {
		g.result.Sent++
	}
}

// addresses are of sender and receiver behind a switch, on different ports.
func (g *generator) addresses(p *peer) (from, to uint64) {
	const local = 0x02 << 40
	base := local | p.dpid<<20
	if g.config.Hosts == 0 {
		r := g.random.Uint64() & (1<<40 - 1) &^ 3
		return local | r, local | g.random.Uint64()&(1<<40-1)&^3 | 1
	}
	n := uint64(g.config.Hosts)
	p.sequence++
	from = uint64(p.sequence) % n
	to = (from + 1) % n
	return base | from, base | to
}

func putAddress(b []byte, a uint64) {
	binary.BigEndian.PutUint16(b, uint16(a>>32))
	binary.BigEndian.PutUint32(b[2:], uint32(a))
}
