package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// Entry is an entry of a flow table.
type Entry struct {
	Table        uint8
	Priority     uint16
	Cookie       uint64
	Flags        uint16
	Idle, Hard   uint16 // seconds
	Match        []of13.Field
	Instructions []of13.Instruction
	*Counts

	value, mask  Key
	age          uint64 // entries are numbered as they come
	does         program
	flows        flowsOfEntry
	behind       *Entry // with the same hash, that decides if this one does not
	older, newer *Entry // of the table
	own          Counts // if they are nowhere else
	wire         []byte // match and instructions as statistics have them; nil: not yet
}

// program is what an entry does, by kind of instruction.
type program struct {
	meter          uint32
	apply, write   []of13.Action
	clear          bool
	metadata, mask uint64
	table          int // 0: no other
}

// copyActions makes a list that outlives the message.
func copyActions(list []of13.Action) []of13.Action {
	list = slices.Clone(list)
	for i := range list {
		list[i].Data = slices.Clone(list[i].Data)
	}
	return list
}

func (e *Entry) instruct(list []of13.Instruction) {
	e.Instructions, e.does, e.wire = slices.Clone(list), program{}, nil
	for i := range e.Instructions {
		in := &e.Instructions[i]
		in.Actions = copyActions(in.Actions)
		switch in.Type {
		case of13.InstructionMeter:
			e.does.meter = in.Meter
		case of13.InstructionApply:
			e.does.apply = in.Actions
		case of13.InstructionClear:
			e.does.clear = true
		case of13.InstructionWrite:
			e.does.write = in.Actions
		case of13.InstructionMetadata:
			e.does.metadata, e.does.mask = in.Metadata, in.Mask
		case of13.InstructionGoto:
			e.does.table = int(in.Table)
		}
	}
}

// uses says whether an action of the entry has a type and number.
func (e *Entry) uses(kind uint16, number uint32) bool {
	has := func(list []of13.Action) bool {
		return slices.ContainsFunc(list, func(a of13.Action) bool { return a.Type == kind && a.Number == number })
	}
	return has(e.does.apply) || has(e.does.write)
}

// outputsTo says whether an entry has actions that lead to a port and a group, or
// these stand for any.
func (e *Entry) outputsTo(port, group uint32) bool {
	return (port == of13.PortAny || e.uses(of13.ActionOutput, port)) && (group == of13.GroupAny || e.uses(of13.ActionGroup, group))
}

// miss says whether it is a table-miss entry.
func (e *Entry) miss() bool { return e.Priority == 0 && e.mask == Key{} }

// expired says whether and why an entry's time is over.
func (e *Entry) expired(now int64) (reason uint8, over bool) {
	const second = 1e9
	if e.Hard > 0 && now-e.created >= int64(e.Hard)*second {
		return of13.RemovedHard, true
	}
	return of13.RemovedIdle, e.Idle > 0 && now-e.used >= int64(e.Idle)*second
}

func lifetime(now, since int64) of13.Lifetime {
	return of13.Lifetime{Seconds: uint32((now - since) / 1e9), Nanos: uint32((now - since) % 1e9)}
}

func (e *Entry) stats(now int64) of13.FlowStats {
	if e.wire == nil {
		e.wire = of13.FlowBody(of13.Match{Fields: e.Match}, e.Instructions)
	}
	return of13.FlowStats{
		Body:  e.wire,
		Table: e.Table, Life: lifetime(now, e.created), Priority: e.Priority, Idle: e.Idle, Hard: e.Hard, Flags: e.Flags,
		Cookie: e.Cookie, Packets: e.Packets, Bytes: e.Bytes, Match: of13.Match{Fields: e.Match}, Instructions: e.Instructions,
	}
}

func (e *Entry) removed(now int64, reason uint8) *of13.FlowRemoved {
	life := lifetime(now, e.created)
	return &of13.FlowRemoved{
		Cookie: e.Cookie, Priority: e.Priority, Reason: reason, Table: e.Table, Seconds: life.Seconds, Nanos: life.Nanos,
		Idle: e.Idle, Hard: e.Hard, Packets: e.Packets, Bytes: e.Bytes, Match: of13.Match{Fields: e.Match},
	}
}
