package embed

import (
	"strings"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// A device is of one network at a time: another is told when it is free, and gets
// it then. Its node stands where the device is.
func TestDevicesAreBooked(t *testing.T) {
	sub, cal := waySubstrate(), calendar.New()
	sub.NAT = nil
	sub.Devices = []vnet.Device{{Name: "tester", Host: "h2", Interface: "eth5"}}
	request := func(network, device string) vnet.Request {
		r := wayRequest(network, vnet.Mbit)
		r.Routers = nil
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: "out", Device: device})
		return r
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	window := vnet.Window{Start: noon, End: noon.Add(time.Hour)}
	admit := func(r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
		m, err := embedOn(sub, cal, r, w)
		if err != nil {
			return m, err
		}
		bookings, err := bookingsOn(sub, r, w, m)
		if err != nil {
			t.Fatal(err)
		}
		return m, cal.Book(bookings...)
	}
	first, err := admit(request("first", "tester"), window)
	if err != nil || first.Nodes["out"] != "h2" {
		t.Fatalf("%+v, %v", first, err)
	}
	refused(t, "device tester is taken in this window, and is free from 2030-01-01T13:00:00Z on")(admit(request("second", "tester"), window))
	refused(t, `the operator offers no device "oven"`)(admit(request("third", "oven"), window))
	later := vnet.Window{Start: window.End, End: window.End.Add(time.Hour)}
	if _, err := admit(request("second", "tester"), later); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	sub.Devices = nil
	if _, err := bookingsOn(sub, request("first", "tester"), window, first); err == nil || !strings.Contains(err.Error(), "device tester would be gone") {
		t.Errorf("a substrate without it: %v", err)
	}
}
