package vnet

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// staged is n1 - r1 - n2, to which a stage adds n3, and a later one takes r1.
func staged() Request {
	both := func(r Rate) [2]Bandwidth { return [2]Bandwidth{Static(r), Static(r)} }
	return Request{
		Network: "net",
		Topology: Topology{
			Nodes:   []VirtualNode{{Name: "n1"}, {Name: "n2"}},
			Routers: []VirtualNode{{Name: "r1", Protocol: ProtocolStatic}},
			Links: []VirtualLink{
				{Name: "a", Ends: [2]string{"n1", "r1"}, Bandwidth: both(Mbit)},
				{Name: "b", Ends: [2]string{"r1", "n2"}, Bandwidth: both(Mbit)},
			},
		},
		Stages: []Stage{
			{Name: "one", After: time.Hour, Links: map[string][2]Bandwidth{"a": both(2 * Mbit), "c": both(3 * Mbit)}, Add: Topology{
				Nodes: []VirtualNode{{Name: "n3"}}, Links: []VirtualLink{{Name: "c", Ends: [2]string{"n3", "n1"}}},
			}},
			{Name: "two", After: 2 * time.Hour, Remove: []string{"r1"}},
			{Name: "three", After: 3 * time.Hour, Remove: []string{"c"}, Add: Topology{
				Routers: []VirtualNode{{Name: "r1", Protocol: ProtocolStatic}},
				Links:   []VirtualLink{{Name: "a", Ends: [2]string{"n1", "r1"}, Bandwidth: both(5 * Mbit)}},
			}},
		},
	}
}

func describe(t Topology) string {
	var words []string
	for _, n := range t.All() {
		words = append(words, n.Name)
	}
	for _, l := range t.Links {
		words = append(words, l.Name+"="+l.Bandwidth[Forward].Max.String())
	}
	return strings.Join(words, " ")
}

func TestAt(t *testing.T) {
	r := staged()
	for i, want := range []string{
		"n1 n2 r1 a=1Mbit b=1Mbit",
		"n1 n2 n3 r1 a=2Mbit b=1Mbit c=3Mbit",
		"n1 n2 n3 c=3Mbit",
		"n1 n2 n3 r1 a=5Mbit",
	} {
		if got := describe(r.At(i - 1)); got != want {
			t.Errorf("stage %d: %s, want %s", i-1, got, want)
		}
	}
	if got := describe(r.Topology); got != "n1 n2 r1 a=1Mbit b=1Mbit" {
		t.Errorf("At changed the request: %s", got)
	}
	if got := describe(r.Union()); got != "n1 n2 n3 r1 a=1Mbit b=1Mbit c=0bit" {
		t.Errorf("union: %s", got)
	}
}

func TestStageAt(t *testing.T) {
	r := staged()
	for since, want := range map[time.Duration]int{
		0: -1, time.Hour - 1: -1, time.Hour: 0, 2*time.Hour - 1: 0, 2 * time.Hour: 1, 99 * time.Hour: 2,
	} {
		if got := r.StageAt(since); got != want {
			t.Errorf("StageAt(%v) = %d, want %d", since, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2027, 3, 1, hour, 0, 0, 0, time.UTC) }
	morning, noon, open := Window{at(8), at(12)}, Window{at(12), at(14)}, Window{Start: at(13)}
	if !morning.Contains(at(8)) || morning.Contains(at(12)) || morning.Contains(at(7)) || !open.Contains(at(23)) {
		t.Error("a window is [Start, End)")
	}
	for _, c := range []struct {
		a, b Window
		want bool
	}{
		{morning, noon, false}, {noon, open, true}, {morning, open, false},
		{morning, Window{at(11), at(13)}, true}, {open, Window{Start: at(20)}, true}, {morning, Window{at(7), at(9)}, true},
	} {
		if c.a.Overlaps(c.b) != c.want || c.b.Overlaps(c.a) != c.want {
			t.Errorf("%v overlaps %v: want %v both ways", c.a, c.b, c.want)
		}
	}
}

func TestWalk(t *testing.T) {
	s := Substrate{Links: []SubstrateLink{
		{Name: "a", Ends: [2]string{"h1", "s1"}}, {Name: "b", Ends: [2]string{"h2", "s1"}}, {Name: "c", Ends: [2]string{"h2", "h3"}},
	}}
	hops, err := s.Walk("h1", Path{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, h := range hops {
		words = append(words, h.From()+">"+h.To())
	}
	if want := []string{"h1>s1", "s1>h2", "h2>h3"}; !slices.Equal(words, want) {
		t.Errorf("walked %v, want %v", words, want)
	}
	if hops, err := s.Walk("h1", nil); err != nil || len(hops) != 0 {
		t.Errorf("the empty path walks %v, %v", hops, err)
	}
	for _, path := range []Path{{"b"}, {"a", "c"}, {"a", "x"}} {
		if _, err := s.Walk("h1", path); err == nil {
			t.Errorf("walked %v from h1", path)
		}
	}
}

func TestSubstrateDefaults(t *testing.T) {
	l := SubstrateLink{Capacity: 10 * Mbit}
	if l.Leasable() != 10*Mbit || l.WireMTU() != 1500 {
		t.Errorf("defaults: leasable %s, MTU %d", l.Leasable(), l.WireMTU())
	}
	l.Share, l.MTU = 20, 9000
	if l.Leasable() != 2*Mbit || l.WireMTU() != 9000 {
		t.Errorf("stated: leasable %s, MTU %d", l.Leasable(), l.WireMTU())
	}
}
