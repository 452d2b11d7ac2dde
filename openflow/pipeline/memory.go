package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// Counts of an entry, and when it was made and used.
type Counts struct {
	Packets, Bytes uint64
	Owner          uint64 // number of the entry; 0: nobody's
	created, used  int64
}

// Shift moves the times of an entry by what the clock of its new host differs.
func (c *Counts) Shift(by int64) { c.created, c.used = c.created+by, c.used+by }

// TableCounts are of a table.
type TableCounts struct{ lookups, matched uint64 }

// KeptKind is what a Memory is told of.
type KeptKind uint8

// Kinds of what is kept, in the order in which it is restored.
const (
	KeptPort KeptKind = iota
	KeptTable
	KeptMeter
	KeptGroup
	KeptEntry
)

// Kept names something that a Memory is told of.
type Kept struct {
	Kind   KeptKind
	Number uint64
}

// Memory has what a switch knows where it outlives the process.
type Memory interface {
	Entry() *Counts // of a new entry
	Forget(*Counts)
	Port(number uint32) *of13.PortStats
	Table(number int) *TableCounts
	// Keep is told what makes something what it is now; nil: it is gone. The message
	// is valid until it returns.
	Keep(Kept, of13.Message)
}

// lost is the memory of a switch that is gone with its process.
type lost struct{}

func (lost) Entry() *Counts                 { return new(Counts) }
func (lost) Forget(*Counts)                 {}
func (lost) Port(uint32) *of13.PortStats    { return new(of13.PortStats) }
func (lost) Table(int) *TableCounts         { return new(TableCounts) }
func (lost) Keep(Kept, of13.Message)        {}
func (s *Switch) keeps() bool               { _, no := s.memory.(lost); return !no }
func (s *Switch) gone(k KeptKind, n uint64) { s.memory.Keep(Kept{k, n}, nil) }

func (s *Switch) keepEntry(e *Entry) {
	if s.keeps() {
		s.memory.Keep(Kept{KeptEntry, e.age}, &of13.FlowMod{
			Table: e.Table, Priority: e.Priority, Cookie: e.Cookie, Flags: e.Flags, Idle: e.Idle, Hard: e.Hard,
			Match: of13.Match{Fields: e.Match}, Instructions: e.Instructions, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		})
	}
}

func (s *Switch) keepPort(p *port) {
	s.memory.Keep(Kept{KeptPort, uint64(p.Number)}, &of13.PortMod{Port: p.Number, HWAddr: p.HWAddr, Config: p.Config, Mask: portConfigKnown, Advertise: p.Advertised})
}

func (s *Switch) keepTable(number int) {
	s.memory.Keep(Kept{KeptTable, uint64(number)}, &of13.TableMod{Table: uint8(number), Config: s.tables[number].config})
}

// kept is what makes a group, or a meter.
func (g *group) kept() (KeptKind, of13.Message) {
	if g == nil {
		return KeptGroup, nil
	}
	return KeptGroup, &of13.GroupMod{Kind: g.Kind, Group: g.Group, Buckets: g.Buckets}
}

func (m *meter) kept() (KeptKind, of13.Message) {
	if m == nil {
		return KeptMeter, nil
	}
	return KeptMeter, &of13.MeterMod{Flags: m.Flags, Meter: m.Meter, Bands: m.Bands}
}

// KeepAll tells the Memory of everything again.
func (s *Switch) KeepAll() {
	for _, p := range s.ports {
		if p.Config|p.Advertised != 0 {
			s.keepPort(p)
		}
	}
	for i := range s.tables {
		if s.tables[i].config != 0 {
			s.keepTable(i)
		}
	}
	for n, m := range s.meters {
		kind, message := m.kept()
		s.memory.Keep(Kept{kind, uint64(n)}, message)
	}
	for n, g := range s.groups {
		kind, message := g.kept()
		s.memory.Keep(Kept{kind, uint64(n)}, message)
	}
	for _, e := range s.all() {
		s.keepEntry(e)
	}
}

// all lists the entries, those that came first at first.
func (s *Switch) all() (list []*Entry) {
	for i := range s.tables {
		list = slices.AppendSeq(list, s.tables[i].all())
	}
	return list
}

// Restore makes what a Memory was told of, in the order of their kinds and numbers,
// before any packet. c is an entry's; nil: they are lost. What the switch has no room
// for is an error, and left out.
func (s *Switch) Restore(now int64, k Kept, m of13.Message, c *Counts) error {
	f, entry := m.(*of13.FlowMod)
	if !entry {
		s.restoring = true
		defer func() { s.restoring = false }()
		_, err := s.Do(now, m)
		return err
	}
	switch {
	case int(f.Table) >= len(s.tables):
		return of13.FlowModFailedBadTableID
	case s.entries >= s.config.Entries:
		return of13.FlowModFailedTableFull
	}
	e := newEntry(f)
	if e.Counts = c; c == nil {
		s.giveCounts(e, now)
	}
	e.age, e.Owner = k.Number, k.Number
	s.ages = max(s.ages, e.age)
	s.install(e)
	return nil
}

// giveCounts gives a new entry counters.
func (s *Switch) giveCounts(e *Entry, now int64) {
	if e.Counts = &e.own; s.keeps() {
		e.Counts = s.memory.Entry()
	}
	*e.Counts = Counts{created: now, used: now}
}

// nowhere takes what comes of a packet that is only thought of.
type nowhere struct{}

func (nowhere) Send(uint32, uint32, []byte)   {}
func (nowhere) PacketIn(*of13.PacketIn)       {}
func (nowhere) FlowRemoved(*of13.FlowRemoved) {}
func (nowhere) PortStatus(*of13.PortStatus)   {}

// Derive says what the same packets as a frame meet, as ReceiveFlow does, without
// doing or counting anything. Only the learning switch learns from it.
func (s *Switch) Derive(now int64, number uint32, frame []byte) (*Flow, Cause) {
	defer s.only()()
	return s.ReceiveFlow(now, number, frame, 1)
}

// think is Derive of what is no Flow too, of which the learning switch learns nothing.
func (s *Switch) think(now int64, number uint32, frame []byte) (*Flow, Cause) {
	defer s.only()()
	t := s.traced(now, number, frame, 1)
	return t.flow, t.cause
}

// only has packets be only thought of, until end is called.
func (s *Switch) only() (end func()) {
	sink := s.sink
	s.sink, s.thought = nowhere{}, true
	return func() { s.sink, s.thought = sink, false }
}
