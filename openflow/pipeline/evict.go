package pipeline

import (
	"math"

	"sublet/openflow/of13"
)

// Configuration of a table. The lower bits are those that 1.3 calls deprecated,
// which are kept and mean nothing; eviction has the bit of OpenFlow 1.4.
const (
	configDeprecated uint32 = 3
	configEviction   uint32 = 4
	configKnown             = configDeprecated | configEviction
)

// ends is when an entry is over at the latest if no more packets meet it; an
// entry without timeouts never is.
func (e *Entry) ends() int64 {
	const second = 1e9
	end := int64(math.MaxInt64)
	if e.Hard > 0 {
		end = e.created + int64(e.Hard)*second
	}
	if e.Idle > 0 {
		end = min(end, e.used+int64(e.Idle)*second)
	}
	return end
}

// evict makes room in a table whose configuration allows it: the entry that would
// be over first leaves, of two the older one. Entries without timeouts stay.
func (s *Switch) evict(now int64, table uint8) bool {
	if s.tables[table].config&configEviction == 0 {
		return false
	}
	s.fold()
	var first *Entry
	for e := range s.timed {
		if e.Table == table && (first == nil || e.ends() < first.ends() || e.ends() == first.ends() && e.age < first.age) {
			first = e
		}
	}
	if first != nil {
		s.drop(now, of13.RemovedDelete, first)
	}
	return first != nil
}
