package ofswitch

import (
	"math/rand/v2"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/of13"
)

const sameTables = 4

// beginning makes tables empty, and groups and meters those that entries use. Nothing
// exceeds a meter: what does is a matter of time. With Open vSwitch the buckets of the
// group that selects one do the same, since which one it is differs.
func beginning(ours bool) []of13.Message {
	all := uint32(3) // bits of reasons
	return []of13.Message{
		&of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: of13.NoMaxLen},
		&of13.Async{Kind: of13.TypeSetAsync, PacketIn: [2]uint32{7, 7}, PortStatus: [2]uint32{0, 0}, FlowRemove: [2]uint32{all | 12, all | 12}},
		&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
		&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll},
		&of13.GroupMod{Kind: of13.GroupTypeAll, Group: 1, Buckets: []of13.Bucket{bucketOf(of13.Exact(of13.EthDst, 0x020000000009), 2), bucketOf(of13.Exact(of13.EthSrc, 0x020000000008), 3), bucketOf(of13.Exact(of13.EthDst, 5), 1)}},
		&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 2, Buckets: []of13.Bucket{bucketOf(of13.Exact(of13.EthSrc, 0x020000000007), 3)}},
		&of13.GroupMod{Kind: of13.GroupTypeFailover, Group: 3, Buckets: []of13.Bucket{watching(1), watching(2)}},
		&of13.GroupMod{Kind: of13.GroupTypeSelect, Group: selects, Buckets: []of13.Bucket{weighing(1, 2), weighing(2, 2+uint32(bit(ours))), weighing(3, 2)}},
		&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll},
		&of13.MeterMod{Meter: 1, Flags: of13.MeterKBPS | of13.MeterStatsFlag, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 10_000_000}}},
		&of13.MeterMod{Meter: 2, Flags: of13.MeterPKTPS | of13.MeterStatsFlag, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 10_000_000}}},
		missEntry(0, true), missEntry(1, false), missEntry(2, true), missEntry(3, false),
	}
}

func bucketOf(f of13.Field, port uint32) of13.Bucket {
	return of13.Bucket{WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{of13.SetField(f), of13.Output(port)}}
}

func watching(port uint32) of13.Bucket {
	return of13.Bucket{WatchGroup: of13.GroupAny, WatchPort: port, Actions: []of13.Action{of13.Output(port)}}
}

// selects is the group that selects a bucket.
const selects = 4

func weighing(weight uint16, port uint32) of13.Bucket {
	b := bucketOf(of13.Exact(of13.EthSrc, 0x020000000006), port)
	b.Weight = weight
	return b
}

func bit(b bool) int { return map[bool]int{true: 1}[b] }

// missEntry is what other entries leave over. Each table has one: Open vSwitch does
// the action set of a packet that meets none, which is to be dropped (5.4).
func missEntry(table uint8, tells bool) *of13.FlowMod {
	m := output(1)
	m.Table, m.Priority, m.Instructions = table, 0, nil
	if tells {
		m.Instructions = []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionOutput, Number: of13.PortController, MaxLen: of13.NoMaxLen}}}}
	}
	return m
}

// drawn is what entries of a seed were made of: changes are about such, too.
type drawn struct {
	r     *rand.Rand
	round int
	n     int
	kinds int // of entries, from the first on

	bottom  bool // the entry is about the last label of a stack
	changed bool // its actions put a label on, or took one off
}

func newDrawn(r *rand.Rand, ours bool) *drawn {
	if d := (&drawn{r: r, kinds: kindPBB}); !ours {
		return d
	}
	return &drawn{r: r, kinds: len(kinds)}
}

// someChanges are changes of entries. No two of one table have the same priority:
// which of them decides is undefined (5.2).
func someChanges(r *rand.Rand, round int, ours bool) (list []of13.Message) {
	d := newDrawn(r, ours)
	d.round = round % clearAfter
	if r.IntN(3) == 0 {
		list = append(list, &of13.GroupMod{Command: of13.CommandModify, Kind: of13.GroupTypeIndirect, Group: 2, Buckets: []of13.Bucket{bucketOf(of13.Exact(of13.EthSrc, r.Uint64N(9)), uint32(r.IntN(3)+1))}})
	}
	for d.n < roundChanges {
		list = append(list, d.change())
		d.n++
	}
	return list
}

