package of10

import "sublet/openflow/of13"

const (
	knownState  = of13.PortStateDown
	speeds      = 1<<7 - 1 // bits of a port's features that are the same; those above are 4 bits higher in 1.3
	mediumShift = 4
	groupStats  = 1 << 3 // what stands at these bits of capabilities is another thing in 1.0
	blockedPort = 1 << 8
	matchesARP  = 1 << 7
	leastRate   = 1 // the kind of a queue's property
)

func (c *coder) featuresReply(m *FeaturesReply) {
	c.u64s(&m.DatapathID)
	c.u32(&m.Buffers)
	c.u8(&m.Tables)
	c.pad(3)
	capabilities, actions := m.Capabilities&^(groupStats|blockedPort)|matchesARP, uint32(allActions)
	c.u32(&capabilities)
	c.u32(&actions)
	if !c.write {
		m.Capabilities = capabilities &^ (groupStats | blockedPort | matchesARP)
	}
	list(c, &m.Ports, (*coder).portDesc)
}

func (c *coder) mac(v *[6]byte) {
	if b := c.bytes(6); c.write {
		copy(b, v[:])
	} else {
		copy(v[:], b)
	}
}

func (c *coder) portDesc(p *of13.Port) {
	c.port(&p.Number)
	c.mac(&p.HWAddr)
	c.text(&p.Name, 16)
	state := p.State & knownState
	c.u32(&p.Config)
	if c.u32(&state); !c.write {
		p.State = state & knownState
	}
	for _, v := range []*uint32{&p.Current, &p.Advertised, &p.Supported, &p.Peer} {
		c.features(v)
	}
}

func (c *coder) features(v *uint32) {
	n := *v&speeds | *v>>mediumShift&^speeds&0xfff
	if c.u32(&n); !c.write {
		*v = n&speeds | n&0xfff&^speeds<<mediumShift
	}
}

func (c *coder) portStatus(m *of13.PortStatus) {
	c.u8(&m.Reason)
	c.pad(7)
	c.portDesc(&m.Port)
}

func (c *coder) portMod(m *of13.PortMod) {
	c.port(&m.Port)
	c.mac(&m.HWAddr)
	c.u32(&m.Config)
	c.u32(&m.Mask)
	c.features(&m.Advertise)
	c.pad(4)
}

func (c *coder) queueRequest(m *of13.QueueConfigRequest) {
	c.port(&m.Port)
	c.pad(2)
}

func (c *coder) queueReply(m *of13.QueueConfigReply) {
	c.port(&m.Port)
	c.pad(6)
	list(c, &m.Queues, func(c *coder, q *of13.Queue) { c.queue(q, m.Port) })
}

// queue is one of a port: the least rate is all that 1.0 knows of it.
func (c *coder) queue(q *of13.Queue, port uint32) {
	const head, property = 8, 16
	c.u32(&q.Queue)
	if c.write {
		c.writeQueue(q)
		return
	}
	n := uint16(0)
	c.u16(&n)
	c.pad(2)
	if c.err != nil || n < head || int(n)-head > c.rest() || (n-head)%8 != 0 {
		c.fail(of13.BadRequestBadLen)
		return
	}
	q.Port, q.Properties = port, q.Properties[:0]
	for end := c.off + int(n) - head; c.off < end && c.err == nil; {
		kind, size := uint16(0), uint16(0)
		c.u16(&kind)
		if c.u16(&size); size < 8 || int(size)-4 > end-c.off {
			c.fail(of13.BadRequestBadLen)
			return
		}
		body := c.bytes(int(size) - 4)
		if kind == leastRate && size == property {
			q.Properties = append(q.Properties, of13.QueueProperty{Kind: kind, Rate: uint16(body[4])<<8 | uint16(body[5])})
		}
	}
}

func (c *coder) writeQueue(q *of13.Queue) {
	const head, property = 8, 16
	n := uint16(head)
	for _, p := range q.Properties {
		if p.Kind == leastRate {
			n += property
		}
	}
	c.u16(&n)
	c.pad(2)
	for _, p := range q.Properties {
		if p.Kind == leastRate {
			size := uint16(property)
			c.u16(&p.Kind)
			c.u16(&size)
			c.pad(4)
			c.u16(&p.Rate)
			c.pad(6)
		}
	}
}
