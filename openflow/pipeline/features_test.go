package pipeline

import (
	"fmt"
	"slices"
	"testing"

	"sublet/openflow/of13"
)

// askFeatures asks what tables can do, or changes it.
func askFeatures(s *Switch, list ...of13.TableFeatures) ([]of13.TableFeatures, error) {
	reply, err := s.Do(0, &of13.MultipartRequest{Kind: of13.MultipartTableFeatures, TableFeatures: list})
	if err != nil {
		return nil, err
	}
	return reply.(*of13.MultipartReply).TableFeatures, nil
}

// narrow is all features, but table 1 knows few.
func narrow(t *testing.T, s *Switch) []of13.TableFeatures {
	list, err := askFeatures(s)
	if err != nil || len(list) != 8 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	eth := of13.OXMHeader(of13.EthDst, false)
	f := of13.TableFeatures{Table: 1, Name: "few", MaxEntries: 2, MetadataMatch: 0xff, MetadataMask: 0xf}
	for kind, values := range map[uint16][]uint32{
		of13.PropertyInstructions: {1, 2, 4}, of13.PropertyNextTables: {2}, of13.PropertyApplyActions: {0, 25}, of13.PropertyApplySetField: {eth},
		of13.PropertyMatch: {of13.OXMHeader(of13.InPort, false), eth, of13.OXMHeader(of13.Metadata, true)}, of13.PropertyWildcards: {eth, of13.OXMHeader(of13.Metadata, false)},
		of13.PropertyInstructions + 1: {4},
	} {
		f.Properties = append(f.Properties, of13.TableProperty{Kind: kind, List: values})
	}
	list[1] = f
	return list
}

func TestFeaturesThatWereToldCanBeSet(t *testing.T) {
	s, _ := newSwitch(t)
	list, err := askFeatures(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := askFeatures(s, list...)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
		t.Errorf("%v: %v instead of %v", err, again, list)
	}
	must(t, s, 0, flow(1, 0, apply(of13.Output(1))), flow(1, 9, apply(of13.SetField(of13.Exact(of13.EthSrc, 1)), of13.Output(1)), of13.WithMask(of13.EthDst, of13.U128{Lo: 1}, of13.U128{Lo: 1})))
}

// A table does what it was left, and refuses the rest by the errors of the specification.
func TestTablesAreRestricted(t *testing.T) {
	s, _ := newSwitch(t)
	if got, err := askFeatures(s, narrow(t, s)...); err != nil || got[1].Name != "few" || len(got[1].Properties) != 7 || len(got) != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
	in := of13.Exact(of13.InPort, 1)
	for _, c := range []struct {
		m    *of13.FlowMod
		want of13.Error // 0: none
	}{
		{flow(1, 0, apply(of13.Output(1))), 0},
		{flow(1, 0, []of13.Instruction{{Type: of13.InstructionGoto, Table: 2}}), of13.BadInstructionUnsupInst}, // which only others may
		{flow(1, 1, apply(of13.Output(1))), of13.BadMatchBadWildcards},
		{flow(1, 1, nil, in, of13.Exact(of13.EthSrc, 1)), of13.BadMatchBadField},
		{flow(1, 1, nil, in, of13.WithMask(of13.EthDst, of13.U128{Lo: 1}, of13.U128{Lo: 1})), of13.BadMatchBadMask},
		{flow(1, 1, nil, in, of13.WithMask(of13.Metadata, of13.U128{Lo: 0x100}, of13.U128{Lo: 0x100})), of13.BadMatchBadMask},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionClear}}, in), of13.BadInstructionUnsupInst},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionGoto, Table: 3}}, in), of13.BadInstructionBadTableID},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionMetadata, Mask: 0x10}}, in), of13.BadInstructionUnsupMetadataMask},
		{flow(1, 1, apply(of13.Action{Type: of13.ActionPopVLAN}), in), of13.BadActionBadType},
		{flow(1, 1, apply(of13.SetField(of13.Exact(of13.EthSrc, 1))), in), of13.BadActionBadSetType},
		{flow(1, 1, apply(of13.SetField(of13.Exact(of13.EthDst, 1)), of13.Output(1)), in, of13.WithMask(of13.Metadata, of13.U128{Lo: 1}, of13.U128{Lo: 1})), 0},
		{flow(1, 2, []of13.Instruction{{Type: of13.InstructionGoto, Table: 2}}, in), of13.FlowModFailedTableFull},
	} {
		if _, err := s.Do(0, c.m); err != error(c.want) && (c.want != 0 || err != nil) {
			t.Errorf("%+v: %v instead of %v", c.m, err, c.want)
		}
	}
}

func TestFeaturesThatAreRefused(t *testing.T) {
	s, _ := newSwitch(t)
	must(t, s, 0, flow(1, 1, apply(of13.Output(1))))
	all, _ := askFeatures(s)
	for _, c := range []struct {
		change func(list []of13.TableFeatures) []of13.TableFeatures
		want   of13.Error
	}{
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[3].Table = 8; return l }, of13.TableFeaturesFailedBadTable},
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[3].Table = 2; return l }, of13.TableFeaturesFailedBadArgument},
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[3].MaxEntries = 101; return l }, of13.TableFeaturesFailedBadArgument},
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[3].Properties[0].List = []uint32{9}; return l }, of13.TableFeaturesFailedBadArgument},
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[3].Properties[1].Kind = 0; return l }, of13.TableFeaturesFailedBadType},
		{func(l []of13.TableFeatures) []of13.TableFeatures { return l[:7] }, of13.TableFeaturesFailedEPerm},
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[1].Properties = nil; return l }, of13.TableFeaturesFailedEPerm}, // it has an entry
		{func(l []of13.TableFeatures) []of13.TableFeatures { l[1].MaxEntries = 0; return l }, of13.TableFeaturesFailedEPerm},
	} {
		list := slices.Clone(all)
		for i := range list {
			list[i].Properties = slices.Clone(list[i].Properties)
		}
		if _, err := askFeatures(s, c.change(list)...); err != error(c.want) {
			t.Errorf("%v instead of %v", err, c.want)
		}
	}
	if after, _ := askFeatures(s); fmt.Sprint(after) != fmt.Sprint(all) {
		t.Error("something has changed")
	}
}
