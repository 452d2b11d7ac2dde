package pipeline

import (
	"slices"
	"testing"

	"sublet/openflow/of13"
)

// A passage has every table, group and port that a packet meets, and leaves nothing
// behind.
func TestExplain(t *testing.T) {
	s, sink := explained(t)
	fields := []of13.Field{of13.Exact(of13.InPort, 1), of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 6), of13.Exact(of13.IPv4Dst, 0x0a000001), of13.Exact(of13.TCPDst, 80)}
	frame, err := Frame(fields)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Explain(0, 1, frame)
	if err != nil {
		t.Fatal(err)
	}
	var what []What
	for _, n := range p.Seen {
		what = append(what, n.What)
	}
	want := []What{SeenTable, SeenTable, SeenOutput, SeenGroup, SeenBucket, SeenOutput, SeenBucket, SeenNoOutput}
	if !slices.Equal(what, want) || p.Cause != CauseNone {
		t.Fatalf("%v, %v, not %v", what, p.Cause, want)
	}
	if at := p.Seen[2]; at.Number != 2 || at.Queue != 3 {
		t.Errorf("leaves by %+v", at)
	}
	if e := p.Seen[1].Entry; e == nil || e.Priority != 7 || e.Table != 1 {
		t.Errorf("table 1: %+v", e)
	}
	var steps []StepKind
	for _, step := range p.Steps {
		steps = append(steps, step.Kind)
	}
	if !slices.Equal(steps, []StepKind{StepSet, StepOutput, StepOutput}) {
		t.Errorf("steps %v", p.Steps)
	}
	if !slices.ContainsFunc(p.Like, func(f of13.Field) bool { return f.ID == of13.TCPDst && f.Value.Lo == 80 }) {
		t.Errorf("like %v", p.Like)
	}
	if len(sink.sent) > 0 || s.tables[0].lookups > 0 || p.Seen[0].Entry.Packets > 0 || s.groups[5].count.Packets > 0 {
		t.Errorf("sent %v, %d lookups", sink.sent, s.tables[0].lookups)
	}
	if _, err := s.Explain(0, 9, frame); err == nil {
		t.Error("a frame of no port was explained")
	}
}

// explained is a switch with ports 1 to 3, two tables and a group.
func explained(t *testing.T) (*Switch, *sent) {
	t.Helper()
	sink := &sent{}
	s := New(Config{Tables: 2, Entries: 10, Groups: 1}, sink)
	for n := range uint32(3) {
		s.SetPort(0, of13.Port{Number: n + 1})
	}
	bucket := func(port uint32) of13.Bucket {
		return of13.Bucket{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(port)}}
	}
	add := func(m *of13.FlowMod) *of13.FlowMod {
		m.Buffer, m.OutPort, m.OutGroup = of13.NoBuffer, of13.PortAny, of13.GroupAny
		return m
	}
	for _, m := range []of13.Message{
		&of13.GroupMod{Group: 5, Buckets: []of13.Bucket{bucket(3), bucket(4)}},
		add(&of13.FlowMod{Instructions: []of13.Instruction{{Type: of13.InstructionGoto, Table: 1}}}),
		add(&of13.FlowMod{
			Table: 1, Priority: 7,
			Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 6), of13.Exact(of13.TCPDst, 80)}},
			Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{
				of13.SetField(of13.Exact(of13.EthDst, 5)), {Type: of13.ActionSetQueue, Number: 3}, of13.Output(2), {Type: of13.ActionGroup, Number: 5},
			}}},
		}),
	} {
		if _, err := s.Do(0, m); err != nil {
			t.Fatalf("%T: %v", m, err)
		}
	}
	return s, sink
}

// sent is frames by port.
type sent struct {
	nowhere
	sent []uint32
}

func (s *sent) Send(port, _ uint32, _ []byte) { s.sent = append(s.sent, port) }

// A frame has the fields that it was made of, whatever they are.
func TestFrameHasItsFields(t *testing.T) {
	for _, fields := range [][]of13.Field{
		{of13.Exact(of13.EthSrc, 7), of13.Exact(of13.EthDst, 8), of13.Exact(of13.VLANVID, of13.VLANPresent|5), of13.Exact(of13.VLANPCP, 3)},
		{of13.Exact(of13.EthType, 0x0806), of13.Exact(of13.ARPOp, 2), of13.Exact(of13.ARPSPA, 9)},
		{of13.Exact(of13.EthType, 0x86dd), of13.Exact(of13.IPProto, 17), of13.Exact(of13.UDPSrc, 53), of13.Exact(of13.IPDSCP, 46)},
		{of13.Exact(of13.EthType, 0x86dd), of13.Exact(of13.IPProto, 58), of13.Exact(of13.ICMPv6Type, 135), of13.Exact(of13.NDSLL, 3)},
		{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 1), of13.Exact(of13.ICMPv4Type, 8), of13.Exact(of13.IPv4Src, 1)},
		{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 132), of13.Exact(of13.SCTPDst, 8)},
		{of13.Exact(of13.EthType, 0x8847), of13.Exact(of13.MPLSLabel, 99)},
	} {
		b, err := Frame(fields)
		if err != nil {
			t.Errorf("%v: %v", fields, err)
			continue
		}
		var p packet
		p.load(b, 1)
		for _, f := range fields {
			if got := p.key.get128(f.ID); got != f.Value {
				t.Errorf("%s is %v, not %v", of13.Fields[f.ID].Name, got, f.Value)
			}
		}
	}
	if _, err := Frame([]of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.TCPDst, 80)}); err == nil {
		t.Error("a packet that is no TCP has a port of TCP")
	}
}
