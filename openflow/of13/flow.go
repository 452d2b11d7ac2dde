package of13

// FlowMod changes a flow table.
type FlowMod struct {
	Cookie, CookieMask uint64
	Table, Command     uint8
	Idle, Hard         uint16 // seconds; 0: none
	Priority           uint16
	Buffer             uint32
	OutPort, OutGroup  uint32
	Flags              uint16
	Match              Match
	Instructions       []Instruction

	Adds bool // a modify that finds nothing adds: of OpenFlow 1.0, on no wire of 1.3
}

// FlowRemoved tells that an entry is gone.
type FlowRemoved struct {
	Cookie         uint64
	Priority       uint16
	Reason, Table  uint8
	Seconds, Nanos uint32
	Idle, Hard     uint16
	Packets, Bytes uint64
	Match          Match
}

// PacketIn hands a packet to controllers.
type PacketIn struct {
	Buffer        uint32
	Total         uint16 // bytes of the whole packet
	Reason, Table uint8
	Cookie        uint64
	Match         Match // the packet's port, metadata and tunnel
	Data          []byte

	Unmatched bool // no entry sent it: OpenFlow 1.0 does, 1.3 drops it
}

// PacketOut sends a packet.
type PacketOut struct {
	Buffer, InPort uint32
	Actions        []Action
	Data           []byte
}

func (*FlowMod) Type() uint8     { return TypeFlowMod }
func (*FlowRemoved) Type() uint8 { return TypeFlowRemoved }
func (*PacketIn) Type() uint8    { return TypePacketIn }
func (*PacketOut) Type() uint8   { return TypePacketOut }

func (m *FlowMod) layout(c *coder) {
	c.u64s(&m.Cookie, &m.CookieMask)
	c.u8(&m.Table)
	c.u8(&m.Command)
	c.u16(&m.Idle)
	c.u16(&m.Hard)
	c.u16(&m.Priority)
	c.u32s(&m.Buffer, &m.OutPort, &m.OutGroup)
	c.u16(&m.Flags)
	c.pad(2)
	m.Match.layout(c)
	list(c, &m.Instructions, (*coder).instruction)
	c.once(m.Instructions)
}

func (m *FlowRemoved) layout(c *coder) {
	c.u64(&m.Cookie)
	c.u16(&m.Priority)
	c.u8(&m.Reason)
	c.u8(&m.Table)
	c.u32s(&m.Seconds, &m.Nanos)
	c.u16(&m.Idle)
	c.u16(&m.Hard)
	c.u64s(&m.Packets, &m.Bytes)
	m.Match.layout(c)
}

func (m *PacketIn) layout(c *coder) {
	c.u32(&m.Buffer)
	c.u16(&m.Total)
	c.u8(&m.Reason)
	c.u8(&m.Table)
	c.u64(&m.Cookie)
	m.Match.layout(c)
	c.pad(2)
	c.tail(&m.Data)
}

func (m *PacketOut) layout(c *coder) {
	c.u32s(&m.Buffer, &m.InPort)
	at := len(c.b)
	length := uint16(0)
	c.u16(&length)
	c.pad(6)
	if c.write {
		list(c, &m.Actions, (*coder).action)
		n := len(c.b) - at - 8
		c.b[at], c.b[at+1] = byte(n>>8), byte(n)
		c.tail(&m.Data)
		return
	}
	if c.err != nil || int(length) > c.rest() {
		c.fail(BadRequestBadLen)
		return
	}
	whole := c.b
	c.b = c.b[:c.off+int(length)]
	list(c, &m.Actions, (*coder).action)
	c.b = whole
	c.tail(&m.Data)
}
