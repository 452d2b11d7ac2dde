package plan

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSectionsHaveOneOwner: of every kind, items are taken from the owner of its
// section, once, and from nobody else; what the server said stays as it is.
func TestSectionsHaveOneOwner(t *testing.T) {
	everyKind(t, func(t *rapid.T, draw func() Item) {
		item, central := draw(), Host{Host: "h1", Revision: 7}
		central.Add(VNode{Node: "mine"})
		for _, owner := range []Owner{ByServer, ByPaths} {
			whole, err := Merge(central, Local{owner, []Item{item}})
			if rightful := OwnerOf(item.Kind()) == owner; rightful != (err == nil) {
				t.Errorf("%s by %s: %v", item.Kind(), owner, err)
			} else if rightful && (len(whole.Items()) != 2 || whole.Revision != 7 || len(central.Items()) != 1) {
				t.Errorf("%s by %s: %v", item.Kind(), owner, whole)
			}
			if _, err := Merge(central, Local{owner, []Item{item, item}}); err == nil {
				t.Errorf("%s twice by %s", item.Kind(), owner)
			}
		}
		if OwnerOf(item.Kind()) == ByServer {
			return
		}
		central.Add(item)
		if _, err := Merge(central); err == nil {
			t.Errorf("%s came from the server", item.Kind())
		}
	})
}

// TestMergeRefusesStrays: an item of no section has no owner.
func TestMergeRefusesStrays(t *testing.T) {
	var h Host
	h.Add(stray{})
	if _, err := Merge(h); !isUnknown(err) {
		t.Errorf("merged: %v", err)
	}
}