func (d *drawn) change() *of13.FlowMod {
	m := d.entry()
	if d.r.IntN(4) > 0 {
		return m
	}
	m.Flags = 0
	m.Command = []uint8{of13.FlowModify, of13.FlowModifyStrict, of13.FlowDelete, of13.FlowDeleteStrict}[d.r.IntN(4)]
	m.Priority = d.priority(d.r.IntN(d.round+1), d.r.IntN(roundChanges))
	if m.Command == of13.FlowModify || m.Command == of13.FlowModifyStrict {
		m.Flags = []uint16{0, of13.FlowResetCounts}[d.r.IntN(2)]
		if d.r.IntN(2) == 0 {
			m.CookieMask = 3
		}
		return m
	}
	if m.Instructions = nil; len(m.Match.Fields) == 0 {
		m.Match.Fields = []of13.Field{tagMatch} // tables keep their last entry
	}
	if d.r.IntN(3) == 0 {
		m.OutPort = uint32(d.r.IntN(3) + 1)
	}
	if d.r.IntN(3) == 0 {
		m.CookieMask = 1
	}
	return m
}

func (d *drawn) priority(round, n int) uint16 {
	return uint16(1 + (round*roundChanges+n)*7919%(clearAfter*roundChanges))
}

// entry is a new one.
func (d *drawn) entry() *of13.FlowMod {
	r, kind := d.r, d.r.IntN(d.kinds)
	m := output(1, kinds[kind]...)
	m.Table, m.Priority, m.Cookie = uint8(r.IntN(sameTables)), d.priority(d.round, d.n), r.Uint64N(1000)
	m.Flags = []uint16{0, of13.FlowSendRemoved}[r.IntN(2)]
	tags := r.IntN(3) // any, one, none
	switch tags {
	case 1:
		m.Match.Fields = append(m.Match.Fields, tagMatch)
	case 2:
		m.Match.Fields = append(m.Match.Fields, of13.Exact(of13.VLANVID, 0))
	}
	m.Match.Fields = append(m.Match.Fields, d.fields(kind)...)
	if m.Table > 0 && r.IntN(4) == 0 {
		m.Match.Fields = append(m.Match.Fields, of13.WithMask(of13.Metadata, of13.U128{Lo: r.Uint64N(2)}, of13.U128{Lo: 1}))
	}
	m.Instructions = d.instructions(m.Table, kind, tags)
	return m
}

// fields are those of a match beyond its kind.
func (d *drawn) fields(kind int) (list []of13.Field) {
	r := d.r
	some := func(f of13.Field) {
		if r.IntN(3) == 0 {
			list = append(list, f)
		}
	}
	some(of13.Exact(of13.InPort, r.Uint64N(samePorts)+1))
	some(of13.WithMask(of13.EthDst, of13.U128{Lo: 0x020000000000 | r.Uint64N(3)}, of13.U128{Lo: 0xffffffffff01}))
	switch kind {
	case 1:
		some(of13.WithMask(of13.IPv4Dst, of13.U128{Lo: 0x0a000000 | r.Uint64N(8)&^3}, of13.U128{Lo: 0xfffffffc}))
		some(of13.Exact(of13.UDPDst, r.Uint64N(3)))
		some(of13.Exact(of13.IPDSCP, r.Uint64N(2)*18))
	case 2:
		some(of13.Exact(of13.TCPDst, r.Uint64N(2)))
		some(of13.Field{ID: of13.IPv6Dst, Masked: true, Value: of13.U128{Lo: r.Uint64N(2)}, Mask: of13.U128{Lo: 1}})
	case 3:
		some(of13.Exact(of13.ARPTPA, 0x0a000002))
	case 5:
		some(of13.Exact(of13.SCTPDst, r.Uint64N(3)))
	case kindMPLS:
		d.bottom = r.IntN(2) == 0
		list = append(list, of13.Exact(of13.MPLSBOS, uint64(bit(d.bottom))))
		some(of13.Exact(of13.MPLSLabel, 16+r.Uint64N(3)))
		some(of13.Exact(of13.MPLSTC, r.Uint64N(2)))
	case kindPBB:
		some(of13.Exact(of13.PBBISID, r.Uint64N(2)))
	}
	return list
}

func (d *drawn) instructions(table uint8, kind, tags int) (list []of13.Instruction) {
	r := d.r
	if d.changed = false; r.IntN(6) == 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionMeter, Meter: uint32(r.IntN(2) + 1)})
	}
	if r.IntN(4) > 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionApply, Actions: d.actions(kind, tags, table == 0, false)})
	}
	if r.IntN(8) == 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionClear})
	}
	if d.changed {
		kind = 0 // its headers are no longer there
	}
	if r.IntN(2) == 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionWrite, Actions: d.actions(kind, 0, false, true)})
	}
	if table < sameTables-1 && r.IntN(2) == 0 {
		list = append(list, of13.Instruction{Type: of13.InstructionMetadata, Metadata: r.Uint64N(4), Mask: 3},
			of13.Instruction{Type: of13.InstructionGoto, Table: table + 1 + uint8(r.IntN(int(sameTables-1-table)))})
	}
	return list
}

