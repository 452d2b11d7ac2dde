package pipeline

import "sublet/openflow/of13"

// Config is what a switch is given.
type Config struct {
	DatapathID uint64
	Tables     int // 1 to 254
	Entries    int // in all tables together
	Groups     int
	Meters     int
	Memory     Memory // nil: all is gone with the process
	Hold       int64  // most ns that packets wait which a meter would drop; 0: it drops them
	Datapath   string // what forwards, for the description of the switch
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
	Standalone bool  // packets go past the tables, as by port NORMAL; after a change all Flows are to be forgotten
	Unmatched  bool  // packets that meet no entry go to controllers; after a change all Flows are to be forgotten
	Plain      bool  // entries are gone through one by one; such a switch is the model of others, and has no Cache
	Cache      Cache // nil: none

	// Share, if there is one, says which tables share room with a table, and how many
	// entries these may have; else it is all of them.
	Share func(table uint8) (first, tables, entries int)

	// ShareGroups, if there is one, says which groups share room with one, and how many
	// there may be of these.
	ShareGroups func(number uint32) (mine func(number uint32) bool, groups int)

	Meters MeterPlace // nil: packets that meet meters have no Flow

	// Found, if there is one, is called behind each search for an entry: who times
	// packets tells it from what entries do.
	Found func()

	// Aside gives what belongs to the packet on its way besides its frame, and Resume takes
	// it back when a packet that waited goes on; nil: nothing does.
	Aside  func() any
	Resume func(any)

	// Queues lists those of a port; nil: no port has any.
	Queues func(port uint32) []Queue

	config  Config
	sink    Sink
	tables  []table
	groups  map[uint32]*group
	meters  map[uint32]*meter
	ports   map[uint32]*port
	order   []uint32 // ports, ascending
	timed   map[*Entry]struct{}
	flows   flowIndex
	entries int
	ages    uint64
	flags   uint16 // of the configuration
	miss    uint16
	stages  []*run // packets on their way, one for each group within a group
	met     int    // buckets, by the packet
	done    int    // actions, for it
	sent    int    // frames, the same

	alive     map[uint32]bool // groups with a live bucket; nil: not known
	learned   stations
	kept      buffers
	journal   *journal // nil but for changes that belong together
	restoring bool     // a Memory says what there was
	trace     *trace   // nil: packets are not followed
	thought   bool     // the packet is only thought of: nothing is counted
	notes     *[]Seen  // nil: what becomes of packets is not noted
	memory    Memory
	told      []of13.FlowStats // of the last answer
	holding   holding
}

type table struct {
	classifier
	*TableCounts
	config   uint32
	features *features // nil: all
	beyond   int       // of its entries: actions more than usual
}

type port struct {
	of13.Port
	created int64
	stats   *of13.PortStats
}

// New makes a switch without ports and entries.
func New(c Config, sink Sink) *Switch {
	s := &Switch{
		config: c, memory: c.Memory, sink: sink, tables: make([]table, c.Tables), groups: make(map[uint32]*group), meters: make(map[uint32]*meter),
		ports: make(map[uint32]*port), timed: make(map[*Entry]struct{}), learned: make(stations), miss: 128,
	}
	if s.memory == nil {
		s.memory = lost{}
	}
	for i := range s.tables {
		s.tables[i].TableCounts = s.memory.Table(i)
	}
	return s
}

// run is a packet in the tables.
type run struct {
	packet
	set    actionSet
	now    int64
	table  uint8
	entry  *Entry // that decides at present; nil for a packet-out
	reason uint8
	late   bool // the set is being executed: no entry sends the packet
	depth  int  // of groups within groups
}

// Held is how many entries, groups and meters there are.
func (s *Switch) Held() (entries, groups, meters int) {
	return s.entries, len(s.groups), len(s.meters)
}

// begin gives the run of a packet that comes in.
func (s *Switch) begin() *run {
	s.met, s.done, s.sent = 0, 0, 0
	return s.take(0)
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
	s.receive(now, number, frame, 1)
}

func (s *Switch) receive(now int64, number uint32, frame []byte, segments int) {
	p := s.ports[number]
	if p == nil {
		return
	}
	r := s.begin()
	r.load(frame, number)
	r.now, r.segments = now, uint64(segments)
	if s.trace != nil {
		s.trace.begin(r)
	}
	s.count(&r.packet, &p.stats.RxPackets, &p.stats.RxBytes, nil)
	if p.Config&(of13.PortConfigDown|of13.PortConfigNoRecv) != 0 || len(frame) < 14 {
		s.count(&r.packet, &p.stats.RxDropped, nil, nil)
		s.see(Seen{What: SeenRefused, Number: number})
		return
	}
	if s.flags == of13.FragDrop && s.dropsPart(r, p) {
		return
	}
	if s.Standalone {
		s.normal(r)
		return
	}
	s.classify(r)
}

