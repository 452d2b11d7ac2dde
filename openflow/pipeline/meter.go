package pipeline

import (
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"

	"sublet/openflow/of13"
)

// defaultBurst is what a meter without a burst lets through at once: its rate for a tenth of a second.
const defaultBurst = 10 // parts of a second

// leastBurst of a meter in kbit/s: a few frames, else none would ever pass.
const leastBurst = 8 * 4 * 1518

type meter struct {
	of13.MeterConfig
	created int64
	rules   []MeterRule
	state   *MeterState
	placed  bool // where a datapath finds it
	held    int  // packets that wait for it
	waiter  bool // it is among those to be told that none waits any more
}

// MeterRule is what a band does. Its token bucket is told by times: how long it takes
// to fill, and when it is full again; what a packet takes is the time in which its
// rate brings as much.
type MeterRule struct {
	Rate   uint64 // bits, or packets, per second
	Depth  uint64 // ticks from empty to full
	Drops  bool
	Remark uint8 // else, by how much the drop precedence is raised
}

// MeterState is what a meter has counted, and what is left in its buckets. A datapath
// may share it: all of it is changed by atomic operations.
type MeterState struct {
	Packets, Bytes uint64
	Bands          [maxBands]BandState
	Holds          uint64 // packets that it would drop are for the Switch, which has them wait
	Waiting        uint64 // so are all others, since some wait
}

// BandState is that of a band. A bucket that is full at a time of the past is full.
type BandState struct {
	Full           uint64 // ticks
	Packets, Bytes uint64
}

// Ticks are parts of a nanosecond, so that little of a fast band's rate is rounded off.
const (
	ticks          = 16
	ticksPerSecond = ticks * 1_000_000_000
	maxDepth64     = 1 << 62
)

// MeterPlace has meters where a datapath finds them.
type MeterPlace interface {
	// PlaceMeter gives the state of a new meter of packets or bits; nil: there is no
	// room, and packets that meet it have no Flow.
	PlaceMeter(packets bool, rules []MeterRule) *MeterState
}

func newMeter(now int64, m *of13.MeterMod, place MeterPlace, hold int64) *meter {
	t := &meter{MeterConfig: of13.MeterConfig{Flags: m.Flags, Meter: m.Meter, Bands: slices.Clone(m.Bands)}, created: now}
	for i := range t.Bands {
		t.rules = append(t.rules, ruleOf(m.Flags, &t.Bands[i]))
	}
	if place != nil {
		t.state = place.PlaceMeter(m.Flags&of13.MeterPKTPS != 0, t.rules)
	}
	if t.placed = t.state != nil; !t.placed {
		t.state = &MeterState{}
	}
	if hold > 0 && len(t.rules) > 0 && !slices.ContainsFunc(t.rules, func(r MeterRule) bool { return !r.Drops }) {
		t.state.Holds = 1
	}
	return t
}

func ruleOf(flags uint16, b *of13.Band) MeterRule {
	unit, least := uint64(1), uint64(1)
	if flags&of13.MeterPKTPS == 0 {
		unit, least = 1000, leastBurst
	}
	r := MeterRule{Rate: uint64(b.Rate) * unit}
	size := r.Rate / defaultBurst
	if flags&of13.MeterBurst != 0 {
		size = uint64(b.Burst) * unit
	}
	if r.Drops = b.Kind == of13.BandDrop; !r.Drops {
		r.Remark = b.Precedence
	}
	r.Depth = r.cost(max(size, least))
	return r
}

// cost is the time in which a band's rate brings so much.
func (r *MeterRule) cost(units uint64) uint64 {
	high, low := bits.Mul64(units, ticksPerSecond)
	if r.Rate == 0 || high >= r.Rate {
		return maxDepth64
	}
	t, _ := bits.Div64(high, low, r.Rate)
	return min(t, maxDepth64)
}

// enough says whether a bucket has what a packet takes. One that takes more than all
// that a bucket holds needs a full one, and leaves a debt: else segments that are still
// to be cut would never pass.
func (r *MeterRule) enough(full, now, cost uint64) bool {
	return max(full, now)-now+min(cost, r.Depth) <= r.Depth
}

// packets says whether its rates are of packets, and not of bits.
func (m *meter) packets() bool { return m.Flags&of13.MeterPKTPS != 0 }

// pass says whether a packet may go on, which may get another DSCP.
func (m *meter) pass(now int64, p *packet) bool {
	size, units := uint64(len(p.b)), p.segments
	if !m.packets() {
		units = size * 8
	}
	atomic.AddUint64(&m.state.Packets, p.segments)
	atomic.AddUint64(&m.state.Bytes, size)
	acts, over := m.exceeded(uint64(now)*ticks, units)
	if acts >= 0 {
		atomic.AddUint64(&m.state.Bands[acts].Packets, p.segments)
		atomic.AddUint64(&m.state.Bands[acts].Bytes, size)
		if m.rules[acts].Drops {
			return false
		}
		p.remark(m.rules[acts].Remark)
	}
	for i := range m.rules {
		if over>>i&1 == 0 {
			m.take(i, uint64(now)*ticks, m.rules[i].cost(units))
		}
	}
	return true
}

// exceeded is the band with the highest rate that a packet exceeds; -1: none. over has
// a bit for each that it does.
func (m *meter) exceeded(now, units uint64) (acts int, over uint8) {
	acts = -1
	for i := range m.rules {
		r := &m.rules[i]
		if r.enough(atomic.LoadUint64(&m.state.Bands[i].Full), now, r.cost(units)) {
			continue
		}
		if over |= 1 << i; acts < 0 || r.Rate > m.rules[acts].Rate {
			acts = i
		}
	}
	return acts, over
}

// take empties a bucket by what a packet takes.
func (m *meter) take(band int, now, cost uint64) {
	full := &m.state.Bands[band].Full
	for {
		was := atomic.LoadUint64(full)
		if atomic.CompareAndSwapUint64(full, was, max(was, now)+cost) {
			return
		}
	}
}

// remark raises the drop precedence of an assured forwarding class (RFC 2597), up to 3.
func (p *packet) remark(by uint8) {
	p.fresh()
	kind := p.key.Get(of13.EthType)
	if kind != 0x0800 && kind != 0x86dd || p.protoAt == 0 {
		return
	}
	dscp := byte(p.key.Get(of13.IPDSCP))
	class, precedence := dscp>>3, dscp>>1&3
	if class < 1 || class > 4 || precedence == 0 || dscp&1 != 0 {
		return
	}
	precedence = byte(min(int(precedence)+int(by), 3))
	p.setClass((class<<3|precedence<<1)<<2|byte(p.key.Get(of13.IPECN)), kind == 0x0800)
}

func (m *meter) stats(now int64, flows uint32) of13.MeterStats {
	s := of13.MeterStats{Meter: m.Meter, Flows: flows, Life: lifetime(now, m.created)}
	s.In = of13.Count{Packets: atomic.LoadUint64(&m.state.Packets), Bytes: atomic.LoadUint64(&m.state.Bytes)}
	for i := range m.rules {
		b := &m.state.Bands[i]
		s.Bands = append(s.Bands, of13.Count{Packets: atomic.LoadUint64(&b.Packets), Bytes: atomic.LoadUint64(&b.Bytes)})
	}
	return s
}

// MeterStates gives those of all meters there are.
func (s *Switch) MeterStates() iter.Seq[*MeterState] {
	return func(yield func(*MeterState) bool) {
		for _, m := range s.meters {
			if !yield(m.state) {
				return
			}
		}
	}
}
