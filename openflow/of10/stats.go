package of10

import (
	"encoding/binary"
	"fmt"

	"sublet/openflow/of13"
)

// Kinds of statistics are numbered as in 1.3, up to those of queues.

func (c *coder) statsRequest(m *of13.MultipartRequest) {
	c.u16(&m.Kind)
	c.u16(&m.Flags)
	switch m.Kind {
	case of13.MultipartDesc, of13.MultipartTable:
	case of13.MultipartFlow, of13.MultipartAggregate:
		c.match(&m.Flow.Match, nil)
		c.u8(&m.Flow.Table)
		c.pad(1)
		if c.port(&m.Flow.OutPort); !c.write {
			m.Flow.OutGroup, m.Flow.Cookie, m.Flow.CookieMask = of13.GroupAny, 0, 0
		}
	case of13.MultipartPort:
		c.port(&m.Number)
		c.pad(6)
	case of13.MultipartQueue:
		c.port(&m.Number)
		c.pad(2)
		c.u32(&m.Queue)
		if !c.write && m.Number == of13.PortAll {
			m.Number = of13.PortAny
		}
	default:
		c.fail(of13.BadRequestBadMultipart)
	}
}

func (c *coder) statsReply(m *of13.MultipartReply) {
	c.u16(&m.Kind)
	c.u16(&m.Flags)
	switch m.Kind {
	case of13.MultipartDesc:
		d := &m.Desc
		for _, t := range []*string{&d.Manufacturer, &d.Hardware, &d.Software} {
			c.text(t, 256)
		}
		c.text(&d.Serial, 32)
		c.text(&d.Datapath, 256)
	case of13.MultipartFlow:
		list(c, &m.Flows, (*coder).flowStats)
	case of13.MultipartAggregate:
		c.u64s(&m.Aggregate.Packets, &m.Aggregate.Bytes)
		c.u32(&m.Aggregate.Flows)
		c.pad(4)
	case of13.MultipartTable:
		list(c, &m.Tables, (*coder).tableStats)
	case of13.MultipartPort:
		list(c, &m.Ports, (*coder).portStats)
	case of13.MultipartQueue:
		list(c, &m.Queues, (*coder).queueStats)
	default:
		c.fail(of13.BadRequestBadMultipart)
	}
}

func (c *coder) flowStats(f *of13.FlowStats) {
	const head = 88
	from, n := len(c.b), uint16(0)
	c.u16(&n)
	if !c.write && (c.err != nil || n < head || int(n)-2 > c.rest()) {
		c.fail(of13.BadRequestBadLen)
		return
	}
	whole := c.b
	if !c.write {
		c.b = c.b[:c.off+int(n)-2]
	}
	c.u8(&f.Table)
	c.pad(1)
	c.match(&f.Match, nil)
	c.u32(&f.Life.Seconds)
	c.u32(&f.Life.Nanos)
	c.u16(&f.Priority)
	c.u16(&f.Idle)
	c.u16(&f.Hard)
	c.pad(6)
	c.u64s(&f.Cookie, &f.Packets, &f.Bytes)
	if !c.write {
		f.Instructions = c.readApplied(f.Instructions)
		c.b = whole
		return
	}
	c.writeActions(applied(f.Instructions))
	binary.BigEndian.PutUint16(c.b[from:], uint16(len(c.b)-from))
}

func (c *coder) tableStats(t *of13.TableStats) {
	const nameLen = 32
	free := uint32(anything)
	c.u8(&t.Table)
	c.pad(3)
	if c.write {
		name := fmt.Sprintf("table%d", t.Table)
		c.text(&name, nameLen)
	} else {
		c.pad(nameLen)
	}
	c.u32(&free)
	c.u32(&t.MaxEntries)
	c.u32(&t.Active)
	c.u64s(&t.Lookups, &t.Matched)
}

func (c *coder) portStats(p *of13.PortStats) {
	c.port(&p.Port)
	c.pad(6)
	c.u64s(&p.RxPackets, &p.TxPackets, &p.RxBytes, &p.TxBytes, &p.RxDropped, &p.TxDropped, &p.RxErrors, &p.TxErrors)
	c.u64s(&p.RxFrameErrors, &p.RxOverErrors, &p.RxCRCErrors, &p.Collisions)
}

func (c *coder) queueStats(q *of13.QueueStats) {
	c.port(&q.Port)
	c.pad(2)
	c.u32(&q.Queue)
	c.u64s(&q.Bytes, &q.Packets, &q.TxErrors)
}

// nextPart ends a reply before the element that made it too long, and begins the
// next one with that element.
func (c *coder) nextPart(item int) {
	const head, more = of13.HeaderLen + 4, 1
	if item-c.start == head {
		c.fail(of13.BadRequestMultipartOverflow)
		return
	}
	var copied [head]byte
	copy(copied[:], c.b[c.start:])
	n := len(c.b) - item
	c.b = append(c.b, zeros[:head]...)
	copy(c.b[item+head:], c.b[item:item+n])
	copy(c.b[item:], copied[:])
	c.b[c.start+of13.HeaderLen+3] |= more
	binary.BigEndian.PutUint16(c.b[c.start+2:], uint16(item-c.start))
	c.start = item
}
