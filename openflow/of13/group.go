package of13

// Bucket is one way of a group.
type Bucket struct {
	Weight                uint16
	WatchPort, WatchGroup uint32
	Actions               []Action
}

// GroupMod changes a group.
type GroupMod struct {
	Command uint16
	Kind    uint8 // type of the group
	Group   uint32
	Buckets []Bucket
}

// Band is a rate of a meter and what is done above it.
type Band struct {
	Kind         uint16 // type of the band
	Rate, Burst  uint32
	Precedence   uint8  // of DSCP remark
	Experimenter uint32 // of an experimenter's band
}

// MeterMod changes a meter.
type MeterMod struct {
	Command, Flags uint16
	Meter          uint32
	Bands          []Band
}

func (*GroupMod) Type() uint8 { return TypeGroupMod }
func (*MeterMod) Type() uint8 { return TypeMeterMod }

func (m *GroupMod) layout(c *coder) {
	c.u16(&m.Command)
	c.u8(&m.Kind)
	c.pad(1)
	c.u32(&m.Group)
	list(c, &m.Buckets, (*coder).bucket)
}

func (c *coder) bucket(b *Bucket) {
	c.in(GroupModFailedBadBucket, func() {
		c.sized(0, 16, false, func() {
			length := uint16(0)
			c.u16(&length)
			c.u16(&b.Weight)
			c.u32s(&b.WatchPort, &b.WatchGroup)
			c.pad(4)
			list(c, &b.Actions, (*coder).action)
		})
	})
}

func (m *MeterMod) layout(c *coder) {
	c.u16(&m.Command)
	c.u16(&m.Flags)
	c.u32(&m.Meter)
	list(c, &m.Bands, (*coder).band)
}

func (c *coder) band(b *Band) {
	c.sized(2, 12, false, func() {
		if !c.write {
			*b = Band{}
		}
		length := uint16(0)
		c.u16(&b.Kind)
		c.u16(&length)
		c.u32s(&b.Rate, &b.Burst)
		switch b.Kind {
		case BandDrop:
			c.pad(4)
		case BandDSCPRemark:
			c.u8(&b.Precedence)
			c.pad(3)
		case BandExperimenter:
			c.u32(&b.Experimenter)
			if !c.write {
				c.pad(c.rest())
			}
		default:
			c.fail(MeterModFailedBadBand)
		}
	})
}
