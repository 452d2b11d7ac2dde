package pipeline

import (
	"testing"

	"sublet/openflow/of13"
)

func flagged(m *of13.FlowMod, change func(*of13.FlowMod)) *of13.FlowMod { change(m); return m }

func meterMod(m of13.MeterMod) *of13.MeterMod { return &m }

// What is refused has the error of the specification, and changes nothing.
func TestRefusals(t *testing.T) {
	group := of13.Action{Type: of13.ActionGroup, Number: 9}
	drop := []of13.Band{{Kind: of13.BandDrop, Rate: 1}}
	ask := func(kind uint16, number uint32) *of13.MultipartRequest {
		return &of13.MultipartRequest{Kind: kind, Number: number, Queue: of13.QueueAll}
	}
	for _, c := range []struct {
		m    of13.Message
		want of13.Error
	}{
		{flow(of13.TableAll, 1, nil), of13.FlowModFailedBadTableID},
		{flow(8, 1, nil), of13.FlowModFailedBadTableID},
		{flagged(flow(0, 1, nil), func(m *of13.FlowMod) { m.Command = 9 }), of13.FlowModFailedBadCommand},
		{flagged(flow(0, 1, nil), func(m *of13.FlowMod) { m.Flags = 128 }), of13.FlowModFailedBadFlags},
		{flagged(flow(0, 1, nil), func(m *of13.FlowMod) { m.Flags = of13.FlowCheckOverlap }), of13.FlowModFailedOverlap},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionGoto, Table: 1}}), of13.BadInstructionBadTableID},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionGoto, Table: 8}}), of13.BadInstructionBadTableID},
		{flow(1, 1, []of13.Instruction{{Type: of13.InstructionMeter, Meter: 9}}), of13.MeterModFailedUnknownMeter},
		{flow(1, 1, apply(group)), of13.BadActionBadOutGroup},
		{flow(1, 1, apply(of13.Output(0))), of13.BadActionBadOutPort},
		{flow(1, 1, apply(of13.Output(of13.PortAny))), of13.BadActionBadOutPort},
		{flow(1, 1, apply(of13.SetField(of13.Exact(of13.TCPDst, 1)))), of13.BadActionMatchInconsistent},
		{flow(1, 1, apply(of13.Action{Type: of13.ActionPushVLAN, EtherType: 0x0800})), of13.BadActionBadArgument},
		{flow(1, 1, apply(of13.Action{Type: of13.ActionExperimenter})), of13.BadActionBadExperimenter},
		{&of13.GroupMod{Group: 1}, of13.GroupModFailedGroupExists},
		{&of13.GroupMod{Group: 2, Command: of13.CommandModify}, of13.GroupModFailedUnknownGroup},
		{&of13.GroupMod{Group: 2, Command: 9}, of13.GroupModFailedBadCommand},
		{&of13.GroupMod{Group: of13.GroupAll}, of13.GroupModFailedInvalidGroup},
		{&of13.GroupMod{Group: 2, Kind: 4}, of13.GroupModFailedBadType},
		{&of13.GroupMod{Group: 2, Kind: of13.GroupTypeIndirect}, of13.GroupModFailedInvalidGroup},
		{&of13.GroupMod{Group: 2, Kind: of13.GroupTypeSelect, Buckets: []of13.Bucket{bucketTo(1)}}, of13.GroupModFailedInvalidGroup},
		{&of13.GroupMod{Group: 2, Kind: of13.GroupTypeFailover, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny}}}, of13.GroupModFailedBadWatch},
		{&of13.GroupMod{Group: 1, Command: of13.CommandModify, Buckets: []of13.Bucket{{Actions: []of13.Action{{Type: of13.ActionGroup, Number: 1}}}}}, of13.GroupModFailedLoop},
		{&of13.GroupMod{Group: 1, Command: of13.CommandModify, Buckets: []of13.Bucket{{Actions: []of13.Action{{Type: of13.ActionGroup, Number: 3}}}}}, of13.GroupModFailedLoop},
		{&of13.GroupMod{Group: 1, Command: of13.CommandDelete}, of13.GroupModFailedChainedGroup},
		{meterMod(of13.MeterMod{Meter: 1, Bands: drop}), of13.MeterModFailedMeterExists},
		{meterMod(of13.MeterMod{Meter: 2, Command: of13.CommandModify}), of13.MeterModFailedUnknownMeter},
		{meterMod(of13.MeterMod{Meter: 2, Command: 9}), of13.MeterModFailedBadCommand},
		{meterMod(of13.MeterMod{Meter: 0, Bands: drop}), of13.MeterModFailedInvalidMeter},
		{meterMod(of13.MeterMod{Meter: 2, Flags: 3}), of13.MeterModFailedBadFlags},
		{meterMod(of13.MeterMod{Meter: 2, Bands: []of13.Band{{Kind: of13.BandDrop}}}), of13.MeterModFailedBadRate},
		{meterMod(of13.MeterMod{Meter: 2, Flags: of13.MeterBurst, Bands: drop}), of13.MeterModFailedBadBurst},
		{meterMod(of13.MeterMod{Meter: 2, Bands: []of13.Band{{Kind: of13.BandExperimenter, Rate: 1}}}), of13.MeterModFailedBadBand},
		{meterMod(of13.MeterMod{Meter: 2, Bands: make([]of13.Band, maxBands+1)}), of13.MeterModFailedOutOfBands},
		{&of13.PortMod{Port: 77}, of13.PortModFailedBadPort},
		{&of13.PortMod{Port: 1}, of13.PortModFailedBadHWAddr},
		{&of13.PortMod{Port: 1, HWAddr: [6]byte{2, 0, 0, 0, 1, 0}, Mask: 2}, of13.PortModFailedBadConfig},
		{&of13.TableMod{Table: 1, Config: 64}, of13.TableModFailedBadConfig},
		{&of13.GroupMod{Group: 2, Buckets: []of13.Bucket{{Weight: 2}}}, of13.GroupModFailedWeightUnsupported},
		{&of13.GroupMod{Group: 2, Buckets: make([]of13.Bucket, maxBuckets+1)}, of13.GroupModFailedOutOfBuckets},
		{meterMod(of13.MeterMod{Meter: 2, Bands: []of13.Band{{Kind: of13.BandDSCPRemark, Rate: 1, Precedence: 3}}}), of13.MeterModFailedBadBandValue},
		{&of13.TableMod{Table: 9}, of13.TableModFailedBadTable},
		{&of13.PacketOut{Buffer: 5, InPort: of13.PortController}, of13.BadRequestBufferUnknown},
		{flagged(flow(0, 1, nil), func(m *of13.FlowMod) { m.Buffer = 77 }), of13.BadRequestBufferUnknown},
		{flow(1, 1, apply(of13.Output(of13.PortLocal))), of13.BadActionBadOutPort},
		{&of13.PacketOut{Buffer: of13.NoBuffer, InPort: 77, Data: make([]byte, 60)}, of13.BadRequestBadPort},
		{&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController}, of13.BadRequestBadPacket},
		{&of13.QueueConfigRequest{Port: 77}, of13.QueueOpFailedBadPort},
		{&of13.Config{Kind: of13.TypeSetConfig, Flags: of13.FragReassemble}, of13.SwitchConfigFailedBadFlags},
		{&of13.PortMod{Port: 1, HWAddr: [6]byte{2, 0, 0, 0, 1, 0}, Advertise: 1 << 11}, of13.PortModFailedBadAdvertise},
		{ask(of13.MultipartPort, 77), of13.BadRequestBadPort},
		{ask(of13.MultipartMeter, 77), of13.MeterModFailedUnknownMeter},
		{&of13.MultipartRequest{Kind: of13.MultipartQueue, Number: 1, Queue: 5}, of13.QueueOpFailedBadQueue},
		{&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: 77}}, of13.BadRequestBadTableID},
	} {
		s, _ := newSwitch(t)
		must(t, s, 0, flow(0, 1, nil), &of13.GroupMod{Group: 1}, &of13.GroupMod{Group: 3, Buckets: []of13.Bucket{{Actions: []of13.Action{{Type: of13.ActionGroup, Number: 1}}}}}, meterMod(of13.MeterMod{Meter: 1, Bands: drop}))
		if _, err := s.Do(0, c.m); err != error(c.want) {
			t.Errorf("%T %+v: error %v instead of %v", c.m, c.m, err, c.want)
		}
		if s.entries != 1 || len(s.groups) != 2 || len(s.meters) != 1 {
			t.Errorf("%T %+v: something has changed", c.m, c.m)
		}
	}
}

