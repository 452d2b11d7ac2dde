package of13

// Types of properties of a table; one more is the same for the table-miss entry.
const (
	PropertyInstructions  uint16 = 0
	PropertyNextTables    uint16 = 2
	PropertyWriteActions  uint16 = 4
	PropertyApplyActions  uint16 = 6
	PropertyMatch         uint16 = 8
	PropertyWildcards     uint16 = 10
	PropertyWriteSetField uint16 = 12
	PropertyApplySetField uint16 = 14
)

// TableFeatures is what a table can do.
type TableFeatures struct {
	Table                       uint8
	Name                        string // up to 31 bytes
	MetadataMatch, MetadataMask uint64
	Config, MaxEntries          uint32
	Properties                  []TableProperty
}

// TableProperty is one list of what a table can do: types of instructions or
// actions, OXM headers, or tables.
type TableProperty struct {
	Kind uint16
	List []uint32 // types of instructions or actions, tables, or OXM headers, by Kind
}

func (c *coder) tableFeatures(t *TableFeatures) {
	c.sized(0, 64, false, func() {
		length := uint16(0)
		c.u16(&length)
		c.u8(&t.Table)
		c.pad(5)
		c.text(&t.Name, 32)
		c.u64s(&t.MetadataMatch, &t.MetadataMask)
		c.u32s(&t.Config, &t.MaxEntries)
		list(c, &t.Properties, (*coder).tableProperty)
	})
}

func (c *coder) tableProperty(p *TableProperty) {
	c.sized(2, 4, true, func() {
		length := uint16(0)
		c.u16(&p.Kind)
		c.u16(&length)
		switch {
		case p.Kind <= 1 || p.Kind >= 4 && p.Kind <= 7:
			list(c, &p.List, (*coder).kindAndLength)
		case p.Kind <= 3:
			list(c, &p.List, (*coder).tableNumber)
		case p.Kind <= 15:
			list(c, &p.List, (*coder).oxmHeader)
		default:
			c.fail(TableFeaturesFailedBadType)
		}
	})
}

// kindAndLength is an instruction or action without its body.
func (c *coder) kindAndLength(v *uint32) {
	kind, length := uint16(*v), uint16(4)
	if kind == ActionExperimenter {
		length = 8
	}
	c.u16(&kind)
	if c.u16(&length); length < 4 {
		c.fail(c.short)
		return
	}
	if !c.write {
		c.pad(int(length) - 4) // an experimenter's has its number
		*v = uint32(kind)
	} else if kind == ActionExperimenter {
		number := ExperimenterNicira
		c.u32(&number)
	}
}

func (c *coder) tableNumber(v *uint32) {
	table := uint8(*v)
	c.u8(&table)
	*v = uint32(table)
}

// oxmHasMask is the bit of an OXM header that says that there is a mask.
const oxmHasMask = 1 << 8

// OXMHeader is the header of a field, which tables' features list: class, field, whether
// it may be masked, length. Behind that of an experimenter's field its number follows.
func OXMHeader(id FieldID, masked bool) uint32 {
	class, length := uint32(classBasic), uint32(Fields[id].Bytes)
	if masked {
		length *= 2
	}
	if id.experimenter() {
		class, length = classExperimenter, length+experimenterLen
	}
	h := class<<16 | uint32(id.number())<<9 | length
	if masked {
		h |= oxmHasMask
	}
	return h
}

// FieldOf is the field of an OXM header.
func FieldOf(header uint32) (id FieldID, known bool) {
	return fieldOf(uint16(header>>16), uint8(header>>9&0x7f))
}
