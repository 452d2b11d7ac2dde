package report

import (
	"reflect"
	"testing"
	"time"

	"sublet/vnet"
)

// Counts go the short way: the list of links once, then values only; a link of
// several paths is said to be one.
func TestCounts(t *testing.T) {
	of := vnet.LeaseID{Tenant: "alice", Network: "net"}
	list := NewCounts()
	for i, want := range []int{0, 1, 1} {
		names := []string{"a", "b", "b"}
		if got := list.Link(LinkWay{Lease: of, Link: names[i], Enters: i == 2, Leaves: i == 1}); got != want {
			t.Errorf("%s is number %d", names[i], got)
		}
	}
	whole := list.Done()
	whole.At, whole.Values = time.Now().UTC(), []LinkSums{{3, 30, 1}, {1 << 63, 90, 0}}
	if l := whole.Links[1]; whole.Links[0].Several || !l.Several || !l.Enters || !l.Leaves {
		t.Errorf("%+v", whole.Links)
	}
	if NewCounts().Done().Set == whole.Set {
		t.Error("other links are the same set")
	}
	for _, set := range []uint64{0, whole.Set} {
		got, err := DecodeCounts(whole.Encode(set), whole.Set, whole.Links)
		if err != nil || !reflect.DeepEqual(got, whole) {
			t.Errorf("%v: %+v became %+v", err, whole, got)
		}
	}
	if long, short := len(whole.Encode(0)), len(whole.Encode(whole.Set)); short > long-100 {
		t.Errorf("without the links %d bytes go over, with them %d", short, long)
	}
}

// Counts that do not go with their links are refused.
func TestCountsThatAreWrong(t *testing.T) {
	way := LinkWay{Link: "a"}
	for name, c := range map[string]Counts{
		"more values": {Set: 1, Values: make([]LinkSums, 2)},
		"no values":   {Set: 1},
		"another set": {Set: 2, Values: make([]LinkSums, 1)},
		"direction":   {Set: 3, Links: []LinkWay{{Direction: 2}}, Values: make([]LinkSums, 1)},
		"before both": {Set: 3, Links: []LinkWay{{Direction: -1}}, Values: make([]LinkSums, 1)},
	} {
		if _, err := DecodeCounts(c.Encode(0), 1, []LinkWay{way}); err == nil {
			t.Errorf("%s: is taken", name)
		}
	}
	if _, err := DecodeCounts([]byte("no counts"), 1, nil); err == nil {
		t.Error("text is taken")
	}
}
