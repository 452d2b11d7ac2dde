package vnet

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the shares, their parts of a rate carry all of it and less than one
// bit/s a path more, and a rate that its parts admit is no more than they do.
func TestSharesCoverTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shares []PathShare
		for left := ShareUnits; left > 0; {
			units := rapid.IntRange(1, left).Draw(t, "units")
			shares, left = append(shares, PathShare{Units: units}), left-units
		}
		rate := Rate(rapid.Int64Range(0, int64(MaxRate)).Draw(t, "rate"))
		sum := Rate(0)
		for _, s := range shares {
			part := s.Of(rate)
			sum += part
			whole := s.Whole(part)
			if whole < rate || s.Of(whole) > part {
				t.Fatalf("%d units of %d: %d, of which the whole is %d", s.Units, rate, part, whole)
			}
		}
		if sum < rate || sum >= rate+Rate(len(shares)) {
			t.Fatalf("shares of %d add up to %d", rate, sum)
		}
	})
}

func TestUnboundedStaysUnbounded(t *testing.T) {
	s := PathShare{Units: 1}
	if s.Of(Unbounded) != Unbounded || s.Whole(Unbounded) != Unbounded {
		t.Error("a path's part of no bound is a bound")
	}
}

func TestSplitsAreChecked(t *testing.T) {
	for _, c := range []struct {
		link VirtualLink
		want string
	}{
		{VirtualLink{Paths: MaxPaths + 1}, "links[0].paths: 9 is not between 1 and 8: leave it out for one path"},
		{VirtualLink{Paths: -1}, "links[0].paths: -1 is not between 1 and 8: leave it out for one path"},
		{VirtualLink{Spread: 1}, "links[0].spread: bounds the difference between several paths: state paths too, or leave it out"},
		{VirtualLink{Paths: 2, Spread: -1}, "links[0].spread: -1ns is not between 0 and 1h: state a bound such as 10ms"},
		{VirtualLink{Paths: 2, Spread: MaxLatency}, ""},
	} {
		c.link.Ends = [2]string{"a", "b"}
		r := Request{Network: "n", Topology: Topology{Nodes: []VirtualNode{{Name: "a"}, {Name: "b"}}, Links: []VirtualLink{c.link}}}
		r.Fill()
		got := ""
		if err := r.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestPathsOfAMapping(t *testing.T) {
	m := Mapping{Links: map[string]Path{"one": {"x"}}, Splits: map[string][]PathShare{"two": {{Path{"x"}, 200}, {Path{"y"}, 56}}}}
	if got := m.Paths("one"); len(got) != 1 || got[0].Units != ShareUnits || got[0].Path[0] != "x" {
		t.Errorf("one path: %v", got)
	}
	if len(m.Paths("two")) != 2 || m.Paths("none") != nil {
		t.Errorf("two: %v, none: %v", m.Paths("two"), m.Paths("none"))
	}
}