// actions of a list, or of a set, which has one of each type. Times to live are only
// decreased where there is no action set yet: Open vSwitch executes that of a packet
// which it has told a controller of for its time to live, and does not go on with.
func (d *drawn) actions(kind, tags int, first, set bool) (list []of13.Action) {
	r, told := d.r, false
	for range r.IntN(5) {
		a := of13.Action{}
		switch r.IntN(10) {
		case 0, 1, 2:
			a = of13.Output([]uint32{1, 2, 3, of13.PortInPort, of13.PortAll}[r.IntN(5)])
		case 3:
			if set || told {
				continue // of a set Open vSwitch has the cookie of the first entry, not none (7.4.1)
			}
			told = true
			a = of13.Action{Type: of13.ActionOutput, Number: of13.PortController, MaxLen: of13.NoMaxLen}
		case 4, 5:
			if d.changed {
				continue
			}
			f := settable[kind][r.IntN(len(settable[kind]))]
			if f.ID == of13.VLANVID || f.ID == of13.VLANPCP {
				if tags != 1 {
					continue
				}
			}
			a = of13.SetField(f)
		case 6:
			a = of13.Action{Type: of13.ActionGroup, Number: uint32(r.IntN(selects) + 1)}
			if !first && a.Number == selects && d.kinds < len(kinds) {
				continue // with an action set it ends Open vSwitch: "assertion state->action_set_len <= state->ofpacts_len failed"
			}
		case 7:
			if a = d.special(kind, tags); a.Type == 0 || d.changed || !first && a.Type == of13.ActionDecNWTTL {
				continue
			}
			if a.Type == of13.ActionPopVLAN {
				tags = 2
			}
		case 8, 9:
			if a = d.label(kind, tags, first); a.Type == 0 {
				continue
			}
			if a.Type == of13.ActionPushMPLS { // Open vSwitch makes a class of the IP header's DSCP, where it is to be 0 (5.12.1)
				list, a = append(list, a), of13.SetField(of13.Exact(of13.MPLSTC, r.Uint64N(8)))
			}
		}
		list = append(list, a)
	}
	return list
}

// special is a tag or a time to live. What is pushed is a first tag: Open vSwitch
// gives a second one other values than 5.12.1 says.
func (d *drawn) special(kind, tags int) of13.Action {
	switch {
	case tags == 1:
		return of13.Action{Type: of13.ActionPopVLAN}
	case (kind == 1 || kind == 2) && d.r.IntN(2) == 0:
		return of13.Action{Type: of13.ActionSetNWTTL, TTL: uint8(d.r.IntN(200) + 2)}
	case kind == 1 || kind == 2:
		return of13.Action{Type: of13.ActionDecNWTTL}
	}
	return of13.Action{}
}

// label is about MPLS. Labels come and go in the first table, where there is no action set
// yet that is about other headers, once in an entry, and not behind a tag: of what is put on
// there the specification and Open vSwitch do not say the same place.
func (d *drawn) label(kind, tags int, first bool) of13.Action {
	switch {
	case d.changed:
	case kind == kindMPLS && d.r.IntN(2) == 0:
		if first && d.r.IntN(2) == 0 {
			return of13.Action{Type: of13.ActionDecMPLSTTL}
		}
		return of13.Action{Type: of13.ActionSetMPLSTTL, TTL: uint8(d.r.IntN(200) + 2)}
	case tags != 2 || !first || kind != kindMPLS && kind != kindUDP:
	case kind == kindMPLS && d.r.IntN(2) == 0:
		d.changed = true
		return of13.Action{Type: of13.ActionPopMPLS, EtherType: []uint16{0x8847, 0x0800}[bit(d.bottom)]}
	default:
		d.changed = true
		return of13.Action{Type: of13.ActionPushMPLS, EtherType: 0x8847}
	}
	return of13.Action{}
}

// timedEntries run out by idleness, by their age, or by both.
func timedEntries(r *rand.Rand, ours bool) (list []of13.Message) {
	d := newDrawn(r, ours)
	for ; d.n < roundChanges; d.n++ {
		m := d.entry()
		m.Flags, m.Idle, m.Hard = of13.FlowSendRemoved, 2, uint16(r.IntN(2)*4)
		list = append(list, m)
	}
	return list
}

// plainFrame is one of the headers that entries ask for, or of none of them.
func plainFrame(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	mac := func() []byte { return []byte{2, 0, 0, 0, 0, byte(r.IntN(3))} }
	list := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: mac(), DstMAC: mac()}}
	kind := &list[0].(*layers.Ethernet).EthernetType
	if r.IntN(2) == 0 {
		*kind = layers.EthernetTypeDot1Q
		tag := &layers.Dot1Q{VLANIdentifier: uint16(r.IntN(3)), Priority: uint8(r.IntN(2))}
		list, kind = append(list, tag), &tag.Type
	}
	payload := gopacket.Payload(make([]byte, 50+r.IntN(40)))
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	return serialized(t, append(append(list, above(r, kind, mac)...), payload)...)
}
