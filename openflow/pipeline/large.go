package pipeline

import "sublet/openflow/of13"

// An action takes some 130 bytes here, so an entry or group with more than usual of them
// more than is booked for it. What all of them have beyond that is bounded by what there
// may be of entries, or groups. A table has the sum of its entries; groups are few, and
// theirs is made when a large one comes.
const (
	usual      = 16   // actions of an entry, and of all buckets of a group
	mostBeyond = 4096 // of all entries together, and four more for each that there may be
)

// beyond is how many actions there are more than usual.
func beyond(actions int) int { return max(actions-usual, 0) }

func actionsOf(list []of13.Instruction) (n int) {
	for i := range list {
		n += len(list[i].Actions)
	}
	return n
}

func actionsIn(list []of13.Bucket) (n int) {
	for i := range list {
		n += 1 + len(list[i].Actions)
	}
	return n
}

// roomFor says whether entries may have instructions in place of theirs, or a new one.
func (s *Switch) roomFor(list []of13.Instruction, table uint8, in []*Entry) bool {
	more := beyond(actionsOf(list)) * max(len(in), 1)
	if more == 0 {
		return true
	}
	first, tables, entries := 0, len(s.tables), s.config.Entries
	if s.Share != nil {
		first, tables, entries = s.Share(table)
	}
	for _, e := range in {
		more -= e.beyond()
	}
	for i := range tables {
		more += s.tables[first+i].beyond
	}
	return more <= mostBeyond+4*entries
}

// beyond is how many actions an entry has more than usual.
func (e *Entry) beyond() int { return beyond(actionsOf(e.Instructions)) }

// roomForGroup says whether a group may have buckets, in place of its own.
func (s *Switch) roomForGroup(m *of13.GroupMod) bool {
	more := beyond(actionsIn(m.Buckets))
	if more == 0 || s.restoring { // what was there had room, in its slice

		return true
	}
	mine, groups := func(uint32) bool { return true }, s.config.Groups
	if s.ShareGroups != nil {
		mine, groups = s.ShareGroups(m.Group)
	}
	for number, g := range s.groups {
		if number != m.Group && mine(number) {
			more += beyond(actionsIn(g.Buckets))
		}
	}
	return more <= mostBeyond+4*groups
}
