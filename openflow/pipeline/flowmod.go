package pipeline

import (
	"slices"

	"sublet/openflow/of13"
)

// knownFlags of a flow-mod.
const knownFlags = of13.FlowSendRemoved | of13.FlowCheckOverlap | of13.FlowResetCounts | of13.FlowNoPacketCount | of13.FlowNoByteCount

func (s *Switch) flowMod(now int64, m *of13.FlowMod) error {
	all := m.Table == of13.TableAll
	switch {
	case all && m.Command < of13.FlowDelete, !all && int(m.Table) >= len(s.tables):
		return of13.FlowModFailedBadTableID
	case m.Flags&^knownFlags != 0:
		return of13.FlowModFailedBadFlags
	case m.Command > of13.FlowDeleteStrict:
		return of13.FlowModFailedBadCommand
	}
	if m.Command < of13.FlowDelete {
		if err := s.checkInstructions(m); err != nil {
			return err
		}
	}
	if err := s.changeFlows(now, m); err != nil {
		return err
	}
	if m.Command < of13.FlowDelete && m.Buffer != of13.NoBuffer {
		return of13.BadRequestBufferUnknown
	}
	return nil
}

func (s *Switch) changeFlows(now int64, m *of13.FlowMod) error {
	switch m.Command {
	case of13.FlowAdd:
		return s.addFlow(now, m)
	case of13.FlowModify, of13.FlowModifyStrict:
		for _, e := range s.selected(m) {
			e.instruct(m.Instructions)
			if m.Flags&of13.FlowResetCounts != 0 {
				e.Packets, e.Bytes = 0, 0
			}
		}
	default:
		for _, e := range s.selected(m) {
			if (m.OutPort == of13.PortAny || e.uses(of13.ActionOutput, m.OutPort)) && (m.OutGroup == of13.GroupAny || e.uses(of13.ActionGroup, m.OutGroup)) {
				s.drop(now, e, of13.RemovedDelete)
			}
		}
	}
	return nil
}

// addFlow adds an entry, or replaces the one with its match and priority.
// The specification calls an identical entry an overlap too.
func (s *Switch) addFlow(now int64, m *of13.FlowMod) error {
	e := &Entry{Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, Flags: m.Flags, Idle: m.Idle, Hard: m.Hard, Match: canonical(m.Match), created: now, used: now}
	e.value, e.mask = keysOf(e.Match)
	t := &s.tables[m.Table]
	if m.Flags&of13.FlowCheckOverlap != 0 {
		for range t.overlapping(&e.value, &e.mask, e.Priority) {
			return of13.FlowModFailedOverlap
		}
	}
	old := t.same(&e.value, &e.mask, e.Priority)
	if old == nil && s.entries >= s.config.Entries {
		return of13.FlowModFailedTableFull
	}
	e.instruct(m.Instructions)
	if s.ages++; old != nil {
		s.replace(e, old, m.Flags&of13.FlowResetCounts != 0)
	} else {
		s.entries++
	}
	e.age = s.ages
	t.add(e)
	if e.Idle|e.Hard != 0 {
		s.timed[e] = struct{}{}
	}
	return nil
}

// replace takes an entry away without a word; its counters go on in the new one.
func (s *Switch) replace(e, old *Entry, reset bool) {
	if !reset {
		e.Packets, e.Bytes = old.Packets, old.Bytes
	}
	s.tables[e.Table].remove(old)
	delete(s.timed, old)
}

// selected gives the entries that a modify or delete is about.
func (s *Switch) selected(m *of13.FlowMod) (list []*Entry) {
	value, mask := keysOf(m.Match.Fields)
	strict := m.Command == of13.FlowModifyStrict || m.Command == of13.FlowDeleteStrict
	for i := range s.tables {
		if m.Table != of13.TableAll && int(m.Table) != i {
			continue
		}
		if t := &s.tables[i]; !strict {
			list = slices.AppendSeq(list, t.within(&value, &mask))
		} else if e := t.same(&value, &mask, m.Priority); e != nil {
			list = append(list, e)
		}
	}
	return slices.DeleteFunc(list, func(e *Entry) bool { return !cookie(e, m.Cookie, m.CookieMask) })
}

func cookie(e *Entry, value, mask uint64) bool { return (e.Cookie^value)&mask == 0 }

// flowsOf gives the entries that a request selects, table by table.
func (s *Switch) flowsOf(q *of13.FlowRequest) (list []*Entry, err error) {
	if q.Table != of13.TableAll && int(q.Table) >= len(s.tables) {
		return nil, of13.BadRequestBadTableID
	}
	value, mask := keysOf(q.Match.Fields)
	for i := range s.tables {
		if q.Table != of13.TableAll && int(q.Table) != i {
			continue
		}
		for e := range s.tables[i].within(&value, &mask) {
			if cookie(e, q.Cookie, q.CookieMask) && (q.OutPort == of13.PortAny || e.uses(of13.ActionOutput, q.OutPort)) && (q.OutGroup == of13.GroupAny || e.uses(of13.ActionGroup, q.OutGroup)) {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// everyEntry gives all entries for which want is true.
func (s *Switch) everyEntry(want func(*Entry) bool) (list []*Entry) {
	for i := range s.tables {
		list = slices.AppendSeq(list, s.tables[i].where(func(*tuple) bool { return true }, want))
	}
	return list
}