// dropsPart drops a fragment. No Flow tells one from other packets of IP.
func (s *Switch) dropsPart(r *run, p *port) bool {
	if kind := r.key.Get(of13.EthType); kind != 0x0800 && kind != 0x86dd {
		return false
	}
	if s.cannot(CauseShape); !r.part {
		return false
	}
	s.count(&r.packet, &p.stats.RxDropped, nil, nil)
	s.see(Seen{What: SeenRefused, Number: r.inPort})
	return true
}

// classify takes a packet through the tables from the first one on.
func (s *Switch) classify(r *run) {
	r.set.clear()
	r.late = false
	s.classifyFrom(r, 0)
}

// classifyFrom takes it through the tables from one on.
func (s *Switch) classifyFrom(r *run, at int) {
	for {
		r.packet.fresh()
		t := &s.tables[at]
		r.table = uint8(at)
		s.count(&r.packet, &t.lookups, nil, nil)
		s.lookup(r, at)
		if s.Found != nil {
			s.Found()
		}
		if r.entry == nil {
			s.missed(r)
			return
		}
		s.count(&r.packet, &t.matched, nil, nil)
		s.hit(r)
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

// lookup finds the entry that decides.
func (s *Switch) lookup(r *run, at int) {
	if s.Plain {
		r.entry = s.tables[at].plain(&r.key)
		return
	}
	var seen Key
	r.entry = s.tables[at].lookup(&r.key, &seen)
	s.see(Seen{What: SeenTable, Table: uint8(at), Entry: r.entry})
	if s.trace != nil {
		s.trace.see(&seen)
		s.trace.lookup(at, &r.key, r.entry)
	}
}

// missed hands a packet that met no entry to the controllers that want it.
func (s *Switch) missed(r *run) {
	if s.Unmatched {
		r.reason = of13.PacketNoMatch
		s.toController(r, s.miss)
	}
}

// count counts a packet, and all that its Flow will be done to.
func (s *Switch) count(p *packet, packets, bytes *uint64, used *int64) {
	if packets != nil && !s.thought {
		*packets += p.segments
	}
	if bytes != nil && !s.thought {
		*bytes += uint64(len(p.b))
	}
	if s.trace != nil {
		s.trace.count(packets, bytes, used, len(p.b))
	}
}

// hit counts a packet that met an entry.
func (s *Switch) hit(r *run) {
	e := r.entry
	packets, bytes := &e.Packets, &e.Bytes
	if e.Flags&of13.FlowNoPacketCount != 0 {
		packets = nil
	}
	if e.Flags&of13.FlowNoByteCount != 0 {
		bytes = nil
	}
	if !s.thought {
		e.used = r.now
	}
	s.count(&r.packet, packets, bytes, &e.used)
}

// instruct does what an entry says. on is false if the packet has ended here;
// next is the table that follows, 0 for none.
func (s *Switch) instruct(r *run, does *program) (next int, on bool) {
	if m := s.meters[does.meter]; does.meter != 0 && m != nil {
		s.see(Seen{What: SeenMeter, Number: does.meter})
		if s.trace != nil {
			s.trace.meter(r, m)
		}
		if !s.thought && !s.passes(r, m) && !s.goOn() {
			return 0, false
		}
	}
	return s.behindMeter(r, does)
}

// behindMeter does what an entry says of packets that passed its meter.
func (s *Switch) behindMeter(r *run, does *program) (next int, on bool) {
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

// cannot notes why the packet on its way has no Flow.
func (s *Switch) cannot(c Cause) {
	if s.trace != nil {
		s.trace.cause = c
	}
}

// Expire removes entries that are over. It is called at least once a second.
func (s *Switch) Expire(now int64) {
	if len(s.timed) > 0 || len(s.learned) > 0 {
		s.fold()
	}
	over := make(map[uint8][]*Entry) // by reason
	for e := range s.timed {
		if reason, is := e.expired(now); is {
			over[reason] = append(over[reason], e)
		}
	}
	for reason, list := range over {
		s.drop(now, reason, list...)
	}
	if s.learned.expire(now) {
		s.invalidate(func(f *Flow) bool { return f.normal })
	}
}

// drop removes entries and says so if that was asked for.
func (s *Switch) drop(now int64, reason uint8, list ...*Entry) {
	s.ended(list)
	for _, e := range list {
		s.uninstall(e)
		if e.Flags&of13.FlowSendRemoved != 0 {
			s.afterwards(func() { s.sink.FlowRemoved(e.removed(now, reason)) })
		}
	}
}

// ended ends the Flows of entries, so that they have all counts.
func (s *Switch) ended(list []*Entry) {
	if s.Cache == nil || len(list) == 0 {
		return
	}
	var flows []*Flow
	for _, e := range list {
		for _, f := range e.flows.list {
			if f.kept && !f.ends {
				f.ends = true
				flows = append(flows, f)
			}
		}
	}
	s.endFlows(flows)
}

// endFlows ends Flows that are kept.
func (s *Switch) endFlows(list []*Flow) {
	if len(list) > 0 {
		s.Cache.End(list)
	}
}
