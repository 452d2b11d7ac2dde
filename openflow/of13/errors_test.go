package of13

import (
	"encoding/binary"
	"testing"
)

// bad is a message in which bytes are wrong, and what is said of it.
type bad struct {
	name  string
	m     Message
	wrong func(b []byte) []byte
	want  Error
}

func set16(at int, v uint16) func([]byte) []byte {
	return func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], v); return b }
}

func set8(at int, v uint8) func([]byte) []byte {
	return func(b []byte) []byte { b[at] = v; return b }
}

func flow(fields ...Field) Message { return &FlowMod{Match: Match{fields}} }

func flowDoing(list ...Instruction) Message { return &FlowMod{Instructions: list} }

func applying(a ...Action) Message {
	return flowDoing(Instruction{Type: InstructionApply, Actions: a})
}

// Places in a flow-mod: its match, the first field there; without fields, the
// first instruction and the first action in it.
const atMatch, atField, atInstruction, atAction = 48, 52, 56, 64

func badMessages() []bad {
	same := func(b []byte) []byte { return b }
	short := func(b []byte) []byte { b = b[:len(b)-1]; return set16(2, uint16(len(b)))(b) }
	tcp := []Field{Exact(EthType, 0x0800), Exact(IPProto, 6), Exact(TCPDst, 80)}
	return []bad{
		{"version", &Plain{TypeBarrierRequest}, set8(0, 5), BadRequestBadVersion},
		{"type of message", &Plain{TypeBarrierRequest}, set8(1, 30), BadRequestBadType},
		{"length of header", &Plain{TypeBarrierRequest}, set16(2, 7), BadRequestBadLen},
		{"trailing bytes", &Plain{TypeBarrierRequest}, func(b []byte) []byte { return set16(2, 12)(append(b, 0, 0, 0, 0)) }, BadRequestBadLen},
		{"short role", &Role{}, short, BadRequestBadLen},
		{"kind of multipart", &MultipartRequest{}, set16(8, 99), BadRequestBadMultipart},
		{"actions beyond the packet-out", &PacketOut{}, set16(16, 8), BadRequestBadLen},
		{"type of match", flow(tcp...), set16(atMatch, 0), BadMatchBadType},
		{"length of match", flow(tcp...), set16(atMatch+2, 9999), BadMatchBadLen},
		{"class of field", flow(tcp...), set16(atField, 1), BadMatchBadField},
		{"number of field", flow(tcp...), set8(atField+2, 60<<1), BadMatchBadField},
		{"length of field", flow(tcp...), set8(atField+3, 1), BadMatchBadLen},
		{"mask not allowed", flow(tcp...), set8(atField+2, uint8(EthType)<<1|1), BadMatchBadMask},
		{"value outside of mask", flow(Field{EthDst, true, U128{0, 1}, U128{0, 2}}), same, BadMatchBadWildcards},
		{"field twice", flow(tcp[0], tcp[0]), same, BadMatchDupField},
		{"without prerequisite", flow(tcp[1:]...), same, BadMatchBadPrereq},
		{"prerequisite of another protocol", flow(tcp[0], tcp[1], Exact(UDPDst, 53)), same, BadMatchBadPrereq},
		{"priority of no tag", flow(Exact(VLANVID, 0), Exact(VLANPCP, 1)), same, BadMatchBadPrereq},
		{"too large a value", flow(tcp[0], Exact(IPDSCP, 64)), same, BadMatchBadValue},
		{"tag without presence", flow(Exact(VLANVID, 5)), same, BadMatchBadValue},
		{"type of instruction", flowDoing(Instruction{Type: InstructionClear}), set16(atInstruction, 77), BadInstructionUnknownInst},
		{"experimenter's instruction", flowDoing(Instruction{Type: InstructionClear}), set16(atInstruction, 0xffff), BadInstructionBadExperimenter},
		{"length of instruction", flowDoing(Instruction{Type: InstructionClear}), set16(atInstruction+2, 16), BadInstructionBadLen},
		{"instruction without length", flowDoing(Instruction{Type: InstructionClear}), set16(atInstruction+2, 0), BadInstructionBadLen},
		{"short metadata", flowDoing(Instruction{Type: InstructionClear}), set16(atInstruction, InstructionMetadata), BadInstructionBadLen},
		{"instruction twice", flowDoing(Instruction{Type: InstructionClear}, Instruction{Type: InstructionClear}), same, BadInstructionUnsupInst},
		{"type of action", applying(Action{Type: ActionPopVLAN}), set16(atAction, 5), BadActionBadType},
		{"length of action", applying(Action{Type: ActionPopVLAN}), set16(atAction+2, 16), BadActionBadLen},
		{"action without length", applying(Action{Type: ActionPopVLAN}), set16(atAction+2, 0), BadActionBadLen},
		{"short output", applying(Action{Type: ActionPopVLAN}), set16(atAction, ActionOutput), BadActionBadLen},
		{"field that may not be set", applying(SetField(Exact(InPort, 1))), same, BadActionBadSetType},
		{"unknown field to set", applying(SetField(Exact(EthSrc, 1))), set8(atAction+6, 70<<1), BadActionBadSetType},
		{"set with a mask", applying(SetField(Exact(EthSrc, 1))), set8(atAction+6, uint8(EthSrc)<<1|1), BadActionBadSetType},
		{"length of what is set", applying(SetField(Exact(EthSrc, 1))), set8(atAction+7, 4), BadActionBadSetLen},
		{"value of what is set", applying(SetField(Exact(IPECN, 4))), same, BadActionBadSetArgument},
		{"length of bucket", &GroupMod{Buckets: []Bucket{{}}}, set16(16, 8), GroupModFailedBadBucket},
		{"length of band", &MeterMod{Bands: []Band{{Kind: BandDrop}}}, set16(18, 4), BadRequestBadLen},
		{"type of band", &MeterMod{Bands: []Band{{Kind: BandDrop}}}, set16(16, 9), MeterModFailedBadBand},
		{"type of property", &MultipartRequest{Kind: MultipartTableFeatures, TableFeatures: sampleFeatures()}, set16(80, 99), TableFeaturesFailedBadType},
		{"length of features", &MultipartRequest{Kind: MultipartTableFeatures, TableFeatures: sampleFeatures()}, set16(16, 20), TableFeaturesFailedBadLen},
	}
}

func TestBadMessagesHaveTheErrorOfTheSpecification(t *testing.T) {
	for _, c := range badMessages() {
		t.Run(c.name, func(t *testing.T) {
			var d Decoder
			_, _, err := d.Decode(c.wrong(encode(t, c.m)))
			if err != error(c.want) {
				t.Errorf("error %v instead of %v", err, c.want)
			}
		})
	}
}
