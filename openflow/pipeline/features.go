package pipeline

import (
	"math"
	"slices"

	"sublet/openflow/of13"
)

// properties are lists of what a table can do, by kind; nil: nothing was said.
type properties [of13.PropertyApplySetField + 2][]uint32

// features is what a controller has left of what a table can do.
type features struct {
	of13.TableFeatures
	lists properties
}

// tableFeatures says what tables can do, and restricts them before if that is asked for.
func (s *Switch) tableFeatures(r *of13.MultipartReply, m *of13.MultipartRequest) error {
	if len(m.TableFeatures) > 0 {
		if err := s.restrict(m.TableFeatures); err != nil {
			return err
		}
	}
	for i := range s.tables {
		f := s.allFeatures(i)
		if own := s.tables[i].features; own != nil {
			f = own.TableFeatures
		}
		f.Config = s.tables[i].config
		r.TableFeatures = append(r.TableFeatures, f)
	}
	return nil
}

func (s *Switch) allFeatures(table int) of13.TableFeatures {
	f := of13.TableFeatures{Table: uint8(table), Name: "table", MetadataMatch: ^uint64(0), MetadataMask: ^uint64(0), MaxEntries: uint32(min(s.config.Entries, math.MaxUint32))}
	for kind := of13.PropertyInstructions; kind <= of13.PropertyApplySetField+1; kind++ {
		if list, told := s.property(kind, table); told {
			f.Properties = append(f.Properties, of13.TableProperty{Kind: kind, List: list})
		}
	}
	return f
}

// restrict changes what all tables can do. No table can be taken away, and none
// can do less than its entries do.
func (s *Switch) restrict(list []of13.TableFeatures) error {
	next := make([]*features, len(s.tables))
	for i := range list {
		f := &list[i]
		switch {
		case int(f.Table) >= len(s.tables):
			return of13.TableFeaturesFailedBadTable
		case next[f.Table] != nil:
			return of13.TableFeaturesFailedBadArgument
		}
		made, err := s.checkFeatures(f)
		if err != nil {
			return err
		}
		next[f.Table] = made
	}
	for i, f := range next {
		if f == nil || !s.tables[i].fits(f) {
			return of13.TableFeaturesFailedEPerm
		}
	}
	for i, f := range next {
		s.tables[i].features, s.tables[i].config = f, f.Config
	}
	return nil
}

// checkFeatures makes features of a request that asks for no more than there is.
func (s *Switch) checkFeatures(f *of13.TableFeatures) (*features, error) {
	if f.MaxEntries > uint32(min(s.config.Entries, math.MaxUint32)) || f.Config&^configKnown != 0 {
		return nil, of13.TableFeaturesFailedBadArgument
	}
	made := &features{TableFeatures: *f}
	made.Properties = nil
	for _, p := range f.Properties {
		if made.lists[p.Kind] != nil {
			return nil, of13.TableFeaturesFailedBadType
		}
		can, _ := s.property(p.Kind&^1, int(f.Table))
		for _, v := range p.List {
			if !lists(can, v, p.Kind) {
				return nil, of13.TableFeaturesFailedBadArgument
			}
		}
		p.List = append([]uint32{}, p.List...)
		made.lists[p.Kind] = p.List
		made.Properties = append(made.Properties, p)
	}
	return made, nil
}

// hasMask is the bit of an OXM header that says that a field may be masked.
const hasMask = 1 << 8

// lists says whether a list has a value. Of fields a list that has one with a
// mask has it without one too.
func lists(list []uint32, v uint32, kind uint16) bool {
	if kind < of13.PropertyMatch {
		return slices.Contains(list, v)
	}
	return slices.ContainsFunc(list, func(l uint32) bool { return l>>9 == v>>9 && (l&hasMask != 0 || v&hasMask == 0) })
}

// allows says whether a table can do something; what a table-miss entry can do is
// that of others where it was not said.
func (f *features) allows(kind uint16, v uint32, miss bool) bool {
	if miss && f.lists[kind+1] != nil {
		kind++
	}
	return lists(f.lists[kind], v, kind)
}

