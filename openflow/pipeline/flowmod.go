package pipeline

import (
	"iter"
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
		if err := s.tables[m.Table].features.check(m.Match.Fields, m.Instructions, m.Priority); err != nil {
			return err
		}
	}
	if err := s.changeFlows(now, m); err != nil {
		return err
	}
	if m.Command < of13.FlowDelete && m.Buffer != of13.NoBuffer {
		return s.resume(now, m.Buffer)
	}
	return nil
}

func (s *Switch) changeFlows(now int64, m *of13.FlowMod) error {
	switch m.Command {
	case of13.FlowAdd:
		return s.addFlow(now, m)
	case of13.FlowModify, of13.FlowModifyStrict:
		list := s.selected(m)
		if len(list) == 0 && m.Adds {
			return s.addFlow(now, m)
		}
		if !s.roomFor(m.Instructions, m.Table, list) {
			return of13.FlowModFailedTableFull
		}
		s.ended(list)
		for _, e := range list {
			was, counted, t := *e, *e.Counts, &s.tables[e.Table]
			s.undo(func() {
				t.beyond += was.beyond() - e.beyond()
				e.Instructions, e.does, e.wire, e.Packets, e.Bytes = was.Instructions, was.does, nil, counted.Packets, counted.Bytes
				s.keepEntry(e)
			})
			e.instruct(m.Instructions)
			t.beyond += e.beyond() - was.beyond()
			s.keepEntry(e)
			if m.Flags&of13.FlowResetCounts != 0 {
				e.Packets, e.Bytes = 0, 0
			}
		}
	default:
		s.drop(now, of13.RemovedDelete, slices.DeleteFunc(s.selected(m), func(e *Entry) bool { return !e.outputsTo(m.OutPort, m.OutGroup) })...)
	}
	return nil
}

// newEntry is what a message makes, without counters.
func newEntry(m *of13.FlowMod) *Entry {
	e := &Entry{Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, Flags: m.Flags, Idle: m.Idle, Hard: m.Hard, Match: canonical(m.Match)}
	e.value, e.mask = keysOf(e.Match)
	e.instruct(m.Instructions)
	return e
}

// addFlow adds an entry, or replaces the one with its match and priority.
// The specification calls an identical entry an overlap too.
func (s *Switch) addFlow(now int64, m *of13.FlowMod) error {
	e := newEntry(m)
	t := &s.tables[m.Table]
	if m.Flags&of13.FlowCheckOverlap != 0 {
		for range t.overlapping(&e.value, &e.mask, e.Priority) {
			return of13.FlowModFailedOverlap
		}
	}
	old := t.same(&e.value, &e.mask, e.Priority)
	var in []*Entry
	if old != nil {
		in = []*Entry{old}
	}
	if !s.roomFor(m.Instructions, m.Table, in) {
		return of13.FlowModFailedTableFull
	}
	if full := s.entries >= s.config.Entries || t.features != nil && t.size >= int(t.features.MaxEntries); full && old == nil && !s.evict(now, m.Table) {
		return of13.FlowModFailedTableFull
	}
	s.giveCounts(e, now)
	if s.ages++; old != nil {
		s.replace(e, old, m.Flags&of13.FlowResetCounts != 0)
	}
	e.age, e.Owner = s.ages, s.ages
	s.install(e)
	s.endFlows(s.flows.changedBy(e))
	return nil
}

// replace takes an entry away without a word; its counters go on in the new one.
func (s *Switch) replace(e, old *Entry, reset bool) {
	s.ended([]*Entry{old})
	if !reset {
		e.Packets, e.Bytes = old.Packets, old.Bytes
	}
	s.uninstall(old)
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
func (s *Switch) flowsOf(q *of13.FlowRequest) (iter.Seq[*Entry], error) {
	if q.Table != of13.TableAll && int(q.Table) >= len(s.tables) {
		return func(func(*Entry) bool) {}, of13.BadRequestBadTableID
	}
	value, mask := keysOf(q.Match.Fields)
	return func(yield func(*Entry) bool) {
		for i := range s.tables {
			if q.Table != of13.TableAll && int(q.Table) != i {
				continue
			}
			for e := range s.tables[i].within(&value, &mask) {
				if cookie(e, q.Cookie, q.CookieMask) && e.outputsTo(q.OutPort, q.OutGroup) && !yield(e) {
					return
				}
			}
		}
	}, nil
}

// everyEntry gives all entries for which want is true.
func (s *Switch) everyEntry(want func(*Entry) bool) (list []*Entry) {
	for i := range s.tables {
		for e := range s.tables[i].all() {
			if want(e) {
				list = append(list, e)
			}
		}
	}
	return list
}
