package of13

import "encoding/binary"

// Header is what every message begins with.
type Header struct {
	Version, Type uint8
	Length        uint16
	XID           uint32
}

// ReadHeader reads the header of at least 8 bytes.
func ReadHeader(b []byte) Header {
	return Header{b[0], b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])}
}

// Decoder reads messages. What it returns is valid until its next Decode, and no
// longer than the bytes it read.
type Decoder struct {
	c      coder
	byType [TypeMeterMod + 1]Message
}

// Decode reads one message: b is as long as its header says. Errors are of type
// Error, and what is to be replied.
func (d *Decoder) Decode(b []byte) (Header, Message, error) {
	if len(b) < HeaderLen {
		return Header{}, nil, BadRequestBadLen
	}
	h := ReadHeader(b)
	switch {
	case h.Version != Version && h.Type != TypeHello:
		return h, nil, BadRequestBadVersion
	case int(h.Length) != len(b):
		return h, nil, BadRequestBadLen
	case h.Type > TypeMeterMod:
		return h, nil, BadRequestBadType
	}
	m := d.byType[h.Type]
	if m == nil {
		m = newMessage(h.Type)
		d.byType[h.Type] = m
	}
	d.c = coder{b: b, off: HeaderLen, short: BadRequestBadLen}
	m.layout(&d.c)
	if d.c.err == nil && d.c.rest() > 0 {
		d.c.fail(BadRequestBadLen)
	}
	return h, m, d.c.err
}

func newMessage(kind uint8) Message {
	switch kind {
	case TypeHello:
		return &Hello{}
	case TypeError:
		return &ErrorMessage{}
	case TypeEchoRequest, TypeEchoReply:
		return &Echo{Reply: kind == TypeEchoReply}
	case TypeExperimenter:
		return &Experimenter{}
	case TypeFeaturesReply:
		return &FeaturesReply{}
	case TypeGetConfigReply, TypeSetConfig:
		return &Config{Kind: kind}
	case TypePacketIn:
		return &PacketIn{}
	case TypeFlowRemoved:
		return &FlowRemoved{}
	case TypePortStatus:
		return &PortStatus{}
	case TypePacketOut:
		return &PacketOut{}
	case TypeRoleRequest, TypeRoleReply:
		return &Role{Reply: kind == TypeRoleReply}
	case TypeGetAsyncReply, TypeSetAsync:
		return &Async{Kind: kind}
	}
	return newModification(kind)
}

func newModification(kind uint8) Message {
	switch kind {
	case TypeFlowMod:
		return &FlowMod{}
	case TypeGroupMod:
		return &GroupMod{}
	case TypePortMod:
		return &PortMod{}
	case TypeTableMod:
		return &TableMod{}
	case TypeMultipartRequest:
		return &MultipartRequest{}
	case TypeMultipartReply:
		return &MultipartReply{}
	case TypeQueueGetConfigRequest:
		return &QueueConfigRequest{}
	case TypeQueueGetConfigReply:
		return &QueueConfigReply{}
	case TypeMeterMod:
		return &MeterMod{}
	}
	return &Plain{Kind: kind}
}

// Append writes a message at the end of b, in several parts if it is a multipart
// reply that does not fit into one. It fails, and leaves b as it was, if a
// message would be longer than MaxLen or has a type that is not of OpenFlow 1.3.
func Append(b []byte, xid uint32, m Message) ([]byte, error) {
	c := coder{b: b, start: len(b), write: true}
	head := c.bytes(HeaderLen)
	head[0], head[1] = Version, m.Type()
	binary.BigEndian.PutUint32(head[4:], xid)
	m.layout(&c)
	n := len(c.b) - c.start
	if c.err == nil && n > MaxLen {
		c.fail(BadRequestBadLen)
	}
	if c.err != nil {
		return b, c.err
	}
	binary.BigEndian.PutUint16(c.b[c.start+2:], uint16(n))
	return c.b, nil
}
