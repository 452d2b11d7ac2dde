package of13

// Types of actions.
const (
	ActionOutput       uint16 = 0
	ActionCopyTTLOut   uint16 = 11
	ActionCopyTTLIn    uint16 = 12
	ActionSetMPLSTTL   uint16 = 15
	ActionDecMPLSTTL   uint16 = 16
	ActionPushVLAN     uint16 = 17
	ActionPopVLAN      uint16 = 18
	ActionPushMPLS     uint16 = 19
	ActionPopMPLS      uint16 = 20
	ActionSetQueue     uint16 = 21
	ActionGroup        uint16 = 22
	ActionSetNWTTL     uint16 = 23
	ActionDecNWTTL     uint16 = 24
	ActionSetField     uint16 = 25
	ActionPushPBB      uint16 = 26
	ActionPopPBB       uint16 = 27
	ActionExperimenter uint16 = 0xffff
)

// Actions of experimenter Nicira, as Open vSwitch has them. Their types are none on the
// wire, where all have that of experimenters: they are 0xff00 and the subtype.
const (
	ActionEncap     uint16 = 0xff00 + nxEncap
	ActionDecap     uint16 = 0xff00 + nxDecap
	ActionDecNSHTTL uint16 = 0xff00 + nxDecNSHTTL
)

// Action is one thing done to a packet. Which fields count is a matter of Type.
type Action struct {
	Type      uint16
	MaxLen    uint16 // output to the controller: bytes of the packet
	EtherType uint16 // pushes, and pop MPLS
	TTL       uint8  // of the set-TTL actions
	Number    uint32 // port, group, queue or experimenter
	Field     Field  // of a set-field
	Packet    uint32 // of an encap and a decap: the type of packet behind it
	MDType    uint8  // of an encap of a service header: the type of its metadata
	Data      []byte // of an experimenter

	// Loose is of OpenFlow 1.0, on no wire of 1.3: a tag is pushed only where none is,
	// and a field set where packets have it, whatever the match says of them.
	Loose bool
}

// Output is an action that sends a whole packet to a port.
func Output(port uint32) Action {
	return Action{Type: ActionOutput, Number: port, MaxLen: NoMaxLen}
}

// SetField is an action that sets a field.
func SetField(f Field) Action { return Action{Type: ActionSetField, Field: f} }

func (c *coder) action(a *Action) {
	c.in(BadActionBadLen, func() {
		c.sized(2, 8, false, func() {
			if !c.write {
				*a = Action{}
			}
			length := uint16(0)
			c.actionType(a)
			c.u16(&length)
			c.actionBody(a)
		})
	})
}

func (c *coder) actionBody(a *Action) {
	switch a.Type {
	case ActionOutput:
		c.u32(&a.Number)
		c.u16(&a.MaxLen)
		c.pad(6)
	case ActionGroup, ActionSetQueue:
		c.u32(&a.Number)
	case ActionSetMPLSTTL, ActionSetNWTTL:
		c.u8(&a.TTL)
		c.pad(3)
	case ActionPushVLAN, ActionPushMPLS, ActionPushPBB, ActionPopMPLS:
		c.u16(&a.EtherType)
		c.pad(2)
	case ActionCopyTTLOut, ActionCopyTTLIn, ActionDecMPLSTTL, ActionDecNWTTL, ActionPopVLAN, ActionPopPBB:
		c.pad(4)
	case ActionSetField:
		c.setField(a)
	case ActionExperimenter, ActionEncap, ActionDecap, ActionDecNSHTTL:
		c.experimenterAction(a)
	default:
		c.fail(BadActionBadType)
	}
}

// setField is an OXM TLV without mask, padded so that the action fills 8 bytes.
// What is wrong with it has error codes of actions.
func (c *coder) setField(a *Action) {
	if c.write {
		c.field(&a.Field)
		c.pad(-(4 + 4 + int(OXMHeader(a.Field.ID, false)&0xff)) & 7)
		return
	}
	c.field(&a.Field)
	switch {
	case c.err == error(BadMatchBadField), c.err != nil && a.Field.Masked:
		c.err = BadActionBadSetType
	case c.err == error(BadMatchBadLen):
		c.err = BadActionBadSetLen
	case c.err != nil:
	case a.Field.Masked, Fields[a.Field.ID].ReadOnly:
		c.fail(BadActionBadSetType)
	case !a.Field.valid():
		c.fail(BadActionBadSetArgument)
	default:
		if c.rest() > 7 {
			c.fail(BadActionBadSetLen)
		}
		c.pad(c.rest())
	}
}
