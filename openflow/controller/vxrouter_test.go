package controller

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"sublet/openflow/of13"
)

func vlan(n uint64) []of13.Field { return []of13.Field{of13.Exact(of13.VLANVID, of13.VLANPresent|n)} }

// sliced is two routers on the same ports, which VLANs keep apart.
func sliced() Slicing {
	return Slicing{
		MaxEntries: 10, MaxMeters: 2,
		Links: []VxLink{{Name: "l1", Port: 2, Kbps: 10_000}, {Name: "l2", Port: 2, Kbps: 500}, {Name: "l3", Port: 1, Queue: 7}},
		Routers: []VxRouter{
			{Name: "r1", Ports: []uint32{1, 2}, Match: vlan(5), Routes: []Route{
				{To: netip.MustParsePrefix("10.1.0.0/16"), VxLink: "l1", Next: [6]byte{2, 0, 0, 0, 0, 9}},
				{To: netip.MustParsePrefix("10.0.0.0/8"), VxLink: "l3"},
			}},
			{Name: "r2", Ports: []uint32{1, 2}, Match: vlan(6), Active: true, Routes: []Route{{VxLink: "l2"}}},
		},
	}
}

// Every entry of a router matches its fields and one of its ports, leaves at one
// of them, and passes the meter or queue of its link.
func TestRoutersAreTranslated(t *testing.T) {
	made, err := sliced().Compile()
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Entries) != 5 || len(made.Meters) != 2 || made.Meters[0] != (Meter{firstMeter, 10_000, 1000}) || made.Meters[1] != (Meter{firstMeter + 1, 500, leastBurst}) {
		t.Fatalf("%d entries, meters %v", len(made.Entries), made.Meters)
	}
	drops, metered, queued := 0, 0, 0
	for _, e := range made.Entries {
		fields := make(map[of13.FieldID]of13.Field)
		for _, f := range e.Match.Fields {
			fields[f.ID] = f
		}
		if in := fields[of13.InPort].Value.Lo; in != 1 && in != 2 {
			t.Errorf("%+v has no port of its router", e)
		}
		if v := fields[of13.VLANVID].Value.Lo; v != of13.VLANPresent|5 && v != of13.VLANPresent|6 {
			t.Errorf("%+v has no VLAN", e)
		}
		if len(e.Instructions) == 0 {
			drops++
		}
		for _, i := range e.Instructions {
			if i.Type == of13.InstructionMeter {
				metered++
			}
			for _, a := range i.Actions {
				if a.Type == of13.ActionSetQueue && a.Number == 7 {
					queued++
				}
			}
		}
	}
	if drops != 2 || metered != 2 || queued != 1 {
		t.Errorf("%d entries drop, %d have meters, %d queues", drops, metered, queued)
	}
}

// What would take another router's packets, leave its ports or not fit is refused
// before anything is sent.
func TestRoutersInConflict(t *testing.T) {
	for _, c := range []struct {
		change   func(*Slicing)
		conflict bool
		want     string
	}{
		{func(s *Slicing) { s.Routers[1].Match = nil }, true, "both take packets of port 1"},
		{func(s *Slicing) { s.Routers[1].Match = vlan(5) }, true, "router r1 and router r2: both take packets"},
		{func(s *Slicing) { s.Routers[1].Name = "r1" }, true, "the same name"},
		{func(s *Slicing) { s.Routers[1].Routes[0].VxLink = "l1" }, true, "both use link l1"},
		{func(s *Slicing) { s.Routers[0].Routes[1].To = s.Routers[0].Routes[0].To }, true, "both take the same packets"},
		{func(s *Slicing) { s.Routers[0].Ports = []uint32{1} }, false, "leaves at port 2, which is none of its ports"},
		{func(s *Slicing) { s.Routers[0].Routes[0].VxLink = "l9" }, false, `no link "l9"`},
		{func(s *Slicing) { s.MaxEntries = 4 }, false, "need 7 entries, and the switch has 4"},
		{func(s *Slicing) { s.MaxMeters = 1 }, false, "need 2 meters, and the switch has 1"},
		{func(s *Slicing) { s.Routers[1].Routes[0].Match = []of13.Field{of13.Exact(of13.TCPDst, 80)} }, false, "tcp_dst needs a protocol"},
		{func(s *Slicing) { s.Routers[1].Routes[0].Match = vlan(7) }, false, "vlan_vid is another one already"},
		{func(s *Slicing) { s.Links[1].Name = "l1" }, false, "two links l1"},
		{func(s *Slicing) { s.Routers[1].Match = []of13.Field{of13.Exact(of13.InPort, 9)} }, true, "both take packets"},
		{func(s *Slicing) {
			s.Routers[0].Match = []of13.Field{of13.Exact(of13.InPort, 9)}
			s.Routers = s.Routers[:1]
		}, false, "leave in_port out"},
	} {
		s := sliced()
		c.change(&s)
		_, err := s.Compile()
		var conflict *ConflictError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &conflict) != c.conflict {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
