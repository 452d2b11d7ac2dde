package pipeline

import "sublet/openflow/of13"

// What becomes of a packet on its way.
type What uint8

// Kinds of what becomes of a packet.
const (
	SeenTable      What = iota // Table, Entry
	SeenMeter                  // Number; how much of its rate is left is not asked
	SeenGroup                  // Number
	SeenBucket                 // Number, of the group before
	SeenOutput                 // Number, Queue
	SeenNoOutput               // Number: there is no such port, or it takes none
	SeenController             // Reason
	SeenNormal
	SeenRefused // by the port that it came by
)

// Seen is one of these.
type Seen struct {
	What   What
	Depth  int // groups within groups
	Table  uint8
	Entry  *Entry // nil: none matches
	Number uint32
	Queue  uint32
	Reason uint8
}

// Passage is what becomes of a packet, in order, and of others like it.
type Passage struct {
	Seen  []Seen
	Steps []Step       // that make of the packet what leaves
	Like  []of13.Field // what packets have in common to which the same happens
	Cause Cause        // why a datapath does not do that by itself; CauseNone: it does
}

// Explain says what would become of a frame that came by a port. Nothing is sent or
// counted, no station is learned, and meters let everything through.
func (s *Switch) Explain(now int64, port uint32, frame []byte) (p Passage, err error) {
	if s.ports[port] == nil {
		return p, of13.BadRequestBadPort
	}
	s.notes = &p.Seen
	defer func() { s.notes = nil }()
	f, cause := s.think(now, port, frame)
	f.trim()
	p.Steps, p.Like, p.Cause = f.Steps, f.like(), cause
	return p, nil
}

// see notes what becomes of a packet, if that is asked for.
func (s *Switch) see(n Seen) {
	if s.notes != nil {
		*s.notes = append(*s.notes, n)
	}
}

// like lists the bits that matter as fields of a match.
func (f *Flow) like() (list []of13.Field) {
	ctx := of13.NewContext()
	for _, id := range []of13.FieldID{of13.InPort, of13.EthType, of13.VLANVID, of13.IPProto, of13.ICMPv6Type} {
		field := of13.Exact(id, f.Key.Get(id))
		if ctx.Allows(id) {
			ctx.Learn(&field)
		}
	}
	for id := range of13.NumFields {
		mask := f.Mask.get128(id)
		if mask.Zero() || !ctx.Allows(id) || id == of13.InPhyPort {
			continue
		}
		field := of13.WithMask(id, f.Key.get128(id).And(mask), mask)
		if field.Masked = mask != of13.Ones(of13.Fields[id].Bits); !field.Masked {
			field.Mask = of13.Ones(of13.Fields[id].Bits)
		}
		list = append(list, field)
	}
	return list
}
