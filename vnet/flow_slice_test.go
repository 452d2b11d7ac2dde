package vnet

import (
	"net/netip"
	"strings"
	"testing"
)

func slicedSwitch(list ...FlowSlice) VirtualSwitch {
	return VirtualSwitch{Name: "s1", Kind: SwitchOpenFlow, OpenFlowOptions: OpenFlowOptions{FlowSlices: list}}
}

// Two slices have no packet in common, and together no more than the switch.
func TestFlowSlices(t *testing.T) {
	slice := func(name string, links []string, match SwitchRow) FlowSlice {
		return FlowSlice{Name: name, Controllers: []string{"tcp:10.0.0.1:6653"}, Links: links, Match: match}
	}
	prefix := netip.MustParsePrefix
	ten, eleven := uint8(10), uint8(11)
	for _, c := range []struct {
		a, b SwitchRow
		want string
	}{
		{SwitchRow{VLAN: 1}, SwitchRow{VLAN: 2}, ""},
		{SwitchRow{VLAN: 1}, SwitchRow{Src: prefix("10.0.0.0/8")}, "some packets are also of slice"},
		{SwitchRow{Src: prefix("10.0.0.0/8")}, SwitchRow{Src: prefix("10.1.0.0/16")}, "some packets are also of slice"},
		{SwitchRow{Src: prefix("10.0.0.0/8")}, SwitchRow{Src: prefix("fd00::/8")}, ""},
		{SwitchRow{Src: prefix("10.0.0.0/8"), DSCP: &ten}, SwitchRow{Src: prefix("10.0.0.0/8"), DSCP: &eleven}, ""},
		{SwitchRow{Protocol: "icmp"}, SwitchRow{Protocol: "icmp6"}, ""},
		{SwitchRow{DSCP: &ten}, SwitchRow{VLAN: 1}, "are of IPv4 or of IPv6"},
		{SwitchRow{Src: prefix("10.0.0.0/8"), Dst: prefix("fd00::/8")}, SwitchRow{VLAN: 1}, "no packet has addresses of IPv4 and IPv6"},
		{SwitchRow{VLAN: 1, To: []string{"la"}}, SwitchRow{VLAN: 2}, "where packets go its controller says"},
	} {
		err := slicedSwitch(slice("a", nil, c.a), slice("b", nil, c.b)).openFlow("switches[0]")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %+v: %v, want %q", c.a, c.b, err, c.want)
		}
	}
	apart := []FlowSlice{slice("a", []string{"la"}, SwitchRow{}), slice("b", []string{"lb"}, SwitchRow{})}
	s := slicedSwitch(apart...)
	if err := s.openFlow("s"); err != nil {
		t.Fatal(err)
	}
	if o := s.OpenFlow(); o.Tables != 2*DefaultTables || o.Entries != 2*DefaultEntries || o.Groups != 2*DefaultGroups || o.Meters != 2*DefaultMeters {
		t.Errorf("together they have %+v", o)
	}
	for want, change := range map[string]func(*VirtualSwitch){
		"together they have 20000 entries":     func(s *VirtualSwitch) { s.Entries = 15000 },
		"together they have 16 tables":         func(s *VirtualSwitch) { s.Tables = 12 },
		"slices have controllers of their own": func(s *VirtualSwitch) { s.Controllers = []string{"tcp:10.0.0.1:1"} },
		"is no learning switch":                func(s *VirtualSwitch) { s.Fail = "standalone" },
		"name each slice once":                 func(s *VirtualSwitch) { s.FlowSlices[1].Name = "a" },
		"there is one": func(s *VirtualSwitch) {
			s.FlowSlices[0] = FlowSlice{Name: "a", Controllers: s.FlowSlices[0].Controllers, Default: true}
			s.FlowSlices[1] = s.FlowSlices[0]
			s.FlowSlices[1].Name = "b"
		},
		"listens there": func(s *VirtualSwitch) {
			s.FlowSlices[0].Controllers = []string{"ptcp:1"}
			s.FlowSlices[1].Controllers = []string{"ptcp:1"}
		},
		"needs a controller":       func(s *VirtualSwitch) { s.FlowSlices[1].Controllers = nil },
		"is no controller":         func(s *VirtualSwitch) { s.FlowSlices[1].Controllers = []string{"udp:1"} },
		"is not between 1 and 254": func(s *VirtualSwitch) { s.FlowSlices[1].Tables = 300 },
	} {
		s := slicedSwitch(apart[0], apart[1])
		s.FlowSlices = append([]FlowSlice(nil), apart...)
		if change(&s); s.openFlow("s") == nil || !strings.Contains(s.openFlow("s").Error(), want) {
			t.Errorf("%v, want %q", s.openFlow("s"), want)
		}
	}
}
