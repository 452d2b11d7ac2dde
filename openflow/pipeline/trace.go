package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// trace is what is noted of a packet on its way through the tables. Bits of a
// field that was set are taken for bits of the packet, which makes a Flow
// narrower than it could be, and never wrong.
type trace struct {
	flow  *Flow
	cause Cause
	size  int     // of the frame as it came
	have  changes // what the steps so far have done

	remarks bool // a meter may have given it another DSCP than is known
	ghost   bool // a meter dropped it: it goes on for its Flow alone
}

// tag is a VLAN tag.
type tag struct{ kind, tci uint16 }

// changes is how a packet differs from what it was.
type changes struct {
	noted  bool // else nothing of this is kept
	fields []of13.Field
	tags   []tag // the outermost last; of the tags that it came with, the outermost only
	ttl    int   // it was set to; -1: not
	less   int   // by so much the time to live was decreased, or what it was set to
}

func (c *changes) clone() changes {
	d := *c
	d.fields, d.tags = slices.Clone(c.fields), slices.Clone(c.tags)
	return d
}

func (c *changes) field(id of13.FieldID) *of13.Field {
	for i := range c.fields {
		if c.fields[i].ID == id {
			return &c.fields[i]
		}
	}
	return nil
}

// ReceiveFlow is Receive, and says what the same packets meet. A frame may stand
// for several packets that are still to be cut. If cause is not CauseNone there
// is no Flow.
func (s *Switch) ReceiveFlow(now int64, number uint32, frame []byte, segments int) (f *Flow, cause Cause) {
	if s.ports[number] == nil {
		return nil, CausePort
	}
	t := s.traced(now, number, frame, segments)
	if t.cause != CauseNone {
		return nil, t.cause
	}
	t.flow.trim()
	return t.flow, CauseNone
}

// traced takes a frame through the tables, and notes its way.
func (s *Switch) traced(now int64, number uint32, frame []byte, segments int) *trace {
	t := &trace{flow: &Flow{}, size: len(frame)}
	sink, thought := s.sink, s.thought
	s.trace = t
	s.receive(now, number, frame, segments)
	s.trace, s.sink, s.thought = nil, sink, thought
	if t.cause == CauseNone && (t.flow.Shape&ShapeOdd != 0 || len(frame) < t.flow.LeastLen) {
		t.cause = CauseShape
	}
	return t
}

// begin notes a packet as it came.
func (t *trace) begin(r *run) {
	r.did = changes{noted: true, ttl: -1}
	t.flow.Key, t.flow.Shape = r.key, r.packet.shape()
	if t.flow.Shape.Tags() > 0 {
		r.did.tags = []tag{{r.u16(12), r.u16(14)}}
	}
	t.have = r.did.clone()
	t.fix(of13.InPort, of13.InPhyPort, of13.EthType, of13.IPProto)
	t.flow.Mask.set(of13.VLANVID, of13.VLANPresent)
	if r.key.Get(of13.EthType) == of13.EthTypeNSH {
		t.fix(of13.NSHMDType) // which says whether there is context to set
	}
}

// fix makes the values of fields matter.
func (t *trace) fix(ids ...of13.FieldID) {
	for _, id := range ids {
		var all Key
		all.put128(id, of13.Ones(of13.Fields[id].Bits))
		t.see(&all)
	}
}

func (t *trace) see(seen *Key) {
	if t.remarks && seen.Get(of13.IPDSCP) != 0 {
		t.cause = CauseMeter
	}
	for w, m := range seen {
		t.flow.Mask[w] |= m
	}
}

// trim leaves out bits that packets of a shape cannot have: they are 0 in all.
func (f *Flow) trim() {
	f.Mask[0], f.Mask[1] = 0, 0
	for _, w := range f.Key.absent() {
		f.Mask[w] = 0
	}
}