// fits says whether features allow all entries of a table.
func (t *table) fits(f *features) bool {
	if t.size > int(f.MaxEntries) {
		return false
	}
	for e := range t.all() {
		if f.check(e.Match, e.Instructions, e.Priority) != nil {
			return false
		}
	}
	return true
}

// check says what of an entry a table cannot do; f may be nil.
func (f *features) check(match []of13.Field, does []of13.Instruction, priority uint16) error {
	if f == nil {
		return nil
	}
	miss := len(match) == 0 && priority == 0
	if err := f.checkMatch(match, miss); err != nil {
		return err
	}
	for i := range does {
		if err := f.checkInstruction(&does[i], miss); err != nil {
			return err
		}
	}
	return nil
}

func (f *features) checkMatch(match []of13.Field, miss bool) error {
	var seen uint64
	for i := range match {
		m := &match[i]
		switch {
		case m.Mask.Zero():
			continue
		case m.ID == of13.Metadata && m.Mask.Lo&^f.MetadataMatch != 0:
			return of13.BadMatchBadMask
		case !f.allows(of13.PropertyMatch, of13.OXMHeader(m.ID, false), false):
			return of13.BadMatchBadField
		case m.Masked && !f.allows(of13.PropertyMatch, of13.OXMHeader(m.ID, true), false):
			return of13.BadMatchBadMask
		}
		seen |= 1 << m.ID
	}
	for _, h := range f.lists[of13.PropertyMatch] {
		if id, _ := of13.FieldOf(h); !miss && seen&(1<<id) == 0 && !lists(f.lists[of13.PropertyWildcards], h&^hasMask, of13.PropertyWildcards) {
			return of13.BadMatchBadWildcards
		}
	}
	return nil
}

func (f *features) checkInstruction(in *of13.Instruction, miss bool) error {
	switch {
	case !f.allows(of13.PropertyInstructions, uint32(in.Type), miss):
		return of13.BadInstructionUnsupInst
	case in.Type == of13.InstructionGoto && !f.allows(of13.PropertyNextTables, uint32(in.Table), miss):
		return of13.BadInstructionBadTableID
	case in.Type == of13.InstructionMetadata && in.Mask&^f.MetadataMask != 0:
		return of13.BadInstructionUnsupMetadataMask
	}
	actions, fields := of13.PropertyApplyActions, of13.PropertyApplySetField
	if in.Type == of13.InstructionWrite {
		actions, fields = of13.PropertyWriteActions, of13.PropertyWriteSetField
	}
	for i := range in.Actions {
		a := &in.Actions[i]
		if !f.allows(actions, uint32(listed(a)), miss) {
			return of13.BadActionBadType
		}
		if a.Type == of13.ActionSetField && !f.allows(fields, of13.OXMHeader(a.Field.ID, false), miss) {
			return of13.BadActionBadSetType
		}
	}
	return nil
}

// listed is the type of an action as properties have it.
func listed(a *of13.Action) uint16 {
	if inNoSet(*a) {
		return of13.ActionExperimenter
	}
	return a.Type
}

// property lists what a table can do. Odd kinds are of the table-miss entry,
// which differs from others in nothing but its match.
func (s *Switch) property(kind uint16, table int) (list []uint32, told bool) {
	miss := kind&1 != 0
	switch kind &^ 1 {
	case of13.PropertyInstructions:
		list = []uint32{1, 2, 3, 4, 5, 6}
	case of13.PropertyNextTables:
		for next := table + 1; next < len(s.tables); next++ {
			list = append(list, uint32(next))
		}
	case of13.PropertyWriteActions, of13.PropertyApplyActions:
		for _, a := range setOrder {
			list = append(list, uint32(a))
		}
		if slices.Sort(list); kind&^1 == of13.PropertyApplyActions {
			list = append(list, uint32(of13.ActionExperimenter))
		}
	case of13.PropertyMatch, of13.PropertyWildcards:
		for id := range of13.NumFields {
			list = append(list, of13.OXMHeader(id, of13.Fields[id].Maskable && kind == of13.PropertyMatch))
		}
		return list, !miss
	case of13.PropertyWriteSetField, of13.PropertyApplySetField:
		for id := range of13.NumFields {
			if !of13.Fields[id].ReadOnly {
				list = append(list, of13.OXMHeader(id, false))
			}
		}
	}
	return list, true
}