// Limits hold, and deletions take along what depends on them.
func TestLimitsAndDependents(t *testing.T) {
	s, r := newSwitch(t)
	uses := flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, apply(of13.Output(2))...))
	grouped := flow(0, 2, apply(of13.Action{Type: of13.ActionGroup, Number: 1}))
	uses.Flags, grouped.Flags = of13.FlowSendRemoved, of13.FlowSendRemoved
	must(t, s, 0, meterMod(of13.MeterMod{Meter: 1}), &of13.GroupMod{Group: 1, Buckets: []of13.Bucket{bucketTo(2)}}, uses, grouped,
		meterMod(of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll}), &of13.GroupMod{Command: of13.CommandDelete, Group: 1})
	if len(r.removed) != 2 || r.removed[0].Reason != of13.RemovedDelete || r.removed[1].Reason != of13.RemovedGroup || s.entries != 0 {
		t.Errorf("%+v", r.removed)
	}
	for i := range 100 {
		must(t, s, 0, flow(0, uint16(i), nil))
	}
	if _, err := s.Do(0, flow(0, 100, nil)); err != error(of13.FlowModFailedTableFull) {
		t.Error(err)
	}
	must(t, s, 0, flow(0, 5, nil)) // takes the place of another
	for i := range uint32(10) {
		must(t, s, 0, &of13.GroupMod{Group: i}, meterMod(of13.MeterMod{Meter: i + 1}))
	}
	if _, err := s.Do(0, &of13.GroupMod{Group: 10}); err != error(of13.GroupModFailedOutOfGroups) {
		t.Error(err)
	}
	if _, err := s.Do(0, meterMod(of13.MeterMod{Meter: 11})); err != error(of13.MeterModFailedOutOfMeters) {
		t.Error(err)
	}
}