// absent lists the words of a key that are 0 in all packets of its type.
func (k *Key) absent() []uint8 {
	switch k.Get(of13.EthType) {
	case 0x0800:
		return []uint8{7, 8, 9, 10, 11, 12, 13, 14, 15}
	case 0x86dd:
		return []uint8{6, 11, 12, 13, 14} // neighbour discovery has an odd shape
	case 0x0806:
		return []uint8{7, 8, 9, 10, 11, 12, 15}
	case of13.EthTypeNSH:
		return []uint8{5, 9, 10, 11, 12, 13, 14, 15}
	case 0x8847, 0x8848, 0x88e7:
		return []uint8{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	}
	return []uint8{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
}

func (t *trace) lookup(table int, k *Key, e *Entry) {
	t.flow.lookups = append(t.flow.lookups, lookup{table: uint8(table), key: *k, entry: e})
}

// count notes counters of packets that have so many bytes.
func (t *trace) count(packets, bytes *uint64, used *int64, size int) {
	t.flow.tallies = append(t.flow.tallies, tally{packets, bytes, used, size - t.size, t.flow.meter != nil})
}

// bring brings the packet to what it is now.
func (t *trace) bring(r *run) {
	t.vlan(r.did.tags)
	t.ttl(&r.did)
	t.fields(r.did.fields)
	t.have = r.did.clone()
}

// meter notes a meter that the packet meets. There is a Flow of one that a datapath
// finds, unless a class that it gave has to be told from one that was set.
func (t *trace) meter(r *run, m *meter) {
	remarks := slices.ContainsFunc(m.rules, func(r MeterRule) bool { return !r.Drops })
	if !m.placed || t.flow.meter != nil || remarks && r.did.field(of13.IPDSCP) != nil {
		t.cause = CauseMeter
		return
	}
	t.bring(r)
	t.step(Step{Kind: StepMeter, Meter: m.state, Added: len(r.b) - t.size})
	t.flow.meter, t.remarks = m.state, remarks
}

// goOn says whether a packet that a meter dropped goes on, as nothing but a thought:
// those like it that pass have a Flow.
func (s *Switch) goOn() bool {
	if s.trace == nil || s.trace.cause != CauseNone {
		return false
	}
	s.trace.ghost, s.thought, s.sink = true, true, nowhere{}
	return true
}

// output brings the packet to what it is now, and sends it.
func (t *trace) output(r *run, port uint32) {
	t.bring(r)
	t.step(Step{Kind: StepOutput, Port: port, Queue: r.queue})
	if r.short {
		t.flow.LeastLen = max(t.flow.LeastLen, minFrame+t.size-len(r.b))
	}
}

func (t *trace) step(s Step) { t.flow.Steps = append(t.flow.Steps, s) }

// vlan pops the tags that the packet has no more and pushes those that it has now.
func (t *trace) vlan(want []tag) {
	have, same := t.have.tags, 0
	for same < min(len(have), len(want)) && have[same] == want[same] {
		same++
	}
	for range have[same:] {
		t.step(Step{Kind: StepPopVLAN})
	}
	for _, tag := range want[same:] {
		t.step(Step{Kind: StepPushVLAN, TPID: tag.kind, TCI: tag.tci})
	}
}

// ttl decreases or sets the time to live. One that was changed cannot be what it
// was again: it is in no key.
func (t *trace) ttl(want *changes) {
	have := &t.have
	switch {
	case want.ttl == have.ttl && want.less == have.less:
	case want.ttl >= 0:
		t.step(Step{Kind: StepSetTTL, TTL: uint8(want.ttl - want.less)})
	case have.ttl >= 0 || want.less < have.less:
		t.cause = CauseAction
	default:
		t.step(Step{Kind: StepDecTTL, TTL: uint8(want.less - have.less)})
	}
}

// fields sets what was set since the last output, and what is again as it was.
func (t *trace) fields(want []of13.Field) {
	now := changes{fields: want}
	for _, f := range t.have.fields {
		if now.field(f.ID) == nil {
			t.fix(f.ID)
			t.step(Step{Kind: StepSet, Field: of13.Field{ID: f.ID, Value: t.flow.Key.get128(f.ID)}})
		}
	}
	for _, f := range want {
		if have := t.have.field(f.ID); have == nil || have.Value != f.Value {
			t.step(Step{Kind: StepSet, Field: f})
		}
	}
}

// settable is the fields that a step can set.
const settable = 1<<of13.EthDst | 1<<of13.EthSrc | 1<<of13.IPDSCP | 1<<of13.IPECN | 1<<of13.IPv4Src | 1<<of13.IPv4Dst |
	1<<of13.TCPSrc | 1<<of13.TCPDst | 1<<of13.UDPSrc | 1<<of13.UDPDst | 1<<of13.ARPOp | 1<<of13.ARPSPA | 1<<of13.ARPTPA |
	1<<of13.ARPSHA | 1<<of13.ARPTHA | 1<<of13.IPv6Src | 1<<of13.IPv6Dst | 1<<of13.IPv6FLabel |
	1<<of13.NSHFlags | 1<<of13.NSHTTL | 1<<of13.NSHSPI | 1<<of13.NSHSI | 1<<of13.NSHC1 | 1<<of13.NSHC2 | 1<<of13.NSHC3 | 1<<of13.NSHC4

// set notes a field that was set. The fields of the outermost tag are the tag's.
func (t *trace) set(p *packet, f *of13.Field) {
	switch {
	case f.ID == of13.IPDSCP && t.remarks:
		t.cause = CauseMeter
	case f.ID == of13.TunnelID:
	case f.ID == of13.VLANVID || f.ID == of13.VLANPCP:
		t.fix(of13.VLANVID, of13.VLANPCP)
		if n := len(p.did.tags); n > 0 {
			p.did.tags = slices.Clone(p.did.tags)
			p.did.tags[n-1] = tag{p.u16(12), p.u16(14)}
		}
	case settable&(1<<f.ID) == 0:
		t.cause = CauseAction
	default:
		p.did.fields = slices.Clone(p.did.fields)
		if old := p.did.field(f.ID); old != nil {
			old.Value = f.Value
		} else {
			p.did.fields = append(p.did.fields, of13.Field{ID: f.ID, Value: f.Value})
		}
	}
}

// acted notes an action on tags or times to live after it was done.
func (t *trace) acted(p *packet, a *of13.Action) {
	switch a.Type {
	case of13.ActionPushVLAN:
		t.fix(of13.VLANVID, of13.VLANPCP)
		p.did.tags = append(slices.Clone(p.did.tags), tag{p.u16(12), p.u16(14)})
	case of13.ActionPopVLAN:
		t.fix(of13.VLANVID, of13.VLANPCP)
		if n := len(p.did.tags); n > 0 {
			p.did.tags = slices.Clone(p.did.tags[:n-1])
		}
		if len(p.did.tags) == 0 && t.flow.Shape.Tags() > 1 { // what is behind it is in no key
			t.cause = CauseAction
		}
	case of13.ActionDecNWTTL:
		if p.hasTTL() {
			p.did.less++
			if p.did.ttl < 0 {
				t.flow.LeastTTL = max(t.flow.LeastTTL, uint8(min(p.did.less+1, 255)))
			}
		}
	case of13.ActionSetNWTTL:
		if p.hasTTL() {
			p.did.ttl, p.did.less = int(a.TTL), 0
		}
	default:
		t.cause = CauseAction
	}
}

// hasTTL says whether it is of IP.
func (p *packet) hasTTL() bool {
	kind := uint16(p.key.Get(of13.EthType))
	return !isMPLS(kind) && p.ttlAt(p.l3, kind) > 0
}
