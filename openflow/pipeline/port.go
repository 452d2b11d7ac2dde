package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// SetPort adds a port or says what of it has changed: what it is called and
// whether its link is down. Its configuration is a matter of controllers.
func (s *Switch) SetPort(now int64, d of13.Port) {
	reason := of13.PortModified
	p := s.ports[d.Number]
	if p == nil {
		p, reason = &port{created: now, stats: s.memory.Port(d.Number)}, of13.PortAdded
		s.ports[d.Number] = p
		s.order = append(s.order, d.Number)
		slices.Sort(s.order)
	}
	before := p.Port
	d.Config, d.Advertised = p.Config, p.Advertised&d.Supported
	p.Port = d
	if p.describe(); p.Port == before {
		return
	}
	s.invalidate(every)
	s.sink.PortStatus(&of13.PortStatus{Reason: reason, Port: p.Port})
}

// RemovePort takes a port away.
func (s *Switch) RemovePort(number uint32) {
	if p := s.ports[number]; p != nil {
		s.invalidate(every)
		*p.stats = of13.PortStats{}
		delete(s.ports, number)
		s.order = slices.DeleteFunc(s.order, func(n uint32) bool { return n == number })
		s.sink.PortStatus(&of13.PortStatus{Reason: of13.PortDeleted, Port: p.Port})
	}
}

// describe keeps the state of liveness true: what fast failover watches.
func (p *port) describe() {
	p.State &^= of13.PortStateLive
	if p.works() {
		p.State |= of13.PortStateLive
	}
}

// portConfigKnown is what controllers may change of a port.
const portConfigKnown = of13.PortConfigDown | of13.PortConfigNoRecv | of13.PortConfigNoFwd | of13.PortConfigNoPacketIn

func (s *Switch) portMod(m *of13.PortMod) error {
	p := s.ports[m.Port]
	switch {
	case p == nil:
		return of13.PortModFailedBadPort
	case p.HWAddr != m.HWAddr:
		return of13.PortModFailedBadHWAddr
	case m.Mask&^portConfigKnown != 0:
		return of13.PortModFailedBadConfig
	case m.Advertise&^p.Supported != 0:
		return of13.PortModFailedBadAdvertise
	}
	before := p.Port
	s.undo(func() { p.Port = before; s.keepPort(p); s.alive = nil })
	p.Config = p.Config&^m.Mask | m.Config&m.Mask
	if m.Advertise != 0 { // else it stays (OpenFlow 1.3.5, 7.3.4.3); nothing is negotiated by devices of the kernel's
		p.Advertised = m.Advertise
	}
	s.keepPort(p)
	if p.describe(); p.Port != before {
		s.invalidate(every)
		s.afterwards(func() { s.sink.PortStatus(&of13.PortStatus{Reason: of13.PortModified, Port: p.Port}) })
	}
	return nil
}

// portsOf gives a port, or all.
func (s *Switch) portsOf(number uint32) (list []*port, err error) {
	if p := s.ports[number]; p != nil {
		return []*port{p}, nil
	}
	if number != of13.PortAny {
		return nil, of13.BadRequestBadPort
	}
	for _, n := range s.order {
		list = append(list, s.ports[n])
	}
	return list, nil
}
