package pipeline

import "sublet/openflow/of13"

// journal is what is to be done when changes that belong together are over.
type journal struct {
	undo  []func() // if they failed, the last one first
	after []func() // if they did not: what is told and sent
}

// Atomic makes changes by run, of which none stays if it fails. No packet meets a
// part of them; what is to be told of them is told when all are made.
func (s *Switch) Atomic(run func() error) error {
	j := &journal{}
	s.journal = j
	err := run()
	s.journal = nil
	if err != nil {
		for i := range j.undo {
			j.undo[len(j.undo)-1-i]()
		}
		s.invalidate(every)
		return err
	}
	for _, f := range j.after {
		f()
	}
	return nil
}

// Changing says whether changes are being made that may be taken back.
func (s *Switch) Changing() bool { return s.journal != nil }

// undo notes how a change is taken back.
func (s *Switch) undo(f func()) {
	if s.journal != nil {
		s.journal.undo = append(s.journal.undo, f)
	}
}

// afterwards does something when changes that belong together are made, which
// may be now.
func (s *Switch) afterwards(f func()) {
	if s.journal != nil {
		s.journal.after = append(s.journal.after, f)
		return
	}
	f()
}

// put sets an element of a map, or takes it out if it is nil.
func put[T any](s *Switch, m map[uint32]*T, number uint32, v *T) {
	set := func(v *T) {
		if k, ok := any(v).(interface {
			kept() (KeptKind, of13.Message)
		}); ok && s.keeps() {
			kind, message := k.kept()
			s.memory.Keep(Kept{kind, uint64(number)}, message)
		}
		if v == nil {
			delete(m, number)
		} else {
			m[number] = v
		}
		s.alive = nil
	}
	old := m[number]
	s.undo(func() { set(old) })
	set(v)
}

// install puts an entry into its table.
func (s *Switch) install(e *Entry) {
	s.tables[e.Table].add(e)
	s.tables[e.Table].beyond += e.beyond()
	s.entries++
	if e.Idle|e.Hard != 0 {
		s.timed[e] = struct{}{}
	}
	s.keepEntry(e)
	if s.journal != nil {
		s.undo(func() { s.uninstall(e) })
	}
}

// uninstall takes an entry out of its table.
func (s *Switch) uninstall(e *Entry) {
	s.tables[e.Table].remove(e)
	s.tables[e.Table].beyond -= e.beyond()
	delete(s.timed, e)
	s.entries--
	s.gone(KeptEntry, e.age)
	s.afterwards(func() { s.memory.Forget(e.Counts) })
	s.undo(func() { s.install(e) })
}
