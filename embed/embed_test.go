package embed

import (
	"errors"
	"reflect"
	"testing"

	"sublet/embed/graph"
	"sublet/embed/verify"
	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestNeverOverbooks: whatever Embed accepts is valid for the independent
// checker; booked, it leaves nothing below zero; released, it leaves nothing
// behind. What Embed refuses, the exact reference must refuse too: the bounds of
// the exhaustive search are wide enough for instances of this size.
func TestNeverOverbooks(t *testing.T) {
	var accepted, greedy, refused, missed int
	rapid.Check(t, func(t *rapid.T) {
		c := drawSmall(t)
		mapping, err := embedOn(c.sub, c.cal, c.request, c.window)
		if infeasible := new(Infeasible); errors.As(err, &infeasible) {
			refused++
			if len(infeasible.Reasons) == 0 || len(infeasible.Nodes)+len(infeasible.Links) == 0 {
				t.Fatalf("refused without a reason: %#v", infeasible)
			}
			if feasible(c.sub, c.cal, c.request, c.window) {
				missed++
				t.Errorf("refused though it can be embedded: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := embedOn(c.sub, c.cal, c.request, c.window); err != nil || !reflect.DeepEqual(again, mapping) {
			t.Fatalf("the same again: %v, %v, first %v", again, err, mapping)
		}
		accepted++
		if c.greedily(t) {
			greedy++
		}
		c.accept(t, mapping)
	})
	t.Logf("accepted %d, %d of them greedily; refused %d, missed %d", accepted, greedy, refused, missed)
}

// greedily says whether the attempts alone find an embedding.
func (c small) greedily(t *rapid.T) bool {
	p, err := problemOf(c.request, c.window)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(c.sub)
	if err != nil {
		t.Fatal(err)
	}
	s := newSearch(p, g, residualOf(inventoryOf(c.sub), c.cal, p.spans), c.request.Objective)
	s.useTables(&costTables{}, g.NewLeast())
	return s.attempts(1 << 20)
}

// accept checks, books and releases a mapping.
func (c small) accept(t *rapid.T, mapping vnet.Mapping) {
	if err := verify.Mapping(c.sub, c.cal, c.request, c.window, mapping); err != nil {
		t.Fatal(err)
	}
	bookings, err := bookingsOn(c.sub, c.request, c.window, mapping)
	if err != nil {
		t.Fatal(err)
	}
	booked := c.cal.Clone()
	if err := booked.Book(bookings...); err != nil {
		t.Fatal(err)
	}
	capacities := inventoryOf(c.sub).byKey()
	for _, b := range bookings {
		if capacity, ok := capacities[b.Key]; !ok || capacity != verify.Capacity(c.sub, b.Key) {
			t.Fatalf("Capacities of %s = %d, want %d", b.Key, capacity, verify.Capacity(c.sub, b.Key))
		}
		if left := booked.Residual(b.Key, verify.Capacity(c.sub, b.Key), b.Window); left < 0 {
			t.Fatalf("%s is over-booked by %d", b.Key, -left)
		}
	}
	if err := booked.Release(bookings...); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(booked, c.cal) {
		t.Fatalf("a release left %v of %v", booked, c.cal)
	}
}
