package pipeline

import "sublet/openflow/of13"

// maxDepth bounds groups within groups; loops are refused when groups change.
const maxDepth = 16

// Bounds of what is done with one packet, or one packet-out. Groups of two buckets that
// lead to one another have 2 to the power of their number, and a packet-out may lead as
// often through the tables as it has room for actions.
const (
	maxMet  = 4096    // buckets
	maxDone = 1 << 16 // actions
	maxSent = 4096    // frames
)

// maxPacketIn is the most of a packet that a message has room for.
const maxPacketIn = of13.MaxLen - 128

// apply does actions in their order. It is false if the packet may not go on.
func (s *Switch) apply(r *run, list []of13.Action, depth int) bool {
	for i := range list {
		if s.done == maxDone {
			return false
		}
		if s.done++; !s.do(r, &list[i], depth) {
			return false
		}
	}
	return true
}

func (s *Switch) do(r *run, a *of13.Action, depth int) bool {
	switch a.Type {
	case of13.ActionOutput:
		s.output(r, a, depth)
	case of13.ActionGroup:
		s.group(r, a.Number, depth)
	case of13.ActionSetQueue:
		r.queue = a.Number
	case of13.ActionSetField:
		s.setField(r, &a.Field)
	case of13.ActionDecMPLSTTL, of13.ActionDecNWTTL:
		if r.packet.fresh(); !r.decTTL(a.Type == of13.ActionDecMPLSTTL) {
			return s.invalidTTL(r)
		}
		s.acted(r, a)
	case of13.ActionEncap, of13.ActionDecap:
		r.packet.fresh()
		s.cannot(CauseAction)
		return r.wrap(a)
	case of13.ActionDecNSHTTL:
		return s.decNSH(r)
	default:
		r.packet.fresh()
		if a.Loose && r.key.Get(of13.VLANVID) != 0 {
			return true // it has the tag
		}
		if r.headless && behindEthernet(a.Type) {
			return true
		}
		r.tag(a)
		s.acted(r, a)
	}
	return true
}

// invalidTTL tells controllers of a packet whose time is over; it does not go on.
func (s *Switch) invalidTTL(r *run) (on bool) {
	r.reason = of13.PacketInvalidTTL
	s.cannot(CauseController)
	s.toController(r, s.miss)
	return false
}

// setField sets a field, and notes that.
func (s *Switch) setField(r *run, f *of13.Field) {
	if r.setField(f) && s.trace != nil && r.did.noted {
		s.trace.set(&r.packet, f)
	}
}

// acted notes an action on tags or times to live that was done.
func (s *Switch) acted(r *run, a *of13.Action) {
	if s.trace != nil && r.did.noted {
		s.trace.acted(&r.packet, a)
	}
}

// behindEthernet says whether an action is on tags that follow the addresses.
func behindEthernet(kind uint16) bool {
	return kind >= of13.ActionPushVLAN && kind <= of13.ActionPopMPLS || kind == of13.ActionPushPBB || kind == of13.ActionPopPBB
}

// tag does what changes tags and times to live.
func (p *packet) tag(a *of13.Action) {
	switch a.Type {
	case of13.ActionCopyTTLOut, of13.ActionCopyTTLIn:
		p.copyTTL(a.Type == of13.ActionCopyTTLIn)
	case of13.ActionSetMPLSTTL, of13.ActionSetNWTTL:
		p.setTTL(a.Type == of13.ActionSetMPLSTTL, a.TTL)
	case of13.ActionPushVLAN:
		p.pushVLAN(a.EtherType)
	case of13.ActionPopVLAN:
		p.popVLAN()
	case of13.ActionPushMPLS:
		p.pushMPLS(a.EtherType)
	case of13.ActionPopMPLS:
		p.popMPLS(a.EtherType)
	case of13.ActionPushPBB:
		p.pushPBB(a.EtherType)
	case of13.ActionPopPBB:
		p.popPBB()
	}
}

// output sends a packet to a port that may be a reserved one.
func (s *Switch) output(r *run, a *of13.Action, depth int) {
	switch a.Number {
	case of13.PortController:
		s.toController(r, a.MaxLen)
	case of13.PortInPort:
		s.send(r, r.inPort)
	case of13.PortAll, of13.PortFlood:
		for _, n := range s.order {
			if n != r.inPort {
				s.send(r, n)
			}
		}
	case of13.PortNormal:
		s.normal(r)
	case of13.PortTable:
		if r.entry == nil && depth == 0 { // a packet-out, outside of groups
			c := s.take(maxDepth + 1)
			c.from(&r.packet)
			c.now = r.now
			s.classify(c)
		}
	default:
		if a.Number != r.inPort {
			s.send(r, a.Number)
		}
	}
}

// send sends a packet out of a port that is there and up.
func (s *Switch) send(r *run, number uint32) {
	if s.sent == maxSent {
		return
	}
	s.sent++
	p := s.ports[number]
	if !p.sends(&r.packet) {
		s.see(Seen{What: SeenNoOutput, Depth: r.depth, Number: number})
	}
	if p == nil {
		return
	}
	if !p.sends(&r.packet) {
		s.count(&r.packet, &p.stats.TxDropped, nil, nil)
		return
	}
	if s.trace != nil {
		s.trace.output(r, number)
	}
	s.see(Seen{What: SeenOutput, Depth: r.depth, Number: number, Queue: r.queue})
	frame := r.finish()
	s.count(&r.packet, &p.stats.TxPackets, &p.stats.TxBytes, nil)
	s.sink.Send(number, r.queue, frame)
}

// sends says whether a port takes a packet.
func (p *port) sends(o *packet) bool {
	return p != nil && p.Config&(of13.PortConfigDown|of13.PortConfigNoFwd) == 0 && p.State&of13.PortStateDown == 0 && !o.headless
}

// toController sends a packet-in, with the reason of the run and up to most
// bytes of the packet, which is kept if that is not all of it.
func (s *Switch) toController(r *run, most uint16) {
	s.cannot(CauseController)
	s.see(Seen{What: SeenController, Depth: r.depth, Reason: r.reason, Table: r.table})
	if s.thought {
		return
	}
	if p := s.ports[r.inPort]; p != nil && p.Config&of13.PortConfigNoPacketIn != 0 {
		return
	}
	if m := s.meters[of13.MeterController]; m != nil && !m.pass(r.now, &r.packet) {
		return
	}
	frame := r.finish()
	m := of13.PacketIn{Buffer: of13.NoBuffer, Total: uint16(len(frame)), Reason: r.reason, Table: r.table, Cookie: ^uint64(0), Data: frame[:min(len(frame), int(most), maxPacketIn)]}
	if len(m.Data) < len(frame) && most != of13.NoMaxLen {
		m.Buffer = s.kept.keep(frame, r.inPort)
	}
	if r.entry != nil && !r.late { // sets and buckets have none (7.4.1)
		m.Cookie = r.entry.Cookie
	}
	m.Unmatched = r.entry == nil && r.reason == of13.PacketNoMatch
	m.Match.Fields = append(m.Match.Fields, of13.Exact(of13.InPort, uint64(r.inPort)))
	for i, id := range []of13.FieldID{of13.Metadata, of13.TunnelID} {
		if v := r.key[i]; v != 0 {
			m.Match.Fields = append(m.Match.Fields, of13.Exact(id, v))
		}
	}
	s.sink.PacketIn(&m)
}
