package lease

import (
	"errors"
	"slices"
	"testing"
	"time"

	"sublet/vnet"
)

// TestSlowLinksAreLeft: a link that was measured to be slower than stated carries nobody
// with a bound below that any more, whose owner allows that it moves, and nobody new;
// once it is as stated again it does.
func TestSlowLinksAreLeft(t *testing.T) {
	b := New(ground("host A", "host B", "switch S", "link A B 1000", "link A S 1000", "link S B 1000"))
	bounded := func(name string, movable bool) vnet.Request {
		r := twoNodes(name, "A", "B", time.Time{}, 0)
		r.Links[0].Latency, r.Movable = 5*time.Millisecond, movable
		return r
	}
	moves, stays := admitted(t, b, bounded("moves", true)), admitted(t, b, bounded("stays", false))
	free := admitted(t, b, twoNodes("free", "A", "B", time.Time{}, 0))
	applied(t, b)
	if err := b.LinkTakes(noon, "X-Y", time.Second); !errors.Is(err, ErrNoElement) {
		t.Errorf("a link that is not there: %v", err)
	}
	if err := b.LinkTakes(noon, "A-B", 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := b.LinkTakes(noon, "A-B", 0); !errors.Is(err, ErrConflict) {
		t.Errorf("while one moves: %v", err)
	}
	applied(t, b)
	applied(t, b)
	for id, direct := range map[vnet.LeaseID]bool{moves: false, stays: true, free: true} {
		if path := mappingOf(t, b, id).Links["xy"]; slices.Equal(path, []string{"A-B"}) != direct {
			t.Errorf("%s is carried by %v", id, path)
		}
	}
	if path := mappingOf(t, b, admitted(t, b, bounded("new", false))).Links["xy"]; len(path) != 2 {
		t.Errorf("a new one is carried by %v", path)
	}
	if err := b.LinkTakes(noon, "A-B", 0); err != nil {
		t.Fatal(err)
	}
	if path := mappingOf(t, b, admitted(t, b, bounded("later", false))).Links["xy"]; len(path) != 1 {
		t.Errorf("one after that is carried by %v", path)
	}
}
