package controller

import (
	"fmt"
	"time"

	"sublet/openflow/of13"
)

// meters are those that a switch must have: told, read back and looked after as
// entries are. Those of our numbers that nobody wants are deleted.
type meters struct {
	wanted map[uint32]Meter
	before map[uint32]Meter // that were proven when others were wanted
	seen   map[uint32]bool  // in the reply that comes
	read   uint32           // transaction; 0: nothing is asked
	mods   map[uint32]bool  // transactions of changes that are not proven
	since  time.Time
	tries  int
	done   func(error)
}

// SetMeters tells the switch meters instead of those that it was told before, and done
// whether it has them. If not, it has those of before.
func (t *Table) SetMeters(list []Meter, now time.Time, done func(error)) {
	var before map[uint32]Meter
	if t.meters != nil && t.meters.done == nil {
		before = t.meters.wanted
	}
	t.meters = &meters{wanted: make(map[uint32]Meter, len(list)), before: before, mods: make(map[uint32]bool), since: now, done: done}
	for _, m := range list {
		t.meters.wanted[m.Number] = m
	}
	t.readMeters()
}

func (t *Table) readMeters() {
	t.meters.seen = make(map[uint32]bool)
	t.meters.read = t.s.Send(&of13.MultipartRequest{Kind: of13.MultipartMeterConfig, Number: of13.MeterAll})
}

// metersShown compares what a switch shows of meters, and tells it what differs.
func (t *Table) metersShown(reply *of13.MultipartReply) {
	m := t.meters
	changed := 0
	for i := range reply.MeterConfigs {
		c := &reply.MeterConfigs[i]
		want, ok := m.wanted[c.Meter]
		switch {
		case ok:
			m.seen[c.Meter] = true
			if !want.is(c) {
				changed += t.mendMeter(want, of13.CommandModify)
			}
		case !t.Spare && c.Meter >= firstMeter && c.Meter < firstMeter+mostMeters:
			changed += t.mendMeter(Meter{Number: c.Meter}, of13.CommandDelete)
		}
	}
	if reply.Flags&of13.MultipartMore == 0 {
		for number, want := range m.wanted {
			if !m.seen[number] {
				changed += t.mendMeter(want, of13.CommandAdd)
			}
		}
		m.read = 0
	}
	t.judgeMeters(changed)
}

// judgeMeters ends a proof of meters when nothing had to be changed.
func (t *Table) judgeMeters(changed int) {
	m := t.meters
	switch {
	case m.done == nil: // they were proven before, and mendMeter has told
	case changed > 0:
		m.tries++
	case m.read == 0:
		t.metersDone(nil)
		return
	}
	if m.done == nil || m.read != 0 {
		return
	}
	if m.tries > 3 {
		t.metersDone(ErrUnproven)
		return
	}
	t.s.Send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	t.readMeters()
}

func (t *Table) metersDone(err error) {
	done := t.meters.done
	t.meters.done = nil
	if err != nil {
		before := t.meters.before
		for number := range t.meters.wanted {
			if _, proven := before[number]; !proven {
				t.tellMeter(Meter{Number: number}, of13.CommandDelete)
			}
		}
		t.meters = nil
		if before != nil { // the next audit puts them right
			t.meters = &meters{wanted: before, mods: make(map[uint32]bool)}
		}
	}
	done(err)
}

// metersRefused is an error for a change of a meter that is not proven.
func (t *Table) metersRefused(xid uint32, e of13.Error) {
	m := t.meters
	switch {
	case m == nil || m.done == nil:
	case xid == m.read && len(m.wanted) == 0: // a switch without meters, of which none are wanted
		done := m.done
		t.meters = nil
		done(nil)
	case m.mods[xid] || xid == m.read:
		t.metersDone(e)
	}
}

// metersLate gives up a proof that takes too long.
func (t *Table) metersLate(now time.Time) {
	if t.meters != nil && t.meters.done != nil && now.Sub(t.meters.since) > proveWithin {
		t.metersDone(fmt.Errorf("meters within %s: %w", proveWithin, ErrUnproven))
	}
}

// mendMeter tells the switch a meter that it shows otherwise.
func (t *Table) mendMeter(m Meter, command uint16) int {
	if t.meters.done == nil {
		t.mend(Mended{Meter: m.Number, Lost: command == of13.CommandAdd})
	}
	return t.tellMeter(m, command)
}

func (t *Table) tellMeter(m Meter, command uint16) int {
	mod := &of13.MeterMod{Command: command, Meter: m.Number}
	if command != of13.CommandDelete {
		mod.Flags = of13.MeterKBPS | of13.MeterBurst
		mod.Bands = []of13.Band{{Kind: of13.BandDrop, Rate: m.Kbps, Burst: m.Burst}}
	}
	xid := t.s.Send(mod)
	if t.meters.done != nil {
		t.meters.mods[xid] = true
	}
	return 1
}

func (m Meter) is(c *of13.MeterConfig) bool {
	return c.Flags&^of13.MeterStatsFlag == of13.MeterKBPS|of13.MeterBurst && len(c.Bands) == 1 && c.Bands[0].Kind == of13.BandDrop && c.Bands[0].Rate == m.Kbps && c.Bands[0].Burst == m.Burst
}
