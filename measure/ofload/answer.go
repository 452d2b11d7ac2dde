package ofload

import (
	"encoding/binary"
	"fmt"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
	"sublet/openflow/poll"
)

// Message answers as a switch would, and counts the controller's answers.
func (g *generator) Message(c *poll.Conn, h of13.Header, m of13.Message) {
	p, ok := c.Data.(*peer)
	if !ok {
		return // that of the nonsense
	}
	switch m := m.(type) {
	case *of13.FlowMod:
		g.answer(p, m.Buffer, true)
	case *of13.PacketOut:
		number := m.Buffer
		if number == of13.NoBuffer && len(m.Data) >= numberAt+4 && binary.BigEndian.Uint16(m.Data[12:]) == etherType {
			number = binary.BigEndian.Uint32(m.Data[numberAt:])
		}
		g.answer(p, number, false)
	case *of13.ErrorMessage:
		g.result.Errors++
	default:
		g.reply(p, h, m)
	}
}

// answer counts one for a packet that waits.
func (g *generator) answer(p *peer, number uint32, flow bool) {
	if uint64(number) >= uint64(len(p.slots)) || !p.slots[number].live {
		return
	}
	now := time.Now()
	due := p.slots[number].due
	p.slots[number].live = false
	p.free = append(p.free, number)
	if g.state == counting {
		g.latency.add(now.Sub(due))
		g.result.Responses++
		p.answered++
		p.since++
		if p.first.IsZero() {
			p.first = now
		}
		if flow {
			g.result.FlowMods++
		} else {
			g.result.PacketOuts++
		}
	}
	g.refill(p, now)
}

// reply says of a played switch what controllers ask.
func (g *generator) reply(p *peer, h of13.Header, m of13.Message) {
	switch m := m.(type) {
	case *of13.Plain:
		switch m.Kind {
		case of13.TypeFeaturesRequest:
			p.conn.Send(h.XID, g.features(p))
			if p.greeted.IsZero() {
				p.greeted = time.Now()
			}
		case of13.TypeBarrierRequest:
			p.conn.Send(h.XID, &of13.Plain{Kind: of13.TypeBarrierReply})
		case of13.TypeGetConfigRequest:
			p.conn.Send(h.XID, &of13.Config{Kind: of13.TypeGetConfigReply, MissSendBytes: 128})
		}
	case *of13.Echo:
		if !m.Reply {
			p.conn.Send(h.XID, &of13.Echo{Reply: true, Data: m.Data})
		}
	case *of13.Role:
		p.conn.Send(h.XID, &of13.Role{Reply: true, Role: m.Role, Generation: m.Generation})
	case *of13.MultipartRequest:
		reply := &of13.MultipartReply{Kind: m.Kind}
		switch m.Kind {
		case of13.MultipartPortDesc:
			reply.PortDescs = p.ports()
		case of13.MultipartDesc:
			reply.Desc = of13.Desc{Manufacturer: "Sublet", Hardware: "played switch", Software: "sublet bench openflow"}
		}
		p.conn.Send(h.XID, reply)
	}
}

// features are of a switch of 254 tables, or of one with its ports.
func (g *generator) features(p *peer) of13.Message {
	m := of13.FeaturesReply{DatapathID: p.dpid, Buffers: uint32(len(p.slots)), Tables: 254}
	if g.config.Version == of10.Version {
		return &of10.FeaturesReply{FeaturesReply: m, Ports: p.ports()}
	}
	return &m
}

func (p *peer) ports() (list []of13.Port) {
	for n := range uint32(ports) {
		list = append(list, of13.Port{Number: n + 1, HWAddr: [6]byte{2, byte(n + 1), 0, 0, 0, byte(p.dpid)}, Name: fmt.Sprintf("port%d", n+1), State: of13.PortStateLive})
	}
	return list
}

// annoy sends nonsense over a connection of its own: lengths that lie, unknown
// types, random bytes.
func (g *generator) annoy() {
	if g.nonsense == nil {
		conn, err := g.loop.Dial(g.config.Connect, nil)
		if err != nil {
			return
		}
		g.nonsense = conn
		conn.Version = g.config.Version
		conn.Send(0, g.hello())
	}
	raw := make([]byte, 8+g.random.IntN(64))
	for i := range raw {
		raw[i] = byte(g.random.Uint32())
	}
	raw[0], raw[2] = g.config.Version, 0
	raw[3] = byte(len(raw)) // mostly true, so that what is inside is read
	if g.random.IntN(8) == 0 {
		raw[3] = byte(g.random.IntN(of13.HeaderLen))
	}
	g.nonsense.Write(raw)
}
