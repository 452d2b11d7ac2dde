package pipeline

import "sublet/openflow/of13"

// Config is what a switch is given.
type Config struct {
	DatapathID uint64
	Tables     int // 1 to 254
	Entries    int // in all tables together
	Groups     int
	Meters     int
}

// Sink takes what comes of packets and messages, before the call that caused it
// returns. Frames and messages are valid until then.
type Sink interface {
	Send(port, queue uint32, frame []byte)
	PacketIn(m *of13.PacketIn)
	FlowRemoved(m *of13.FlowRemoved)
	PortStatus(m *of13.PortStatus)
}

// Switch is an OpenFlow switch: one caller at a time.
type Switch struct {
	Standalone bool // packets go past the tables, as by port NORMAL

	config  Config
	sink    Sink
	tables  []table
	groups  map[uint32]*group
	meters  map[uint32]*meter
	ports   map[uint32]*port
	order   []uint32 // ports, ascending
	timed   map[*Entry]struct{}
	entries int
	ages    uint64
	flags   uint16 // of the configuration
	miss    uint16
	stages  []*run // packets on their way, one for each group within a group
	learned stations
}

type table struct {
	classifier
	lookups, matched uint64
	config           uint32
}

type port struct {
	of13.Port
	created int64
	stats   of13.PortStats
}

// New makes a switch without ports and entries.
func New(c Config, sink Sink) *Switch {
	return &Switch{
		config: c, sink: sink, tables: make([]table, c.Tables), groups: make(map[uint32]*group), meters: make(map[uint32]*meter),
		ports: make(map[uint32]*port), timed: make(map[*Entry]struct{}), learned: make(stations), miss: 128,
	}
}

// run is a packet in the tables.
type run struct {
	packet
	set    actionSet
	now    int64
	table  uint8
	entry  *Entry // that decides at present; nil for a packet-out
	seen   Key
	reason uint8
}

// take gives the run at a depth of groups within groups.
func (s *Switch) take(depth int) *run {
	for len(s.stages) <= depth {
		s.stages = append(s.stages, &run{})
	}
	return s.stages[depth]
}

// Receive takes a frame from a port through the tables.
func (s *Switch) Receive(now int64, number uint32, frame []byte) {
	p := s.ports[number]
	if p == nil {
		return
	}
	p.stats.RxPackets++
	p.stats.RxBytes += uint64(len(frame))
	if p.Config&(of13.PortConfigDown|of13.PortConfigNoRecv) != 0 || len(frame) < 14 {
		p.stats.RxDropped++
		return
	}
	r := s.take(0)
	r.load(frame, number)
	r.now = now
	if s.Standalone {
		s.normal(r)
		return
	}
	s.classify(r)
}

// classify takes a packet through the tables from the first one on.
func (s *Switch) classify(r *run) {
	r.set.clear()
	for at := 0; ; {
		r.packet.fresh()
		t := &s.tables[at]
		r.table, t.lookups = uint8(at), t.lookups+1
		r.entry = t.lookup(&r.key, &r.seen)
		if r.entry == nil {
			return
		}
		t.matched++
		r.entry.count(r.now, len(r.b))
		next, on := s.instruct(r, &r.entry.does)
		if !on {
			return
		}
		if next == 0 {
			break
		}
		at = next
	}
	s.finish(r, 0)
}

// instruct does what an entry says. on is false if the packet has ended here;
// next is the table that follows, 0 for none.
func (s *Switch) instruct(r *run, does *program) (next int, on bool) {
	if m := s.meters[does.meter]; does.meter != 0 && m != nil && !m.pass(r.now, &r.packet) {
		return 0, false
	}
	r.reason = of13.PacketAction
	if r.entry.miss() {
		r.reason = of13.PacketNoMatch
	}
	if !s.apply(r, does.apply, 0) {
		return 0, false
	}
	if does.clear {
		r.set.clear()
	}
	r.set.write(does.write)
	r.key[0] = r.key[0]&^does.mask | does.metadata&does.mask
	return does.table, true
}

// Expire removes entries that are over. It is called at least once a second.
func (s *Switch) Expire(now int64) {
	for e := range s.timed {
		if reason, over := e.expired(now); over {
			s.drop(now, e, reason)
		}
	}
	s.learned.expire(now)
}

// drop removes an entry and says so if that was asked for.
func (s *Switch) drop(now int64, e *Entry, reason uint8) {
	s.tables[e.Table].remove(e)
	delete(s.timed, e)
	s.entries--
	if e.Flags&of13.FlowSendRemoved != 0 {
		s.sink.FlowRemoved(e.removed(now, reason))
	}
}
