package embed

import (
	"fmt"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Devices (vnet.Device) are looked at as ways out are: their nodes stand where the
// device is, and each device is of one node at a time.

func hasDevice(n vnet.VirtualNode) bool { return n.Device != "" }

// deviceKey names a device in the calendar.
func deviceKey(name string) string { return rate.Element{Link: rate.DevicePrefix + name}.String() }

// freeDevices says whether nobody else has the devices of a request in all of
// their time; the error is *Infeasible.
func freeDevices(cal *calendar.Calendar, spans []span) error {
	for _, at := range spans {
		for _, n := range at.topology.Nodes {
			if !hasDevice(n) || cal.Residual(deviceKey(n.Device), 1, at.window) >= 1 {
				continue
			}
			text := fmt.Sprintf("device %s is taken in this window%s", n.Device, freeFrom(cal, n.Device, at.window))
			return &Infeasible{Reasons: []string{text}, Nodes: []string{n.Name}}
		}
	}
	return nil
}

// freeFrom says from when on nobody has a device for as long as a window lasts.
func freeFrom(cal *calendar.Calendar, name string, w vnet.Window) string {
	steps := cal.Steps(deviceKey(name), vnet.Window{Start: w.Start})
	for i, s := range steps {
		if s.Booked > 0 {
			continue
		}
		if i+1 == len(steps) || !w.End.IsZero() && !s.At.Add(w.End.Sub(w.Start)).After(steps[i+1].At) {
			return ", and is free from " + s.At.UTC().Format(time.RFC3339) + " on"
		}
	}
	return " and has no end of that"
}

// bookDevices lists the devices that a mapping takes in a span. An error says what
// of them the substrate does not have.
func (e *Embedder) bookDevices(at span, m vnet.Mapping) (list []calendar.Booking, err error) {
	for _, n := range at.topology.Nodes {
		if !hasDevice(n) {
			continue
		}
		device, ok := e.sub.DeviceOf(n.Device)
		switch {
		case !ok:
			return nil, fmt.Errorf("device %s would be gone", n.Device)
		case m.Nodes[n.Name] != device.Host:
			return nil, fmt.Errorf("node %s is on %s, and device %s is on %s", n.Name, m.Nodes[n.Name], n.Device, device.Host)
		}
		list = append(list, calendar.Booking{Key: deviceKey(n.Device), Amount: 1, Window: at.window})
	}
	return list, nil
}
