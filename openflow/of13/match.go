package of13

const classBasic = 0x8000 // OFPXMC_OPENFLOW_BASIC

// Field is a match field with its value, or what an action sets a field to.
type Field struct {
	ID          FieldID
	Masked      bool
	Value, Mask U128 // Mask is all ones where the field is not masked
}

// Exact is a field that has one value.
func Exact(id FieldID, v uint64) Field { return ExactU128(id, U128{0, v}) }

// ExactU128 is a field of up to 128 bits that has one value.
func ExactU128(id FieldID, v U128) Field {
	return Field{ID: id, Value: v, Mask: Ones(Fields[id].Bits)}
}

// WithMask is a field of which only the bits of mask matter.
func WithMask(id FieldID, v, mask U128) Field {
	return Field{ID: id, Masked: true, Value: v.And(mask), Mask: mask}
}

// Match is fields that a packet must have; none stands for all packets.
type Match struct{ Fields []Field }

func (m *Match) layout(c *coder) {
	c.in(BadMatchBadLen, func() {
		kind := uint16(1) // OFPMT_OXM
		c.sized(2, 4, true, func() {
			c.u16(&kind)
			if c.pad(2); kind != 1 {
				c.fail(BadMatchBadType)
			}
			list(c, &m.Fields, (*coder).field)
		})
		if !c.write && c.err == nil {
			c.err = m.check()
		}
	})
}

// check says what is wrong with fields taken together: one that is there twice,
// one before what it presupposes.
func (m *Match) check() error {
	var seen uint64
	ctx := NewContext()
	for i := range m.Fields {
		f := &m.Fields[i]
		if seen&(1<<f.ID) != 0 {
			return BadMatchDupField
		}
		seen |= 1 << f.ID
		if !ctx.Allows(f.ID) {
			return BadMatchBadPrereq
		}
		if !f.valid() {
			return BadMatchBadValue
		}
		if !f.Value.AndNot(f.Mask).Zero() {
			return BadMatchBadWildcards
		}
		ctx.Learn(f)
	}
	return nil
}

// valid says whether a value is within its field's range. VLAN_VID is either 0
// (no tag), or has the bit of presence, if that is not masked out.
func (f *Field) valid() bool {
	if f.Value.Len() > Fields[f.ID].Bits {
		return false
	}
	return f.ID != VLANVID || f.Value.Lo == 0 || (f.Value.Lo|^f.Mask.Lo)&VLANPresent != 0
}

// field is an OXM TLV: class, field and mask flag, length, value, mask.
func (c *coder) field(f *Field) {
	class, kind, length := uint16(classBasic), uint8(f.ID)<<1, uint8(0)
	if c.write {
		length = uint8(Fields[f.ID].Bytes)
		if f.Masked {
			kind, length = kind|1, 2*length
		}
	}
	c.u16(&class)
	c.u8(&kind)
	if c.u8(&length); c.err != nil {
		return
	}
	if class != classBasic || kind>>1 >= uint8(NumFields) {
		c.fail(BadMatchBadField)
		return
	}
	f.ID, f.Masked = FieldID(kind>>1), kind&1 != 0
	c.value(f, int(length))
}

func (c *coder) value(f *Field, length int) {
	info := &Fields[f.ID]
	n := info.Bytes
	if f.Masked {
		n *= 2
	}
	switch {
	case f.Masked && !info.Maskable:
		c.fail(BadMatchBadMask)
		return
	case n != length:
		c.fail(BadMatchBadLen)
		return
	}
	c.u128(&f.Value, info.Bytes)
	if f.Masked {
		c.u128(&f.Mask, info.Bytes)
	} else if !c.write {
		f.Mask = Ones(info.Bits)
	}
}
