// Package plan says, as data, what each host must have, what it has, and what
// to change: Compile makes the wanted Hosts out of leases, Diff the Steps from
// one Host to another. Package report has what came of them.
//
// A Host is a list of items, in one section per kind of kernel object. An item
// read back from the kernel equals the item that was put there, so Compile
// normalises every figure to what the kernel can hold (whole bytes per second,
// whole pages).
//
//	leases --Compile--> Host (wanted) --+
//	                                    +--Diff--> []Step --> agent
//	kernel --Observe--> Host (had) -----+
package plan

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Host is everything one host must have, or has: its items, and whose plan of
// which revision it is. In JSON each section that is not empty is a member of
// its own (see sections).
type Host struct {
	Host     vnet.HostID `json:"host"`
	Revision uint64      `json:"revision,omitempty"` // of the book; 0 in an observation
	Store    string      `json:"store,omitempty"`    // identity of the store that it is of
	Term     string      `json:"term,omitempty"`     // of that store, in which it was published
	Terms    []Term      `json:"terms,omitempty"`    // that the store knows, oldest first; only when handed out
	Adopt    *Origin     `json:"adopt,omitempty"`    // whoever has that plan shall follow this one all the same
	Half     bool        `json:"half,omitempty"`     // do only what it allows of what is there: see Shrunk

	// Begins is when its agent begins with it, as those of other hosts do with theirs;
	// zero: at once.
	Begins time.Time `json:"-"`

	Unknown []Unknown `json:"-"` // of an observation: what could not be looked at

	items []Item // in the order of Add
}

// Item is one thing a host has: an element of one of the sections.
type Item interface {
	Kind() Kind
	Key() string // unique within its kind on one host
	// LeaseID is the lease that the item is of; zero: the host's own, or one
	// read back from a kernel that does not know whose it is.
	LeaseID() vnet.LeaseID
	// Meet returns what both item and other (same kind and key) allow: the
	// smaller rates and limits, else the properties of item.
	Meet(other Item) Item
	String() string // one readable line
}

// Add puts an item into its section.
func (h *Host) Add(items ...Item) { h.items = append(h.items, items...) }

// Items lists the host's items in building order, by key within a kind. Items
// of kinds that no section has come last; no part does them, which is reported.
func (h Host) Items() []Item {
	type keyed struct {
		rank int
		key  string
		item Item
	}
	sorted := make([]keyed, len(h.items)) // keys are put together from names: each is made once
	for i, item := range h.items {
		sorted[i] = keyed{rank(item.Kind()), item.Key(), item}
	}
	slices.SortStableFunc(sorted, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.key, b.key))
	})
	items := make([]Item, len(sorted))
	for i, k := range sorted {
		items[i] = k.item
	}
	return items
}

// All are the host's items in the order of Add: those who need no other one save the keys.
func (h Host) All() iter.Seq[Item] { return slices.Values(h.items) }

// Of lists a host's items of one type, in the order of Add.
func Of[T Item](h Host) (list []T) {
	for _, item := range h.items {
		if item, ok := item.(T); ok {
			list = append(list, item)
		}
	}
	return list
}

// String prints a host one item a line, for people and golden tests.
func (h Host) String() string {
	var b strings.Builder
	for _, item := range h.Items() {
		b.WriteString(string(item.Kind()) + " " + item.String() + "\n")
	}
	return b.String()
}
