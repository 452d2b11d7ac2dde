package of13

// Classes of fields.
const (
	classBasic        = 0x8000 // OFPXMC_OPENFLOW_BASIC
	classExperimenter = 0xffff // OFPXMC_EXPERIMENTER
)

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
// (no tag), or has the bit of presence, if that is not masked out; a service header has
// two flags.
func (f *Field) valid() bool {
	if f.Value.Len() > Fields[f.ID].Bits {
		return false
	}
	if f.ID == NSHFlags {
		return f.Value.Lo <= 3
	}
	return f.ID != VLANVID || f.Value.Lo == 0 || (f.Value.Lo|^f.Mask.Lo)&VLANPresent != 0
}

// field is an OXM TLV: its header, value, mask.
func (c *coder) field(f *Field) {
	h := uint32(0)
	if c.write {
		h = OXMHeader(f.ID, f.Masked)
	}
	c.oxmHeader(&h)
	if c.err != nil {
		return
	}
	id, known := FieldOf(h)
	if !known {
		c.fail(BadMatchBadField)
		return
	}
	f.ID, f.Masked = id, h&oxmHasMask != 0
	length := int(h & 0xff)
	if id.experimenter() {
		length -= experimenterLen
	}
	c.value(f, length)
}

// experimenterLen is how many bytes behind a header say whose field it is.
const experimenterLen = 4

// oxmHeader is class, field, mask flag and length; of an experimenter's, who that is.
// One of which nothing is known is no field.
func (c *coder) oxmHeader(h *uint32) {
	if c.u32(h); *h>>16 != classExperimenter || c.err != nil {
		return
	}
	experimenter := ExperimenterNSH
	if c.u32(&experimenter); c.err == nil && experimenter != ExperimenterNSH {
		c.fail(BadMatchBadField)
	}
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
		if c.u128(&f.Mask, info.Bytes); !c.write {
			f.Mask = f.Mask.And(Ones(info.Bits))
		}
	} else if !c.write {
		f.Mask = Ones(info.Bits)
	}
}
