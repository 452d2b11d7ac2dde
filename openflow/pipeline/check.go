package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// checkInstructions says what is wrong with the instructions of a flow-mod.
func (s *Switch) checkInstructions(m *of13.FlowMod) error {
	ctx := of13.NewContext()
	ctx.InPort = true
	for i := range m.Match.Fields {
		ctx.Learn(&m.Match.Fields[i])
	}
	for i := range m.Instructions {
		if err := s.checkInstruction(&m.Instructions[i], m.Table, ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Switch) checkInstruction(in *of13.Instruction, table uint8, ctx of13.Context) error {
	switch in.Type {
	case of13.InstructionGoto:
		if in.Table <= table || int(in.Table) >= len(s.tables) {
			return of13.BadInstructionBadTableID
		}
	case of13.InstructionMeter:
		if s.meters[in.Meter] == nil {
			return of13.MeterModFailedUnknownMeter
		}
	case of13.InstructionApply:
		return s.checkActions(in.Actions, ctx)
	case of13.InstructionWrite:
		if slices.ContainsFunc(in.Actions, inNoSet) {
			return of13.BadActionBadType
		}
		return s.checkActions(in.Actions, ctx)
	}
	return nil
}

// inNoSet says whether a set of actions has no place for one: sets have a kind once, and
// an order of kinds.
func inNoSet(a of13.Action) bool {
	return a.Type == of13.ActionEncap || a.Type == of13.ActionDecap || a.Type == of13.ActionDecNSHTTL
}

// checkActions says what is wrong with actions on packets of which ctx is known.
func (s *Switch) checkActions(list []of13.Action, ctx of13.Context) error {
	for i := range list {
		if err := s.checkAction(&list[i], &ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Switch) checkAction(a *of13.Action, ctx *of13.Context) error {
	switch a.Type {
	case of13.ActionOutput:
		if a.Number == 0 || a.Number == of13.PortAny || a.Number == of13.PortLocal && s.ports[of13.PortLocal] == nil || a.Number > of13.PortMax && a.Number < of13.PortInPort {
			return of13.BadActionBadOutPort
		}
	case of13.ActionGroup:
		if s.groups[a.Number] == nil {
			return of13.BadActionBadOutGroup
		}
	case of13.ActionExperimenter:
		if a.Number == of13.ExperimenterNicira {
			return of13.BadActionBadExpType
		}
		return of13.BadActionBadExperimenter
	case of13.ActionEncap, of13.ActionDecap, of13.ActionDecNSHTTL:
		return checkService(a, ctx)
	case of13.ActionSetMPLSTTL, of13.ActionSetNWTTL:
		if a.TTL == 0 {
			return of13.BadActionBadArgument
		}
	case of13.ActionSetField:
		if !a.Loose && !ctx.Allows(a.Field.ID) {
			return of13.BadActionMatchInconsistent
		}
		ctx.Learn(&a.Field)
	default:
		return checkTag(a, ctx)
	}
	return nil
}

// checkTag checks pushes and pops, after which another type may follow the addresses.
func checkTag(a *of13.Action, ctx *of13.Context) error {
	ok := true
	switch a.Type {
	case of13.ActionPushVLAN:
		ok, ctx.VLAN = isVLAN(a.EtherType), true
	case of13.ActionPushMPLS:
		ok = isMPLS(a.EtherType)
		ctx.EthType, ctx.IPProto = a.EtherType, -1
	case of13.ActionPopMPLS:
		ctx.EthType, ctx.IPProto = a.EtherType, -1
	case of13.ActionPushPBB:
		ok = a.EtherType == 0x88e7
		ctx.EthType, ctx.IPProto, ctx.VLAN = a.EtherType, -1, false
	case of13.ActionPopPBB:
		ctx.EthType, ctx.IPProto = 0, -1
	}
	if !ok {
		return of13.BadActionBadArgument
	}
	return nil
}
