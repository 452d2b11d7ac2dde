package slice

import (
	"fmt"
	"maps"
	"slices"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// view is a slice at its switch: it translates what goes there and what comes back.
type view struct {
	*Slice
	first  uint8  // of its tables at the switch
	rated  uint32 // the switch's number of the meter of its rate; 0: it has none
	groups numbers
	meters numbers
	ports  map[uint32]of13.Port // of the slice, that the switch has
	alone  func(port uint32) bool
	guard  *guard
}

// table is a table of the slice at the switch.
func (v *view) table(own uint8) (there uint8, ok bool) {
	return v.first + own, int(own) < v.Tables
}

// own is a table of the switch as the slice knows it.
func (v *view) own(there uint8) (table uint8, ok bool) {
	return there - v.first, there >= v.first && int(there-v.first) < v.Tables
}

// has says whether a port is of the slice, there or not.
func (v *view) has(port uint32) bool {
	if port == 0 || port > of13.PortMax && port != of13.PortLocal {
		return false
	}
	return len(v.Ports) == 0 || slices.Contains(v.Ports, port)
}

// numbersOfPorts are those that the switch has, in order.
func (v *view) numbersOfPorts() []uint32 {
	return slices.Sorted(maps.Keys(v.ports))
}

// within says whether a match is of the slice.
func (v *view) within(m *of13.Match) error {
	for _, f := range m.Fields {
		if (f.ID == of13.InPort || f.ID == of13.InPhyPort) && !v.has(uint32(f.Value.Lo)) {
			return of13.FlowModFailedEPerm
		}
	}
	if contradict(m.Fields, v.Match) {
		return of13.FlowModFailedEPerm
	}
	return nil
}

// actions translates a list of actions.
func (v *view) actions(list []of13.Action, out bool) (there []of13.Action, err error) {
	for _, a := range list {
		switch a.Type {
		case of13.ActionOutput:
			if there, err = v.output(there, a, out); err != nil {
				return nil, err
			}
			continue
		case of13.ActionGroup:
			n, ok := v.groups.there[a.Number]
			if !ok {
				return nil, of13.BadActionBadOutGroup
			}
			a.Number = n
		case of13.ActionExperimenter:
			return nil, of13.BadActionBadExperimenter
		case of13.ActionSetField:
			if contradict([]of13.Field{a.Field}, v.Match) {
				return nil, of13.BadActionEPerm
			}
		case of13.ActionPopPBB, of13.ActionEncap, of13.ActionDecap: // the addresses go, too, and others come
			if len(v.Match) > 0 {
				return nil, of13.BadActionEPerm
			}
		case of13.ActionPushVLAN, of13.ActionPopVLAN, of13.ActionPushMPLS, of13.ActionPopMPLS, of13.ActionPushPBB, of13.ActionCopyTTLIn, of13.ActionCopyTTLOut:
			if !v.stays() {
				return nil, of13.BadActionEPerm
			}
		}
		there = append(there, a)
	}
	return there, nil
}

// stays says whether packets of the slice stay so whatever header is put in front or
// taken away.
func (v *view) stays() bool {
	return !slices.ContainsFunc(v.Match, func(f of13.Field) bool { return f.ID != of13.EthDst && f.ID != of13.EthSrc })
}

// output translates an output: all ports are those of the slice, one after the other,
// of which a switch leaves out the one that the packet came by.
func (v *view) output(there []of13.Action, a of13.Action, out bool) ([]of13.Action, error) {
	switch p := a.Number; {
	case p == of13.PortController:
		a.MaxLen = of13.NoMaxLen // packets are whole: the switch's buffers are not for slices
	case p == of13.PortInPort, p == of13.PortTable && out, p == of13.PortNormal && v.Default:
	case p == of13.PortAll || p == of13.PortFlood:
		for _, n := range v.numbersOfPorts() {
			if n != of13.PortLocal {
				there = append(there, of13.Output(n))
			}
		}
		return there, nil
	case !v.has(p):
		return nil, of13.BadActionBadOutPort
	}
	return append(there, a), nil
}

// instructions translates those of an entry.
func (v *view) instructions(list []of13.Instruction) ([]of13.Instruction, error) {
	there := make([]of13.Instruction, 0, len(list))
	for _, i := range list {
		switch i.Type {
		case of13.InstructionGoto:
			t, ok := v.table(i.Table)
			if !ok {
				return nil, of13.BadInstructionBadTableID
			}
			i.Table = t
		case of13.InstructionWrite, of13.InstructionApply:
			actions, err := v.actions(i.Actions, false)
			if err != nil {
				return nil, err
			}
			i.Actions = actions
		case of13.InstructionMeter:
			n, ok := v.meters.there[i.Meter]
			if !ok {
				return nil, of13.MeterModFailedUnknownMeter
			}
			i.Meter = n
		case of13.InstructionExperimenter:
			return nil, of13.BadInstructionBadExperimenter
		}
		there = append(there, i)
	}
	return there, nil
}

// guard says whether frames are of a slice.
type guard struct {
	tables *pipeline.Switch
	passed bool
}

// The ports of a guard: frames come by the first one.
const guardIn, guardOut = 1, 2

func newGuard(match []of13.Field) (*guard, error) {
	g := &guard{}
	g.tables = pipeline.New(pipeline.Config{Tables: 1, Entries: 1}, g)
	for _, n := range []uint32{guardIn, guardOut} {
		g.tables.SetPort(0, of13.Port{Number: n})
	}
	_, err := g.tables.Do(0, &of13.FlowMod{
		Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Match: of13.Match{Fields: match},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(guardOut)}}},
	})
	return g, err
}

// guardsOf makes one for each slice.
func guardsOf(list []Slice) (guards []*guard, err error) {
	guards = make([]*guard, len(list))
	for i := range list {
		if guards[i], err = newGuard(list[i].Match); err != nil {
			return nil, fmt.Errorf("slice %s: match: %w", list[i].Name, err)
		}
	}
	return guards, nil
}

// passes says whether a frame is of the slice.
func (g *guard) passes(frame []byte) bool {
	g.passed = false
	g.tables.Receive(0, guardIn, slices.Clone(frame))
	return g.passed
}

// Send is called for a frame that is of the slice.
func (g *guard) Send(uint32, uint32, []byte) { g.passed = true }

// PacketIn is nothing that its one entry does.
func (g *guard) PacketIn(*of13.PacketIn) {}

// FlowRemoved is nothing that happens to it.
func (g *guard) FlowRemoved(*of13.FlowRemoved) {}

// PortStatus is of no concern.
func (g *guard) PortStatus(*of13.PortStatus) {}
