package plan

import (
	"errors"
	"testing"

	"sublet/vnet"
)

// What could not be looked at gets no step, whatever is wanted of it; the rest
// gets all of its own.
func TestNoStepForWhatIsUnknown(t *testing.T) {
	a, b := vnet.LeaseID{Tenant: "t", Network: "a"}, vnet.LeaseID{Tenant: "t", Network: "b"}
	items := func(id vnet.LeaseID, owner uint32) []Item {
		return []Item{VNode{Lease: id, Node: "n", Owner: owner}, VxLink{Lease: id, Index: int(owner)}, VxRouter{Lease: id, Node: "n", Forward: owner == 1}}
	}
	host := func(lists ...[]Item) (h Host) {
		for _, list := range lists {
			for _, item := range list {
				h.Add(item)
			}
		}
		return h
	}
	full, changed := host(items(a, 1), items(b, 1)), host(items(a, 2), items(b, 2))
	for name, c := range map[string]struct{ want, have Host }{
		"to build": {full, Host{}}, "to remove": {Host{}, full}, "to change": {changed, full},
	} {
		count := func(h Host, of func(Step) bool) (n int) {
			for _, s := range Diff(c.want, h) {
				if of(s) {
					n++
				}
			}
			return n
		}
		all := func(Step) bool { return true }
		links := func(s Step) bool { return s.Item.Kind() == KindVxLink }
		linksOfA := func(s Step) bool { return links(s) && s.Item.LeaseID() == a }
		have := c.have
		have.Unseen(errors.New("no"), a, KindVxLink)
		if got, want := count(have, all), count(c.have, all)-count(c.have, linksOfA); got != want || count(have, linksOfA) != 0 {
			t.Errorf("%s, links of a unknown: %d steps, want %d: %v", name, got, want, Diff(c.want, have))
		}
		have.Unseen(errors.New("no"), vnet.LeaseID{}, KindVxLink)
		if got, want := count(have, all), count(c.have, all)-count(c.have, links); got != want || count(have, links) != 0 {
			t.Errorf("%s, all links unknown: %d steps, want %d: %v", name, got, want, Diff(c.want, have))
		}
	}
}
