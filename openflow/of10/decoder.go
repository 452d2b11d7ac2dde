package of10

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// Decoder reads messages. What it returns is valid until its next Decode, and no
// longer than the bytes it read.
type Decoder struct {
	c      coder
	byType [numTypes]of13.Message
}

// Decode reads one message: b is as long as its header says. Errors are of type
// of13.Error; Append makes of them what OpenFlow 1.0 has.
func (d *Decoder) Decode(b []byte) (of13.Header, of13.Message, error) {
	if len(b) < of13.HeaderLen {
		return of13.Header{}, nil, of13.BadRequestBadLen
	}
	h := of13.ReadHeader(b)
	switch {
	case h.Version != Version && h.Type != of13.TypeHello:
		return h, nil, of13.BadRequestBadVersion
	case int(h.Length) != len(b):
		return h, nil, of13.BadRequestBadLen
	case h.Type >= numTypes:
		return h, nil, of13.BadRequestBadType
	case h.Type == of13.TypeExperimenter:
		return h, nil, of13.BadRequestBadExperimenter
	}
	m := d.byType[h.Type]
	if m == nil {
		m = newMessage(h.Type)
		d.byType[h.Type] = m
	}
	d.c = coder{b: b, off: of13.HeaderLen}
	d.c.message(m)
	if d.c.err == nil && d.c.rest() > 0 {
		d.c.fail(of13.BadRequestBadLen)
	}
	return h, m, d.c.err
}

func newMessage(kind uint8) of13.Message {
	switch kind {
	case of13.TypeHello:
		return &of13.Hello{}
	case of13.TypeError:
		return &of13.ErrorMessage{}
	case of13.TypeEchoRequest, of13.TypeEchoReply:
		return &of13.Echo{Reply: kind == of13.TypeEchoReply}
	case of13.TypeFeaturesReply:
		return &FeaturesReply{}
	case of13.TypeGetConfigReply, of13.TypeSetConfig:
		return &of13.Config{Kind: kind}
	case of13.TypePacketIn:
		return &of13.PacketIn{}
	case of13.TypeFlowRemoved:
		return &of13.FlowRemoved{}
	case of13.TypePortStatus:
		return &of13.PortStatus{}
	case typePacketOut:
		return &of13.PacketOut{}
	case typeFlowMod:
		return &of13.FlowMod{}
	case typePortMod:
		return &of13.PortMod{}
	case typeStatsRequest:
		return &of13.MultipartRequest{}
	case typeStatsReply:
		return &of13.MultipartReply{}
	case typeQueueConfigRequest:
		return &of13.QueueConfigRequest{}
	case typeQueueConfigReply:
		return &of13.QueueConfigReply{}
	}
	return &of13.Plain{Kind: Kind(kind)}
}

// message reads or writes what is behind the header. It is false of a message that
// OpenFlow 1.0 has not.
func (c *coder) message(m of13.Message) bool {
	switch m := m.(type) {
	case *of13.PacketIn:
		c.packetIn(m)
	case *of13.PacketOut:
		c.packetOut(m)
	case *of13.FlowMod:
		c.flowMod(m)
	case *of13.Plain:
	case *of13.Hello: // later versions' elements are passed over
		if !c.write {
			m.Bitmap = 0
			c.pad(c.rest())
		}
	case *of13.Echo:
		c.tail(&m.Data)
	case *of13.ErrorMessage:
		c.errorMessage(m)
	case *FeaturesReply:
		c.featuresReply(m)
	case *of13.Config:
		c.u16(&m.Flags)
		c.u16(&m.MissSendBytes)
	case *of13.FlowRemoved:
		c.flowRemoved(m)
	case *of13.PortStatus:
		c.portStatus(m)
	default:
		return c.question(m)
	}
	return true
}

func (c *coder) question(m of13.Message) bool {
	switch m := m.(type) {
	case *of13.PortMod:
		c.portMod(m)
	case *of13.MultipartRequest:
		c.statsRequest(m)
	case *of13.MultipartReply:
		c.statsReply(m)
	case *of13.QueueConfigRequest:
		c.queueRequest(m)
	case *of13.QueueConfigReply:
		c.queueReply(m)
	default:
		return false
	}
	return true
}

// Append writes a message at the end of b, in several parts if it is a reply with
// statistics that does not fit into one. It fails, and leaves b as it was, if
// OpenFlow 1.0 has no such message or it would be longer than of13.MaxLen.
func Append(b []byte, xid uint32, m of13.Message) ([]byte, error) {
	kind, ok := wireKind(m.Type())
	c := coder{b: b, start: len(b), write: true}
	head := c.bytes(of13.HeaderLen)
	head[0], head[1] = Version, kind
	binary.BigEndian.PutUint32(head[4:], xid)
	if !ok || !c.message(m) {
		return b, of13.BadRequestBadType
	}
	n := len(c.b) - c.start
	if c.err == nil && n > of13.MaxLen {
		c.fail(of13.BadRequestBadLen)
	}
	if c.err != nil {
		return b, c.err
	}
	binary.BigEndian.PutUint16(c.b[c.start+2:], uint16(n))
	return c.b, nil
}
