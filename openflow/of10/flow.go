package of10

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

const (
	knownFlags = of13.FlowSendRemoved | of13.FlowCheckOverlap
	highest    = 0xffff // the priority of exact entries
)

func (c *coder) flowMod(m *of13.FlowMod) {
	exact := false
	c.match(&m.Match, &exact)
	c.u64s(&m.Cookie)
	command, flags := uint16(m.Command), m.Flags&knownFlags
	c.u16(&command)
	c.u16(&m.Idle)
	c.u16(&m.Hard)
	c.u16(&m.Priority)
	c.u32(&m.Buffer)
	c.port(&m.OutPort)
	c.u16(&flags)
	if c.write {
		c.writeActions(applied(m.Instructions))
		return
	}
	m.Command, m.Flags, m.OutGroup = uint8(min(command, 0xff)), flags, of13.GroupAny
	m.Table, m.Adds = 0, m.Command == of13.FlowModify || m.Command == of13.FlowModifyStrict
	switch m.Command {
	case of13.FlowAdd:
		m.Flags |= of13.FlowResetCounts // an entry that is replaced goes with its counters
	case of13.FlowDelete, of13.FlowDeleteStrict:
		m.Table = of13.TableAll
	}
	if exact {
		m.Priority = highest
	}
	m.Instructions = c.readApplied(m.Instructions)
	if flags&^knownFlags != 0 {
		c.fail(of13.FlowModFailedBadFlags)
	}
}

// readApplied reads actions up to the end; none make no instruction.
func (c *coder) readApplied(list []of13.Instruction) []of13.Instruction {
	list = list[:0]
	in := more(&list)
	*in = of13.Instruction{Type: of13.InstructionApply, Actions: c.readActions(c.bytes(c.rest()), in.Actions[:0])}
	if len(in.Actions) == 0 {
		return list[:0]
	}
	return list
}

// applied is the actions of an entry.
func applied(list []of13.Instruction) []of13.Action {
	for i := range list {
		if list[i].Type == of13.InstructionApply || list[i].Type == of13.InstructionWrite {
			return list[i].Actions
		}
	}
	return nil
}

func (c *coder) flowRemoved(m *of13.FlowRemoved) {
	c.match(&m.Match, nil)
	c.u64s(&m.Cookie)
	c.u16(&m.Priority)
	reason := min(m.Reason, of13.RemovedDelete) // that its group went is no reason of 1.0
	if c.u8(&reason); !c.write {
		m.Reason = min(reason, of13.RemovedDelete)
	}
	c.pad(1)
	c.u32(&m.Seconds)
	c.u32(&m.Nanos)
	c.u16(&m.Idle)
	c.pad(2)
	c.u64s(&m.Packets, &m.Bytes)
}

func (c *coder) packetIn(m *of13.PacketIn) {
	c.u32(&m.Buffer)
	c.u16(&m.Total)
	if c.write {
		in := of13.PortAny
		for i := range m.Match.Fields {
			if f := &m.Match.Fields[i]; f.ID == of13.InPort {
				in = uint32(f.Value.Lo)
			}
		}
		c.port(&in)
	} else {
		in := uint32(0)
		c.port(&in)
		m.Match.Fields = append(m.Match.Fields[:0], of13.Exact(of13.InPort, uint64(in)))
	}
	c.u8(&m.Reason)
	c.pad(1)
	c.tail(&m.Data)
}

// packetOut has no port for a packet that is the controller's own.
func (c *coder) packetOut(m *of13.PacketOut) {
	c.u32(&m.Buffer)
	in := m.InPort
	if c.write && in == of13.PortController {
		in = of13.PortAny
	}
	c.port(&in)
	length := uint16(0)
	at := len(c.b)
	c.u16(&length)
	if c.write {
		c.writeActions(m.Actions)
		binary.BigEndian.PutUint16(c.b[at:], uint16(len(c.b)-at-2))
		c.tail(&m.Data)
		return
	}
	if m.InPort = in; in == of13.PortAny {
		m.InPort = of13.PortController
	}
	m.Actions = c.readActions(c.bytes(int(length)), m.Actions[:0])
	c.tail(&m.Data)
}
