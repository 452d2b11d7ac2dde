package of13

// Port is what is told of a port.
type Port struct {
	Number                         uint32
	HWAddr                         [6]byte
	Name                           string // up to 15 bytes
	Config, State                  uint32
	Current, Advertised, Supported uint32
	Peer, CurrentSpeed, MaxSpeed   uint32 // speeds in kbit/s
}

// PortStatus tells that a port came, went or changed.
type PortStatus struct {
	Reason uint8
	Port   Port
}

// PortMod changes a port's configuration, where Mask has bits.
type PortMod struct {
	Port                    uint32
	HWAddr                  [6]byte
	Config, Mask, Advertise uint32
}

// QueueProperty is a rate of a queue: Kind 1 is the least, 2 the most, in 1/10 percent.
type QueueProperty struct {
	Kind uint16
	Rate uint16
}

// Queue is a queue of a port, as configured.
type Queue struct {
	Queue, Port uint32
	Properties  []QueueProperty
}

// QueueConfigRequest asks for the queues of a port.
type QueueConfigRequest struct{ Port uint32 }

// QueueConfigReply has them.
type QueueConfigReply struct {
	Port   uint32
	Queues []Queue
}

func (*PortStatus) Type() uint8         { return TypePortStatus }
func (*PortMod) Type() uint8            { return TypePortMod }
func (*QueueConfigRequest) Type() uint8 { return TypeQueueGetConfigRequest }
func (*QueueConfigReply) Type() uint8   { return TypeQueueGetConfigReply }

func (c *coder) port(p *Port) {
	c.u32(&p.Number)
	c.pad(4)
	c.mac(&p.HWAddr)
	c.pad(2)
	c.text(&p.Name, 16)
	c.u32s(&p.Config, &p.State, &p.Current, &p.Advertised, &p.Supported, &p.Peer, &p.CurrentSpeed, &p.MaxSpeed)
}

func (m *PortStatus) layout(c *coder) {
	c.u8(&m.Reason)
	c.pad(7)
	c.port(&m.Port)
}

func (m *PortMod) layout(c *coder) {
	c.u32(&m.Port)
	c.pad(4)
	c.mac(&m.HWAddr)
	c.pad(2)
	c.u32s(&m.Config, &m.Mask, &m.Advertise)
	c.pad(4)
}

func (m *QueueConfigRequest) layout(c *coder) {
	c.u32(&m.Port)
	c.pad(4)
}

func (m *QueueConfigReply) layout(c *coder) {
	c.u32(&m.Port)
	c.pad(4)
	list(c, &m.Queues, (*coder).queue)
}

func (c *coder) queue(q *Queue) {
	c.sized(8, 16, false, func() {
		length := uint16(0)
		c.u32s(&q.Queue, &q.Port)
		c.u16(&length)
		c.pad(6)
		list(c, &q.Properties, (*coder).queueProperty)
	})
}

func (c *coder) queueProperty(p *QueueProperty) {
	c.sized(2, 16, false, func() {
		length := uint16(0)
		c.u16(&p.Kind)
		c.u16(&length)
		c.pad(4)
		c.u16(&p.Rate)
		c.pad(6)
	})
}
