package plan

import (
	"reflect"
	"slices"
)

// Meet returns what both a and b allow: the items that are in both, with the
// smaller of their rates and limits and the other properties of a. Between a
// and b nothing needs more than the two agree on, so hosts may pass through
// it in any order without over-booking anything. Links of both that are where
// a has them keep the uplinks that they stand on.
func Meet(a, b Host) Host {
	theirs := index(b)
	meet := Host{Host: a.Host}
	for _, item := range a.Items() {
		if other, ok := theirs[id(item)]; ok {
			meet.Add(item.Meet(other))
		}
	}
	for _, u := range Of[Uplink](a) {
		if _, ok := theirs[id(u)]; !ok && meet.usesUplink(u) {
			meet.Add(u)
		}
	}
	return meet
}

// usesUplink says whether a link of the host leaves by an uplink.
func (h Host) usesUplink(u Uplink) bool {
	return slices.ContainsFunc(Of[VxLink](h), func(l VxLink) bool {
		return slices.ContainsFunc(l.Ends[:], func(e End) bool { return e.Tunnel != nil && e.Tunnel.Interface == u.Interface })
	})
}

// Diff returns the steps that turn have into want: first what shrinks and
// goes, the last built first, then what grows and comes, in building order.
// There are none for what could not be looked at, nor for what a tenant changed
// and keeps (Conceder). Whatever else goes is of no
// use to it: what a plan has stands on nothing that the plan has not.
func Diff(want, have Host) []Step {
	wanted, had := index(want), index(have)
	var deletes, shrinks, grows []Step
	for _, item := range have.Items() {
		if have.unseen(item) {
			continue
		}
		target, ok := wanted[id(item)]
		if !ok {
			deletes = append(deletes, Step{Op: Delete, Item: item})
			continue
		}
		if c, ok := item.(Conceder); ok {
			item = c.Concede(target)
			had[id(item)] = item
		}
		if lower, ok := shrunk(item, target); ok {
			shrinks = append(shrinks, Step{Op: Set, Item: lower, Was: item})
			had[id(item)] = lower
		}
	}
	for _, item := range want.Items() {
		was, ok := had[id(item)]
		switch {
		case have.unseen(item):
		case !ok:
			grows = append(grows, Step{Op: Add, Item: item})
		case !Equal(was, item):
			grows = append(grows, Step{Op: Set, Item: item, Was: was})
		}
	}
	slices.Reverse(deletes)
	return slices.Concat(deletes, shrinks, grows)
}

// shrunk returns item with the amounts that must shrink on the way to target,
// and whether there are any. An item whose other properties differ too is
// left to one step: in half of it there is nothing to shrink safely.
func shrunk(item, target Item) (Item, bool) {
	lower := item.Meet(target)
	if Equal(lower, item) || !Equal(lower, target.Meet(item)) {
		return nil, false
	}
	return lower, true
}

// Equal says whether two items are the same.
func Equal(a, b Item) bool { return reflect.DeepEqual(a, b) }

type itemID struct {
	kind Kind
	key  string
}

func id(item Item) itemID { return itemID{item.Kind(), item.Key()} }

func index(h Host) map[itemID]Item {
	items := make(map[itemID]Item)
	for item := range h.All() {
		items[id(item)] = item
	}
	return items
}
