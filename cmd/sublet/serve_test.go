package main

import (
	"net/netip"
	"slices"
	"testing"

	"sublet/vnet"
)

// A link is without ports when a host's end lacks one; a switch needs none.
func TestLinksWithoutPorts(t *testing.T) {
	right := vnet.Port{Interface: "eth0", Address: netip.MustParseAddr("192.0.2.1")}
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Switches: []string{"s"},
		Links: []vnet.SubstrateLink{
			{Name: "bare", Ends: [2]string{"h1", "h2"}},
			{Name: "half", Ends: [2]string{"h1", "h2"}, Ports: [2]vnet.Port{right}},
			{Name: "whole", Ends: [2]string{"h1", "h2"}, Ports: [2]vnet.Port{right, right}},
			{Name: "switched", Ends: [2]string{"h1", "s"}, Ports: [2]vnet.Port{right}},
			{Name: "nameless", Ends: [2]string{"s", "h1"}, Ports: [2]vnet.Port{{}, {Interface: "eth0"}}},
		},
	}
	if got := portless(sub); !slices.Equal(got, []string{"bare", "half", "nameless"}) {
		t.Errorf("without ports: %v", got)
	}
}
