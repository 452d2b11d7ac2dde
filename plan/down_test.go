package plan

import (
	"slices"
	"testing"

	"sublet/vnet"
)

// TestWhoIsNotReachedOverALinkThatIsDown: OSPF and planned routes go another way; whom no way leads to is not asked.
func TestWhoIsNotReachedOverALinkThatIsDown(t *testing.T) {
	for _, c := range []struct {
		protocol vnet.Protocol
		down     []string
		cut      []string // who reach nobody else, or only each other
		pairs    int
	}{
		{vnet.ProtocolOSPF, nil, nil, 30},
		{vnet.ProtocolOSPF, []string{"r0r1"}, nil, 30},
		{vnet.ProtocolOSPF, []string{"r0r1", "r2r0"}, []string{"r0", "n0"}, 2 + 12},
		{vnet.ProtocolOSPF, []string{"r0n0"}, []string{"n0"}, 20},
		{vnet.ProtocolStatic, nil, nil, 30},
		{vnet.ProtocolStatic, []string{"r0r1"}, nil, 30},
		{vnet.ProtocolStatic, []string{"r0r1", "r2r0"}, []string{"r0", "n0"}, 2 + 12},
		{vnet.ProtocolStatic, []string{"r0n0"}, []string{"n0"}, 20},
	} {
		l := ring(3, c.protocol)
		for i, link := range l.Request.Links {
			l.Request.Links[i].Down = slices.Contains(c.down, link.Name)
		}
		got := reachedIn(t, l)
		if len(got) != c.pairs {
			t.Errorf("%s without %v: %d pairs, want %d: %v", c.protocol, c.down, len(got), c.pairs, got)
		}
		for _, pair := range got {
			from, to := pair[:2], pair[3:]
			if slices.Contains(c.cut, from) != slices.Contains(c.cut, to) {
				t.Errorf("%s without %v: %s is asked", c.protocol, c.down, pair)
			}
		}
		hosts, err := Compile(substrate, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		for _, wire := range Of[VxLink](hosts["h2"]) {
			if is := slices.Contains(c.down, wire.Link); wire.Ends[0].Down != is || wire.Ends[1].Down != is {
				t.Errorf("without %v: %s", c.down, wire)
			}
		}
	}
}
