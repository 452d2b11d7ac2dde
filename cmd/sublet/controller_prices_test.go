package main

import (
	"maps"
	"strings"
	"testing"

	"sublet/lease/api"
	"sublet/openflow/controller"
	"sublet/vnet"
)

// Links that leave OpenFlow switches of the substrate cost more, the more of them leases
// have booked, and most when they are out of order.
func TestPricesOfLinks(t *testing.T) {
	sub := vnet.Substrate{OpenFlow: []vnet.OpenFlowSwitch{{Name: "s1", DatapathID: 0xa1, Ports: map[string]uint32{"free": 1, "half": 2, "full": 3, "down": 4}}}}
	at := func(name, from string, booked vnet.Rate, down bool) api.Link {
		return api.Link{Name: name, From: from, To: "other", Capacity: vnet.Gbit, Leasable: vnet.Gbit, Booked: booked, Down: down}
	}
	got := pricesOf(sub, []api.Link{
		at("free", "s1", 20*vnet.Mbit, false), at("half", "s1", 500*vnet.Mbit, false), at("full", "s1", vnet.Gbit, false), at("down", "s1", 0, true), at("half", "h1", 0, false),
	})
	want := map[controller.Outlet]uint32{}
	for port, price := range map[uint32]uint32{1: 10, 2: 50, 3: 100, 4: 1000} {
		want[controller.Outlet{DatapathID: 0xa1, Port: port}] = price
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
	if code, _, errs := sublet(t, "", "controller", "--app", "learning", "--leases"); code != 2 || !strings.Contains(errs, "--leases: it goes with --app paths") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
