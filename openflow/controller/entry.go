package controller

import (
	"slices"

	"sublet/openflow/of13"
)

// Entry is one of a flow table, as it is wanted.
type Entry struct {
	Table        uint8
	Priority     uint16
	Idle         uint16 // seconds without a packet after which it goes; 0: it stays
	Match        of13.Match
	Instructions []of13.Instruction
}

// key is what makes two entries the same for a switch: the second replaces the
// first.
func (e *Entry) key() string {
	head := []byte{e.Table, byte(e.Priority >> 8), byte(e.Priority)}
	return string(append(head, of13.FlowBody(plainMatch(e.Match), nil)...))
}

// does is what an entry does to packets, in a form in which equal things are
// equal.
func (e *Entry) does() string {
	head := []byte{byte(e.Idle >> 8), byte(e.Idle)}
	return string(append(head, of13.FlowBody(of13.Match{}, plainInstructions(e.Instructions))...))
}

// form is key and does together.
func (e Entry) form() string { return e.key() + e.does() }

// plainMatch is a match as every switch tells it: in the order of the fields'
// numbers, without masks that mask nothing or all.
func plainMatch(m of13.Match) of13.Match {
	var plain of13.Match
	for _, f := range m.Fields {
		if f.Masked && f.Mask.Zero() {
			continue
		}
		if f.Mask == of13.Ones(of13.Fields[f.ID].Bits) {
			f.Masked = false
		}
		plain.Fields = append(plain.Fields, f)
	}
	slices.SortFunc(plain.Fields, func(a, b of13.Field) int { return int(a.ID) - int(b.ID) })
	return plain
}

// plainInstructions leaves out how much of a packet goes to ports that are not the
// controller's, which switches do not keep, and orders instructions by type.
func plainInstructions(list []of13.Instruction) []of13.Instruction {
	list = slices.Clone(list)
	for i := range list {
		list[i].Actions = slices.Clone(list[i].Actions)
		for j := range list[i].Actions {
			if a := &list[i].Actions[j]; a.Type == of13.ActionOutput && a.Number != of13.PortController {
				a.MaxLen = 0
			}
		}
	}
	slices.SortStableFunc(list, func(a, b of13.Instruction) int { return int(a.Type) - int(b.Type) })
	return list
}

// Overlap says whether there are packets that meet both matches.
func Overlap(a, b of13.Match) bool {
	for _, f := range a.Fields {
		for _, g := range b.Fields {
			both := f.Mask.And(g.Mask)
			if f.ID == g.ID && f.Value.And(both) != g.Value.And(both) {
				return false
			}
		}
	}
	return true
}
