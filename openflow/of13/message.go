package of13

// Message is anything that is sent, without its header's length and transaction.
type Message interface {
	Type() uint8
	layout(c *coder)
}

// Hello says which versions its sender speaks.
type Hello struct {
	Bitmap uint32 // bit n stands for version n; 0: the header's and all below it
}

// ErrorMessage tells of a request that was refused.
type ErrorMessage struct {
	Kind, Code uint16
	Data       []byte // at least the first 64 bytes of the request
}

// Echo asks whether the other end is there.
type Echo struct {
	Reply bool
	Data  []byte
}

// Experimenter is a message of an extension.
type Experimenter struct {
	Experimenter, Kind uint32
	Data               []byte
}

// Plain is a message without a body: Kind is its type.
type Plain struct{ Kind uint8 }

// FeaturesReply is what a switch is.
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32
	Tables       uint8
	Auxiliary    uint8
	Capabilities uint32
}

// Config is how a switch treats fragments and how much of a packet that missed
// it sends. Kind is the message's type: a reply, or a change.
type Config struct {
	Kind                 uint8
	Flags, MissSendBytes uint16
}

// Role of a controller: a request or its reply.
type Role struct {
	Reply      bool
	Role       uint32
	Generation uint64
}

// Async is which asynchronous messages a controller gets, by bits of their
// reasons; the first of each is for masters and equals, the second for slaves.
// Kind is the message's type: a reply, or a change.
type Async struct {
	Kind                             uint8
	PacketIn, PortStatus, FlowRemove [2]uint32
}

// TableMod changes a table's configuration.
type TableMod struct {
	Table  uint8
	Config uint32
}

func (*Hello) Type() uint8         { return TypeHello }
func (*ErrorMessage) Type() uint8  { return TypeError }
func (*Experimenter) Type() uint8  { return TypeExperimenter }
func (m *Plain) Type() uint8       { return m.Kind }
func (*FeaturesReply) Type() uint8 { return TypeFeaturesReply }
func (m *Config) Type() uint8      { return m.Kind }
func (m *Async) Type() uint8       { return m.Kind }
func (*TableMod) Type() uint8      { return TypeTableMod }

func (m *Echo) Type() uint8 {
	if m.Reply {
		return TypeEchoReply
	}
	return TypeEchoRequest
}

func (m *Role) Type() uint8 {
	if m.Reply {
		return TypeRoleReply
	}
	return TypeRoleRequest
}

// layout of a hello: elements, of which the bitmap of versions is type 1 and
// others are passed over, as the specification asks.
func (m *Hello) layout(c *coder) {
	if c.write {
		if m.Bitmap != 0 {
			kind, length := uint16(1), uint16(8)
			c.u16(&kind)
			c.u16(&length)
			c.u32(&m.Bitmap)
		}
		return
	}
	for m.Bitmap = 0; c.err == nil && c.rest() >= 4; {
		c.sized(2, 4, true, func() {
			var kind, length uint16
			c.u16(&kind)
			if c.u16(&length); kind == 1 && length >= 8 && m.Bitmap == 0 {
				c.u32(&m.Bitmap)
			}
			c.pad(c.rest())
		})
	}
	c.pad(c.rest())
}

func (m *ErrorMessage) layout(c *coder) {
	c.u16(&m.Kind)
	c.u16(&m.Code)
	c.tail(&m.Data)
}

func (m *Echo) layout(c *coder) { c.tail(&m.Data) }

func (m *Experimenter) layout(c *coder) {
	c.u32s(&m.Experimenter, &m.Kind)
	c.tail(&m.Data)
}

func (m *Plain) layout(c *coder) {}

func (m *FeaturesReply) layout(c *coder) {
	c.u64(&m.DatapathID)
	c.u32(&m.Buffers)
	c.u8(&m.Tables)
	c.u8(&m.Auxiliary)
	c.pad(2)
	c.u32(&m.Capabilities)
	c.pad(4)
}

func (m *Config) layout(c *coder) {
	c.u16(&m.Flags)
	c.u16(&m.MissSendBytes)
}

func (m *Role) layout(c *coder) {
	c.u32(&m.Role)
	c.pad(4)
	c.u64(&m.Generation)
}

func (m *Async) layout(c *coder) {
	for _, masks := range []*[2]uint32{&m.PacketIn, &m.PortStatus, &m.FlowRemove} {
		c.u32s(&masks[0], &masks[1])
	}
}

func (m *TableMod) layout(c *coder) {
	c.u8(&m.Table)
	c.pad(3)
	c.u32(&m.Config)
}
