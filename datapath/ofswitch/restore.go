package ofswitch

import (
	"errors"
	"fmt"
	"os"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// ErrLost is of what the switch before this one had been told.
var ErrLost = errors.New("lost, since it cannot be made again")

// restore makes what the switch before this one had been told; any is false if there
// was none.
func (s *Switch) restore() (any bool, err error) {
	records, err := readLog()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	any = err == nil
	if err := s.store.shift(); err != nil {
		return any, err
	}
	counts := make(map[uint64]*pipeline.Counts)
	for i := range s.store.counts {
		if c := &s.store.counts[i]; c.Owner != 0 {
			counts[c.Owner] = c
		} else {
			s.store.Forget(c)
		}
	}
	claimed := make(map[*pipeline.Counts]bool)
	for left := -1; len(records) != left; { // groups may lead to others that come later
		left = len(records)
		records, err = s.restoreSome(records, counts, claimed)
	}
	if err != nil {
		s.config.Log(fmt.Errorf("%w: %d entries, groups or meters, the last of them for %w", ErrLost, len(records), err))
	}
	for _, c := range counts {
		if !claimed[c] {
			s.store.Forget(c)
		}
	}
	return any, s.store.begin(s.tables.KeepAll)
}

// restoreSome gives those that were refused, and why the last of them was.
func (s *Switch) restoreSome(records []record, counts map[uint64]*pipeline.Counts, claimed map[*pipeline.Counts]bool) (refused []record, why error) {
	for _, r := range records {
		var c *pipeline.Counts
		if r.Kind == pipeline.KeptEntry {
			c = counts[r.Number]
		}
		n := min(int(of13.ReadHeader(r.text).Length), len(r.text))
		_, m, err := new(of13.Decoder).Decode(r.text[:n])
		if err == nil {
			loosen(m, r.text[n:])
			err = s.tables.Restore(s.now(), r.Kept, m, c)
		}
		if err != nil {
			refused, why = append(refused, r), err
			continue
		}
		claimed[c] = true
	}
	return refused, why
}
