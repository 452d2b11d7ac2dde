package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// defaultBurst is what a meter without a burst lets through at once: its rate for this long.
const defaultBurst = 100e6 // nanoseconds

// leastBurst of a meter in kbit/s: a few frames, else none would ever pass.
const leastBurst = 8 * 4 * 1518

type meter struct {
	of13.MeterConfig
	created int64
	in      of13.Count
	bands   []bucket
}

// bucket is a token bucket: a band acts on what finds too little in it. Tokens
// are bits, or packets, times a billion: what a rate of 1 gives per nanosecond.
type bucket struct {
	rate         uint64 // tokens per second
	tokens, most uint64 // tokens now, and at most; times a billion
	filled       int64
	count        of13.Count
}

const billion = 1_000_000_000

func newMeter(now int64, m *of13.MeterMod) *meter {
	t := &meter{MeterConfig: of13.MeterConfig{Flags: m.Flags, Meter: m.Meter, Bands: slices.Clone(m.Bands)}, created: now}
	for i := range t.Bands {
		b := &t.Bands[i]
		unit, least := uint64(1), uint64(1)
		if m.Flags&of13.MeterPKTPS == 0 {
			unit, least = 1000, leastBurst
		}
		rate := uint64(b.Rate) * unit
		size := rate * defaultBurst / billion
		if m.Flags&of13.MeterBurst != 0 {
			size = uint64(b.Burst) * unit
		}
		size = min(max(size, least), 1<<63/billion)
		t.bands = append(t.bands, bucket{rate: rate, tokens: size * billion, most: size * billion, filled: now})
	}
	return t
}

// fill adds what time has brought.
func (b *bucket) fill(now int64) {
	passed := uint64(now - b.filled)
	if b.filled = now; b.rate > 0 && passed > (b.most-b.tokens)/b.rate {
		b.tokens = b.most
	} else {
		b.tokens += passed * b.rate
	}
}

// pass says whether a packet may go on, which may get another DSCP.
func (m *meter) pass(now int64, p *packet) bool {
	m.in.Packets++
	m.in.Bytes += uint64(len(p.b))
	cost := uint64(billion)
	if m.Flags&of13.MeterPKTPS == 0 {
		cost *= uint64(len(p.b)) * 8
	}
	acts := m.exceeded(now, cost)
	if acts >= 0 {
		m.bands[acts].count.Packets++
		m.bands[acts].count.Bytes += uint64(len(p.b))
		if m.Bands[acts].Kind == of13.BandDrop {
			return false
		}
		p.remark(m.Bands[acts].Precedence)
	}
	for i := range m.bands {
		if m.bands[i].tokens >= cost {
			m.bands[i].tokens -= cost
		}
	}
	return true
}

// exceeded is the band with the highest rate that a packet exceeds; -1: none.
func (m *meter) exceeded(now int64, cost uint64) int {
	acts := -1
	for i := range m.bands {
		b := &m.bands[i]
		if b.fill(now); b.tokens < cost && (acts < 0 || b.rate > m.bands[acts].rate) {
			acts = i
		}
	}
	return acts
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
	s := of13.MeterStats{Meter: m.Meter, Flows: flows, In: m.in, Life: lifetime(now, m.created)}
	for i := range m.bands {
		s.Bands = append(s.Bands, m.bands[i].count)
	}
	return s
}
