package of13

// Types of instructions.
const (
	InstructionGoto         uint16 = 1
	InstructionMetadata     uint16 = 2
	InstructionWrite        uint16 = 3
	InstructionApply        uint16 = 4
	InstructionClear        uint16 = 5
	InstructionMeter        uint16 = 6
	InstructionExperimenter uint16 = 0xffff
)

// Instruction is what an entry does with a packet. Which fields count is a matter of Type.
type Instruction struct {
	Type           uint16
	Table          uint8
	Metadata, Mask uint64
	Meter          uint32
	Actions        []Action
}

func (c *coder) instruction(i *Instruction) {
	c.in(BadInstructionBadLen, func() {
		c.sized(2, 8, false, func() {
			if !c.write {
				*i = Instruction{Actions: i.Actions[:0]}
			}
			length := uint16(0)
			c.u16(&i.Type)
			c.u16(&length)
			c.instructionBody(i)
		})
	})
}

func (c *coder) instructionBody(i *Instruction) {
	switch i.Type {
	case InstructionGoto:
		c.u8(&i.Table)
		c.pad(3)
	case InstructionMetadata:
		c.pad(4)
		c.u64s(&i.Metadata, &i.Mask)
	case InstructionWrite, InstructionApply:
		c.pad(4)
		list(c, &i.Actions, (*coder).action)
	case InstructionClear:
		c.pad(4)
	case InstructionMeter:
		c.u32(&i.Meter)
	case InstructionExperimenter:
		c.fail(BadInstructionBadExperimenter)
	default:
		c.fail(BadInstructionUnknownInst)
	}
}

// once refuses instructions of which there are two of a type.
func (c *coder) once(list []Instruction) {
	seen := 0
	for i := range list {
		if bit := 1 << list[i].Type; !c.write && seen&bit != 0 {
			c.fail(BadInstructionUnsupInst)
		} else {
			seen |= bit
		}
	}
}
