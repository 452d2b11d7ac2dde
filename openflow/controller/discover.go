package controller

import (
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// discover sends the frames that are due of a switch, and ends links that carry
// none any longer.
func (n *Network) discover(m *member, now time.Time) {
	for number, p := range m.ports {
		if !p.up {
			continue
		}
		if !p.heard.IsZero() && now.Sub(p.heard) > linkDead {
			n.unlink(m, p)
		}
		if now.Before(p.next) {
			continue
		}
		if p.sent++; p.sent == 1 {
			p.first = now
		}
		p.next = now.Add(roundEvery)
		if p.sent < 3 {
			p.next = now.Add(soon)
		}
		m.s.Send(&of13.PacketOut{
			Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: []of13.Action{of13.Output(number)},
			Data: n.key.frame(place{m.s.DatapathID, number}, p.HWAddr, n.round),
		})
	}
}

// discovered is a frame of discovery at a port.
func (n *Network) discovered(m *member, p *port, at place, frame []byte, now time.Time) {
	from, ok := n.key.read(frame, n.round)
	if !ok || from == at {
		return
	}
	if p.heard.IsZero() || p.from != from {
		n.unlink(m, p)
		p.from = from
		m.links++
		n.forgetAt(at, now) // who was seen there is behind the other switch
		n.version++
		n.changed()
		n.log.Info("link", "from", name(from.dpid), "port", from.port, "to", name(at.dpid), "at port", at.port)
		if m.links == 1 {
			m.unite()
		}
	}
	p.heard = now
}

// unite takes a switch that was alone into the network: the entries that it has
// from then go.
func (m *member) unite() {
	if m.alone != nil && m.s.Version() != of10.Version {
		m.s.Send(deletion(learntCookie, ^uint64(0)))
	}
}

// unlink ends what is known of a port's other end.
func (n *Network) unlink(m *member, p *port) {
	if p.heard.IsZero() {
		return
	}
	n.log.Info("link gone", "from", name(p.from.dpid), "port", p.from.port, "to", name(m.s.DatapathID), "at port", p.Number)
	p.heard, p.from = time.Time{}, place{}
	m.links--
	p.first, p.sent, p.next = time.Time{}, 0, time.Time{} // it is asked again before it leads to stations
	n.version++
	n.changed()
}

// peer is the port at the other end of a link, if both ends have heard of each
// other.
func (n *Network) peer(at place, p *port) (place, bool) {
	if p.heard.IsZero() || !p.up {
		return place{}, false
	}
	m := n.switches[p.from.dpid]
	if m == nil {
		return place{}, false
	}
	q := m.ports[p.from.port]
	return p.from, q != nil && q.up && !q.heard.IsZero() && q.from == at
}
