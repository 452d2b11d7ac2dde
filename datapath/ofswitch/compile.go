package ofswitch

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// wordsOf are the words of a key that the program reads of packets of a type, in
// its order, behind its first, which has the device and the shape. -1 is none.
func wordsOf(kind uint64) []int {
	switch kind {
	case 0x0800:
		return []int{3, 4, 5, 6}
	case 0x86dd:
		return []int{3, 4, 5, 7, 8, 9, 10, 15}
	case 0x0806:
		return []int{3, 4, 5, 6, 13, 14}
	case of13.EthTypeNSH:
		return []int{3, 4, 6, 7, 8}
	case 0x8847, 0x8848, 0x88e7:
		return []int{3, 4, -1, 15}
	}
	return []int{3, 4}
}

// compile makes a flow one that the program does; ok is false if it cannot.
func (c *cache) compile(f *pipeline.Flow) (in *installed, ok bool) {
	in = &installed{Flow: f}
	in.words[0] = uint64(c.indexes[uint32(f.Key.Get(of13.InPort))]) | uint64(f.Shape)<<32
	in.mask[0] = ^uint64(0)
	for i, w := range wordsOf(f.Key.Get(of13.EthType)) {
		if w >= 0 {
			in.words[i+1], in.mask[i+1] = f.Key[w]&f.Mask[w], f.Mask[w]
		}
	}
	b := builder{cache: c, flow: f, row: &in.row, steps: &in.steps}
	b.row.LeastTtl, b.row.LeastLen = f.LeastTTL, uint16(f.LeastLen)
	b.sums()
	for i := range f.Steps {
		if !b.step(&f.Steps[i]) {
			return nil, false
		}
	}
	b.plain()
	return in, true
}

// builder makes the steps of the program.
type builder struct {
	cache  *cache
	flow   *pipeline.Flow
	row    *flowsFlow
	steps  *[len(flowsRest{}.Step)]flowsStep
	pseudo uint8 // sums that follow a change of an address
	ports  uint8 // sums that follow a change of a port
	v4     bool
}

// sums finds the checksums that changes of the packet have to correct.
func (b *builder) sums() {
	b.v4 = b.flow.Key.Get(of13.EthType) == 0x0800
	if b.flow.Shape&pipeline.ShapePorts == 0 {
		return
	}
	switch b.flow.Key.Get(of13.IPProto) {
	case 6:
		b.row.SumAt, b.ports = 16, uint8(flowsHowSUM_PORTS)
	case 17:
		b.row.SumAt, b.row.Udp, b.ports = 6, 1, uint8(flowsHowSUM_PORTS)
	case 58:
		b.row.SumAt = 2
	default:
		return
	}
	b.pseudo = uint8(flowsHowSUM_PSEUDO)
}

func (b *builder) add(s flowsStep) bool {
	if int(b.row.Steps) == len(b.steps) {
		return false
	}
	b.steps[b.row.Steps] = s
	b.row.Steps++
	return true
}

// plain has the program read where most flows go with their key: those of one output,
// before which nothing is done but to change words of headers.
func (b *builder) plain() {
	steps := b.steps[:b.row.Steps]
	first := slices.IndexFunc(steps, func(s flowsStep) bool { return flowsStepKind(s.Kind) != flowsStepKindSTEP_EDIT })
	if first >= 0 && first == len(steps)-1 && flowsStepKind(steps[first].Kind) <= flowsStepKindSTEP_PEER {
		b.row.Plain, b.row.Device, b.row.Class = 1+steps[first].Kind, steps[first].Value, steps[first].Mask
	}
}

func (b *builder) ipv4Sum() uint8 {
	if b.v4 {
		return uint8(flowsHowSUM_IPV4)
	}
	return 0
}

func (b *builder) step(s *pipeline.Step) bool {
	switch s.Kind {
	case pipeline.StepOutput:
		index, known := b.cache.indexes[s.Port]
		kind := flowsStepKindSTEP_OUTPUT
		if b.cache.across[s.Port] {
			kind = flowsStepKindSTEP_PEER
		}
		return known && b.add(flowsStep{Kind: uint8(kind), Value: uint32(index), Mask: b.cache.classOf(s)})
	case pipeline.StepMeter:
		at, known := b.cache.places[s.Meter]
		return known && b.add(flowsStep{Kind: uint8(flowsStepKindSTEP_METER), Value: at, Mask: uint32(s.Added)})
	case pipeline.StepPushVLAN:
		return b.add(flowsStep{Kind: uint8(flowsStepKindSTEP_PUSH), Value: uint32(s.TPID)<<16 | uint32(s.TCI)})
	case pipeline.StepPopVLAN:
		return b.add(flowsStep{Kind: uint8(flowsStepKindSTEP_POP)})
	case pipeline.StepDecTTL:
		return b.decreaseTTL(s.TTL)
	case pipeline.StepSetTTL:
		if b.v4 {
			return b.write(flowsBaseBASE_NETWORK, 8, b.ipv4Sum(), []byte{s.TTL})
		}
		return b.write(flowsBaseBASE_NETWORK, 7, 0, []byte{s.TTL})
	}
	return b.set(&s.Field)
}

