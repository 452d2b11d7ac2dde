package of13

import "encoding/binary"

// Types of multipart messages.
const (
	MultipartDesc uint16 = iota
	MultipartFlow
	MultipartAggregate
	MultipartTable
	MultipartPort
	MultipartQueue
	MultipartGroup
	MultipartGroupDesc
	MultipartGroupFeatures
	MultipartMeter
	MultipartMeterConfig
	MultipartMeterFeatures
	MultipartTableFeatures
	MultipartPortDesc
	MultipartExperimenter uint16 = 0xffff
)

// MultipartMore says that another part follows.
const MultipartMore uint16 = 1

// MultipartRequest asks for statistics and descriptions. Which fields count is a
// matter of Kind.
type MultipartRequest struct {
	Kind, Flags           uint16
	Flow                  FlowRequest     // flow, aggregate
	Number                uint32          // port, group or meter
	Queue                 uint32          // of port Number
	TableFeatures         []TableFeatures // none: what they are now
	Experimenter, ExpType uint32
	Data                  []byte
}

// FlowRequest selects entries.
type FlowRequest struct {
	Table              uint8
	OutPort, OutGroup  uint32
	Cookie, CookieMask uint64
	Match              Match
}

// MultipartReply is what was asked for; Kind says which of the fields that is.
type MultipartReply struct {
	Kind, Flags           uint16
	Desc                  Desc
	Flows                 []FlowStats
	Aggregate             Aggregate
	Tables                []TableStats
	Ports                 []PortStats
	Queues                []QueueStats
	Groups                []GroupStats
	GroupDescs            []GroupDesc
	GroupFeatures         GroupFeatures
	Meters                []MeterStats
	MeterConfigs          []MeterConfig
	MeterFeatures         MeterFeatures
	TableFeatures         []TableFeatures
	PortDescs             []Port
	Experimenter, ExpType uint32
	Data                  []byte
}

func (*MultipartRequest) Type() uint8 { return TypeMultipartRequest }
func (*MultipartReply) Type() uint8   { return TypeMultipartReply }

func (m *MultipartRequest) layout(c *coder) {
	c.u16(&m.Kind)
	c.u16(&m.Flags)
	c.pad(4)
	switch m.Kind {
	case MultipartDesc, MultipartTable, MultipartGroupDesc, MultipartGroupFeatures, MultipartMeterFeatures, MultipartPortDesc:
	case MultipartFlow, MultipartAggregate:
		m.Flow.layout(c)
	case MultipartPort, MultipartGroup, MultipartMeter, MultipartMeterConfig:
		c.u32(&m.Number)
		c.pad(4)
	case MultipartQueue:
		c.u32s(&m.Number, &m.Queue)
	case MultipartTableFeatures:
		c.in(TableFeaturesFailedBadLen, func() { list(c, &m.TableFeatures, (*coder).tableFeatures) })
	case MultipartExperimenter:
		c.u32s(&m.Experimenter, &m.ExpType)
		c.tail(&m.Data)
	default:
		c.fail(BadRequestBadMultipart)
	}
}

func (m *FlowRequest) layout(c *coder) {
	c.u8(&m.Table)
	c.pad(3)
	c.u32s(&m.OutPort, &m.OutGroup)
	c.pad(4)
	c.u64s(&m.Cookie, &m.CookieMask)
	m.Match.layout(c)
}

func (m *MultipartReply) layout(c *coder) {
	c.u16(&m.Kind)
	c.u16(&m.Flags)
	c.pad(4)
	c.split = nextPart
	m.body(c)
	c.split = nil
}

func (m *MultipartReply) body(c *coder) {
	switch m.Kind {
	case MultipartDesc:
		m.Desc.layout(c)
	case MultipartFlow:
		list(c, &m.Flows, (*coder).flowStats)
	case MultipartAggregate:
		m.Aggregate.layout(c)
	case MultipartTable:
		list(c, &m.Tables, (*coder).tableStats)
	case MultipartPort:
		list(c, &m.Ports, (*coder).portStats)
	case MultipartQueue:
		list(c, &m.Queues, (*coder).queueStats)
	case MultipartGroup:
		list(c, &m.Groups, (*coder).groupStats)
	case MultipartGroupDesc:
		list(c, &m.GroupDescs, (*coder).groupDesc)
	case MultipartMeter:
		list(c, &m.Meters, (*coder).meterStats)
	case MultipartMeterConfig:
		list(c, &m.MeterConfigs, (*coder).meterConfig)
	case MultipartTableFeatures:
		list(c, &m.TableFeatures, (*coder).tableFeatures)
	case MultipartPortDesc:
		list(c, &m.PortDescs, (*coder).port)
	default:
		m.single(c)
	}
}

func (m *MultipartReply) single(c *coder) {
	switch m.Kind {
	case MultipartGroupFeatures:
		m.GroupFeatures.layout(c)
	case MultipartMeterFeatures:
		m.MeterFeatures.layout(c)
	case MultipartExperimenter:
		c.u32s(&m.Experimenter, &m.ExpType)
		c.tail(&m.Data)
	default:
		c.fail(BadRequestBadMultipart)
	}
}

// nextPart ends a part before the element that made it too long, and begins the
// next one with that element.
func nextPart(c *coder, item int) {
	const head = HeaderLen + 8
	if item-c.start == head { // an element that fills a message by itself
		c.fail(BadRequestMultipartOverflow)
		return
	}
	var copied [head]byte
	copy(copied[:], c.b[c.start:])
	n := len(c.b) - item
	c.b = append(c.b, zeros[:head]...)
	copy(c.b[item+head:], c.b[item:item+n])
	copy(c.b[item:], copied[:])
	flags := c.b[c.start+HeaderLen+2:]
	binary.BigEndian.PutUint16(flags, binary.BigEndian.Uint16(flags)|MultipartMore)
	binary.BigEndian.PutUint16(c.b[c.start+2:], uint16(item-c.start))
	c.start = item
}
