package pipeline

import "sublet/openflow/of13"

// setOrder is the order in which the actions of a set are executed. Sets have
// one action of each type, but of set-fields one for each field; output stands
// aside, since a group comes instead of it.
var setOrder = [...]uint16{
	of13.ActionCopyTTLIn, of13.ActionPopVLAN, of13.ActionPopMPLS, of13.ActionPopPBB,
	of13.ActionPushMPLS, of13.ActionPushPBB, of13.ActionPushVLAN, of13.ActionCopyTTLOut,
	of13.ActionDecMPLSTTL, of13.ActionDecNWTTL, of13.ActionSetMPLSTTL, of13.ActionSetNWTTL,
	of13.ActionSetField, of13.ActionSetQueue, of13.ActionGroup, of13.ActionOutput,
}

// actionSet is the set of actions that a packet collects on its way.
type actionSet struct {
	has     uint32 // bits of types
	actions [of13.ActionPopPBB + 1]*of13.Action
	fields  [of13.NumFields]*of13.Action
	set     uint64 // bits of fields
}

func (a *actionSet) clear() { a.has, a.set = 0, 0 }

func (a *actionSet) write(list []of13.Action) {
	for i := range list {
		x := &list[i]
		if x.Type >= uint16(len(a.actions)) {
			continue
		}
		a.has |= 1 << x.Type
		if x.Type == of13.ActionSetField {
			a.set |= 1 << x.Field.ID
			a.fields[x.Field.ID] = x
		} else {
			a.actions[x.Type] = x
		}
	}
}

// finish executes the set of a packet.
func (s *Switch) finish(r *run, depth int) {
	set := &r.set
	r.late = true
	for _, kind := range setOrder {
		switch {
		case set.has&(1<<kind) == 0:
		case kind == of13.ActionSetField:
			for id, a := range set.fields {
				if set.set&(1<<id) != 0 {
					s.setField(r, &a.Field)
				}
			}
		case kind == of13.ActionOutput && set.has&(1<<of13.ActionGroup) != 0:
		case !s.do(r, set.actions[kind], depth):
			return
		}
	}
}