// decreaseTTL takes from the time to live: of IPv6 it is the last byte of a word.
func (b *builder) decreaseTTL(by uint8) bool {
	at, shift := 8, 24
	if !b.v4 {
		at, shift = 4, 0
	}
	return b.word(flowsBaseBASE_NETWORK, at, b.ipv4Sum()|uint8(flowsHowRELATIVE), 0xff<<shift, uint32(-by)<<shift)
}

// classOf is for which class of the port's frames are, 0 for the fallback.
func (c *cache) classOf(s *pipeline.Step) uint32 {
	if d := c.ports[s.Port]; d != nil && d.queues.by[s.Queue] != nil {
		return classHandle(s.Queue)
	}
	return 0
}

// set writes a field of bytes, or a few bits.
func (b *builder) set(f *of13.Field) bool {
	if f.ID >= of13.NSHFlags {
		offset, shift, mask := pipeline.NSHWord(f.ID)
		return b.word(flowsBaseBASE_NETWORK, offset, 0, mask, uint32(f.Value.Lo)<<shift&mask)
	}
	v := make([]byte, of13.Fields[f.ID].Bytes)
	f.Value.Put(v)
	switch f.ID {
	case of13.EthDst:
		return b.write(flowsBaseBASE_ETHERNET, 0, 0, v)
	case of13.EthSrc:
		return b.write(flowsBaseBASE_ETHERNET, 6, 0, v)
	case of13.IPv4Src, of13.IPv4Dst:
		return b.write(flowsBaseBASE_NETWORK, 12+4*int(f.ID-of13.IPv4Src), b.pseudo|b.ipv4Sum(), v)
	case of13.IPv6Src, of13.IPv6Dst:
		return b.write(flowsBaseBASE_NETWORK, 8+16*int(f.ID-of13.IPv6Src), b.pseudo, v)
	case of13.TCPSrc, of13.UDPSrc, of13.TCPDst, of13.UDPDst:
		if b.flow.Shape&pipeline.ShapePorts == 0 {
			return true // of a fragment that has none
		}
		at := 0
		if f.ID == of13.TCPDst || f.ID == of13.UDPDst {
			at = 2
		}
		return b.write(flowsBaseBASE_PORTS, at, b.ports, v)
	case of13.ARPOp, of13.ARPSHA, of13.ARPSPA, of13.ARPTHA, of13.ARPTPA:
		at := map[of13.FieldID]int{of13.ARPOp: 6, of13.ARPSHA: 8, of13.ARPSPA: 14, of13.ARPTHA: 18, of13.ARPTPA: 24}[f.ID]
		return b.write(flowsBaseBASE_NETWORK, at, 0, v)
	}
	return b.setBits(f.ID, uint32(f.Value.Lo))
}

// setBits sets a field in the first word of an IP header.
func (b *builder) setBits(id of13.FieldID, v uint32) bool {
	shift := map[of13.FieldID]int{of13.IPDSCP: 22, of13.IPECN: 20, of13.IPv6FLabel: 0}
	at, known := shift[id]
	if known && b.v4 {
		at -= 4 // behind version and length of the header
	}
	mask := uint32(of13.Ones(of13.Fields[id].Bits).Lo) << at
	return known && b.word(flowsBaseBASE_NETWORK, 0, b.ipv4Sum(), mask, v<<at)
}

// write writes bytes, word by word.
func (b *builder) write(base flowsBase, at int, how uint8, v []byte) bool {
	for len(v) > 0 {
		var value, mask [4]byte
		n := copy(value[at%4:], v)
		for i := range n {
			mask[at%4+i] = 0xff
		}
		if !b.word(base, at-at%4, how, binary.BigEndian.Uint32(mask[:]), binary.BigEndian.Uint32(value[:])) {
			return false
		}
		at, v = at+n, v[n:]
	}
	return true
}

// word writes bits of a word, given in network order. It is one with an earlier write
// of the same word, unless another step than a write is between.
func (b *builder) word(base flowsBase, at int, how uint8, mask, value uint32) bool {
	s := flowsStep{Kind: uint8(flowsStepKindSTEP_EDIT), Base: uint8(base), How: how, Offset: uint8(at), Mask: bits.ReverseBytes32(mask), Value: bits.ReverseBytes32(value)}
	if e := b.earlier(s); e != nil && e.How == s.How && how&uint8(flowsHowRELATIVE) == 0 {
		e.Value = e.Value&^s.Mask | s.Value
		e.Mask |= s.Mask
		return true
	}
	return b.add(s)
}

// earlier is the last change of a word among those that the program does together with
// the next one; nil: there is none.
func (b *builder) earlier(s flowsStep) *flowsStep {
	for i := int(b.row.Steps) - 1; i >= 0 && b.steps[i].Kind == s.Kind; i-- {
		if e := &b.steps[i]; e.Base == s.Base && e.Offset == s.Offset {
			return e
		}
	}
	return nil
}
