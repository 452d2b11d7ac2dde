package pipeline

import "sublet/openflow/of13"

// maxBuckets bounds the buckets of a group: what one packet may become.
const maxBuckets = 256

func (s *Switch) groupMod(now int64, m *of13.GroupMod) error {
	switch m.Command {
	case of13.CommandDelete:
		return s.deleteGroups(now, m.Group)
	case of13.CommandAdd, of13.CommandModify:
	default:
		return of13.GroupModFailedBadCommand
	}
	s.invalidate(func(f *Flow) bool { return f.groups })
	old := s.groups[m.Group]
	switch {
	case m.Group > of13.GroupMax:
		return of13.GroupModFailedInvalidGroup
	case m.Command == of13.CommandAdd && old != nil:
		return of13.GroupModFailedGroupExists
	case m.Command == of13.CommandModify && old == nil:
		return of13.GroupModFailedUnknownGroup
	case old == nil && len(s.groups) >= s.config.Groups:
		return of13.GroupModFailedOutOfGroups
	}
	if err := s.checkGroup(m); err != nil {
		return err
	}
	if !s.roomForGroup(m) {
		return of13.GroupModFailedOutOfBuckets
	}
	g := newGroup(now, m)
	if old != nil {
		g.created = old.created
	}
	put(s, s.groups, m.Group, g)
	return nil
}

func (s *Switch) checkGroup(m *of13.GroupMod) error {
	switch {
	case m.Kind > of13.GroupTypeFailover:
		return of13.GroupModFailedBadType
	case len(m.Buckets) > maxBuckets:
		return of13.GroupModFailedOutOfBuckets
	case m.Kind == of13.GroupTypeIndirect && len(m.Buckets) != 1:
		return of13.GroupModFailedInvalidGroup
	}
	below := make(map[uint32]int)
	for i := range m.Buckets {
		if err := s.checkBucket(m, &m.Buckets[i], below); err != nil {
			return err
		}
	}
	return nil
}

// checkBucket checks a bucket. What its actions may be is not known from a
// match, so that fields which packets lack are left alone when it is executed. below is
// of groups that were looked at before for the same message.
func (s *Switch) checkBucket(m *of13.GroupMod, b *of13.Bucket, below map[uint32]int) error {
	watches := b.WatchPort != of13.PortAny || b.WatchGroup != of13.GroupAny
	switch {
	case m.Kind == of13.GroupTypeSelect && b.Weight == 0:
		return of13.GroupModFailedInvalidGroup
	case m.Kind != of13.GroupTypeSelect && b.Weight > 1:
		return of13.GroupModFailedWeightUnsupported
	case m.Kind == of13.GroupTypeFailover && !watches:
		return of13.GroupModFailedBadWatch
	}
	for i := range b.Actions {
		a := &b.Actions[i]
		if a.Type == of13.ActionGroup && (a.Number == m.Group || s.below(a.Number, m.Group, below) > maxDepth) {
			return of13.GroupModFailedLoop
		}
		if a.Type == of13.ActionSetField {
			continue
		}
		if inNoSet(*a) {
			return of13.BadActionBadType
		}
		ctx := of13.NewContext()
		if err := s.checkAction(a, &ctx); err != nil {
			return err
		}
	}
	return nil
}

// below is how many groups are below one another under a group: more than may be if one
// of them leads to another group, to. Each is looked at once: there are as many ways
// through groups as the product of their buckets.
func (s *Switch) below(from, to uint32, seen map[uint32]int) (deepest int) {
	g := s.groups[from]
	if g == nil {
		return 0
	}
	if depth, ok := seen[from]; ok {
		return depth
	}
	for i := range g.Buckets {
		for _, a := range g.Buckets[i].Actions {
			switch {
			case a.Type != of13.ActionGroup:
			case a.Number == to:
				deepest = maxDepth + 1
			default:
				deepest = max(deepest, 1+s.below(a.Number, to, seen))
			}
		}
	}
	seen[from] = deepest
	return deepest
}

// deleteGroups deletes a group, or all, and the entries that use them.
func (s *Switch) deleteGroups(now int64, number uint32) error {
	if number > of13.GroupMax && number != of13.GroupAll {
		return of13.GroupModFailedInvalidGroup
	}
	for n := range s.groups {
		if number != of13.GroupAll && n != number {
			continue
		}
		if number != of13.GroupAll && s.chained(n) {
			return of13.GroupModFailedChainedGroup
		}
		s.drop(now, of13.RemovedGroup, s.everyEntry(func(e *Entry) bool { return e.uses(of13.ActionGroup, n) })...)
		put(s, s.groups, n, nil)
	}
	return nil
}

// chained says whether another group leads to one directly.
func (s *Switch) chained(number uint32) bool { return s.groupReferences(number) > 0 }

func (s *Switch) groupReferences(number uint32) (n uint32) {
	for _, g := range s.groups {
		for i := range g.Buckets {
			for _, a := range g.Buckets[i].Actions {
				if a.Type == of13.ActionGroup && a.Number == number {
					n++
				}
			}
		}
	}
	return n
}
