package pipeline

import "sublet/openflow/of13"

// Flow is what the tables do to one packet, and to all that agree with it in
// Shape and in the bits of Mask: a datapath may do it to these by itself. It
// holds until the Switch calls Invalidate for it.
type Flow struct {
	Key, Mask Key // the packet's fields, and the bits of them that matter
	Shape     Shape
	Steps     []Step
	LeastTTL  uint8 // packets with a lower time to live are for the Switch
	LeastLen  int   // so are shorter frames: they would have to be padded

	lookups []lookup
	tallies []tally
	meter   *MeterState // that its packets meet; nil: none
	normal  bool        // by the learning switch, which saw its sender there
	groups  bool
	station station

	Place any  // what the Cache keeps with it
	kept  bool // by the Cache: it is in the index
	ends  bool // it is in a list of those that are to end
}

// StepKind is what a Step does.
type StepKind uint8

// Kinds of steps. Fields are set after tags were changed.
const (
	StepOutput   StepKind = iota // Port, Queue
	StepSet                      // Field
	StepPushVLAN                 // TPID, TCI
	StepPopVLAN
	StepDecTTL // TTL: by how much
	StepSetTTL // TTL
	StepMeter  // Meter, Added: packets that it drops meet no further step
)

// Step is one thing that is done to a packet.
type Step struct {
	Kind        StepKind
	TTL         uint8
	TPID, TCI   uint16
	Port, Queue uint32
	Field       of13.Field
	Meter       *MeterState
	Added       int // bytes that a packet has more there than at first
}

// Cause is why no Flow can be told of a packet.
type Cause uint8

// Causes.
const (
	CauseNone       Cause = iota // there is one
	CauseController              // it went to a controller
	CauseMeter                   // it met a meter
	CauseShape                   // its headers are none that a Flow tells of
	CauseAction                  // something was done to it that is no Step
	CausePort                    // it came from no port
)

func (c Cause) String() string {
	return [...]string{"first", "controller", "meter", "headers", "action", "port"}[c]
}

// Usage is what packets a Flow was done to. A frame may stand for several
// packets that are still to be cut.
type Usage struct {
	Frames, Packets, Bytes uint64
	Lost                   Lost // of them, to the meter
}

// Lost is what a Flow's meter dropped.
type Lost struct{ Frames, Packets, Bytes uint64 }

// Cache is a datapath that does Flows by itself. It says by Keep which it has, also those
// that it does not do yet, and by Forget which have ended, whatever ended them.
type Cache interface {
	// Fold gives what Flows were done to since the last time to Credit.
	Fold()
	// Invalidate ends Flows: when it returns they are done to no packet any more,
	// and all that they were done to has been given to Credit.
	Invalidate(stale func(*Flow) bool)
	// End is Invalidate for these Flows, of those that it has told by Keep.
	End([]*Flow)
}

// lookup is a table that the packet was taken to.
type lookup struct {
	table uint8
	key   Key
	entry *Entry // nil: a miss
	group *flowGroup
}

// tally is counters that a Flow's packets are counted in.
type tally struct {
	packets, bytes *uint64
	used           *int64
	added          int  // bytes that a packet has more there than at first
	behind         bool // the Flow's meter: what that drops is not counted
}

// Credit counts what a Flow was done to; used is when it was last.
func (s *Switch) Credit(f *Flow, used int64, u Usage) {
	if u.Packets == 0 {
		return
	}
	for _, t := range f.tallies {
		lost := u.Lost
		if !t.behind {
			lost = Lost{}
		}
		if t.packets != nil {
			*t.packets += u.Packets - lost.Packets
		}
		if t.bytes != nil {
			*t.bytes += u.Bytes - lost.Bytes + (u.Frames-lost.Frames)*uint64(t.added) // two's complement: what is added may be negative
		}
		if t.used != nil && u.Packets > lost.Packets {
			*t.used = max(*t.used, used)
		}
	}
	if at, known := s.learned[f.station]; f.normal && known {
		at.when = max(at.when, used)
		s.learned[f.station] = at
	}
}

// invalidate ends the Flows of the cache, if there is one, that are stale.
func (s *Switch) invalidate(stale func(*Flow) bool) {
	s.alive = nil
	if s.Cache != nil {
		s.Cache.Invalidate(stale)
	}
}

func (s *Switch) fold() {
	if s.Cache != nil {
		s.Cache.Fold()
	}
}

func every(*Flow) bool { return true }
