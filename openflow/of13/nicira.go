package of13

// Nicira's experimenter number, and the subtypes of its actions that there are here:
// those of service headers (openvswitch, lib/ofp-actions.c).
const (
	ExperimenterNicira uint32 = 0x2320

	nxEncap     = 46
	nxDecap     = 47
	nxDecNSHTTL = 48
)

// Types of packets: a namespace, of which 1 is that of Ethernet's types, and a type.
const (
	PacketEthernet uint32 = 0
	PacketNSH      uint32 = 1<<16 | EthTypeNSH
	PacketNext     uint32 = 0xfffe // of a decap: what the header says that follows
)

// The property of an encap that says what metadata a service header has.
const (
	propertyClassNSH = 4
	propertyMDType   = 1
	propertyLen      = 5 // and up to 3 bytes behind it that fill 8
)

// actionType is the type as it is on the wire.
func (c *coder) actionType(a *Action) {
	kind := a.Type
	if kind >= ActionEncap && kind <= ActionDecNSHTTL {
		kind = ActionExperimenter
	}
	if c.u16(&kind); c.write {
		return
	}
	if a.Type = kind; kind >= ActionEncap && kind <= ActionDecNSHTTL {
		c.fail(BadActionBadType)
	}
}

// experimenterAction is one of Nicira's that there are here; others are their bytes.
func (c *coder) experimenterAction(a *Action) {
	if c.write && a.Type != ActionExperimenter {
		number, subtype := ExperimenterNicira, a.Type-0xff00
		c.u32(&number)
		c.u16(&subtype)
	} else if c.u32(&a.Number); c.write || !c.isNicira(a) {
		c.tail(&a.Data)
		return
	}
	switch a.Type {
	case ActionEncap:
		c.encap(a)
	case ActionDecap:
		c.pad(2)
		c.u32(&a.Packet)
	case ActionDecNSHTTL:
		c.pad(6)
	}
}

// isNicira reads the subtype of an action that there is here.
func (c *coder) isNicira(a *Action) bool {
	if a.Number != ExperimenterNicira || c.err != nil || c.rest() < 2 {
		return false
	}
	was, subtype := c.off, uint16(0)
	c.u16(&subtype)
	if subtype < nxEncap || subtype > nxDecNSHTTL {
		c.off = was
		return false
	}
	a.Type, a.Number = 0xff00+subtype, 0
	return true
}

// encap is a header to put in front, and properties of it.
func (c *coder) encap(a *Action) {
	size := uint16(0) // of the header; 0: what it has to be
	c.u16(&size)
	c.u32(&a.Packet)
	if c.write {
		if a.Packet == PacketNSH {
			c.property(&a.MDType)
		}
		return
	}
	if a.Packet == PacketNSH {
		a.MDType = 1
	}
	if size != 0 {
		c.fail(BadActionBadArgument)
	}
	for c.err == nil && c.rest() > 0 {
		if a.Packet != PacketNSH {
			c.fail(BadActionBadArgument)
			return
		}
		c.property(&a.MDType)
	}
}

// property is the type of metadata. There is no other one: metadata of type 2 that is to
// be in the header has no place here.
func (c *coder) property(kind *uint8) {
	class, what, length := uint16(propertyClassNSH), uint8(propertyMDType), uint8(propertyLen)
	c.u16(&class)
	c.u8(&what)
	c.u8(&length)
	if class != propertyClassNSH || what != propertyMDType || length < propertyLen || length > propertyLen+3 {
		c.fail(BadActionBadArgument)
		return
	}
	c.u8(kind)
	c.pad(3)
}
