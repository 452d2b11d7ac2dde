package vxlink

import (
	"context"
	"fmt"

	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Packets of a link over several paths whose order is kept are numbered where they
// enter, by the process that also carries frames of impaired links, and put back into
// order by it at the other end, in a device of that end:
//
//	node eth0 ==veth== l0a --[vxlink_port]--> i0a == process == i0a --[vxlink_port: by bytes]--> tunnels
//	tunnels --[vxlink_trunk]--> o0b == process == o0b --[vxlink_port]--> l0b ==veth== node eth0

// mergeOf is the place of the device where frames for a port are put into order.
func mergeOf(at place) place { return place{at.lease, at.index, at.end + 4} }

// isMerge says whether a place is one.
func (at place) isMerge() bool { return at.index != trunkIndex && at.end >= 4 }

// mergeDevice names the device.
func mergeDevice(l plan.VxLink, i int) string { return "o" + l.Device(i)[1:] }

// divides says whether frames that enter by an end are numbered there.
func divides(l plan.VxLink, i int) bool { return l.Stall > 0 && spreads(l, i) }

// merges says whether frames that leave by an end are put into order there.
func merges(l plan.VxLink, i int) bool {
	return l.Stall > 0 && l.Ends[1-i].Tunnel != nil && portOf(l.Ends[i]) != nil
}

// takesDetour says whether frames that enter by an end pass the process.
func takesDetour(l plan.VxLink, i int) bool { return impaired(l.Ends[i]) || divides(l, i) }

// merge returns the slot of the device that puts frames for an end into order, which
// is made; 0: they come in order.
func (w *work) merge(i int) (uint32, error) {
	e, at := w.link.Ends[i], mergeOf(placeOf(w.link, i))
	switch {
	case e.Tunnel != nil || e.Join != nil && !merges(w.link, i):
		return 0, nil
	case !merges(w.link, i):
		return 0, w.part.removeDetour(w.programs, at)
	case e.Join != nil && w.link.Standby: // what is beside it has the device, or there is none
		slot, _, err := w.part.find(w.programs, at)
		return slot, err
	}
	slot, err := w.part.slot(w.programs, at)
	if err != nil || e.Join != nil {
		return slot, err
	}
	record := identify(at)
	copy(record.Link[:], w.link.Link)
	if err := w.programs.setRecord(slot, record); err != nil {
		return slot, fmt.Errorf("write down where its order is kept: %w", err)
	}
	return slot, w.setMerge(i, slot)
}

// setMerge makes the device, and says how long frames wait there.
func (w *work) setMerge(i int, slot uint32) error {
	err := w.part.wires.Set(context.Background(), impair.Spec{
		Namespace: w.part.host.Path(plan.Fabric(w.link.Lease)), Device: mergeDevice(w.link, i), Index: number(slot),
		Terms: impair.Terms{Stall: w.link.Stall, Hold: mostHold}, // no more than comes in a stall waits
	})
	if err != nil {
		return err
	}
	if err := admit(w.inside, number(slot), w.programs.port); err != nil {
		return err
	}
	return w.inside.Do(kernel.UpLink(number(slot)).Uint32(iflaTxQueue, txQueue).String(iflaAlias, mark(w.link)))
}

// afterMerge is what becomes of frames that were put into order for an end's port.
func afterMerge(l plan.VxLink, i int, port, slot uint32) vxlinkEnd {
	if l.Ends[0].Down || l.Ends[1].Down {
		return vxlinkEnd{Action: vxlinkActionFWD_CLOSED}
	}
	return toPort(l.Ends[i], number(slot), port)
}

// mergeSlot reads the slot of an end's device; 0: it has none, or is not whole. Stall
// is what the process knows.
func (f *fabric) mergeSlot(l plan.VxLink, i int) (slot uint32, wire impair.Status) {
	l.Path = 0
	slot, found := f.slots[mergeOf(placeOf(l, i))]
	if !found {
		return 0, wire
	}
	wire, running := f.wires[number(slot)]
	d := f.devices[mergeDevice(l, i)]
	if !running || d.Kind != "tun" || d.Index != number(slot) || !d.Up || f.foreign[d.Index] || !f.admits(d.Index) {
		return 0, wire
	}
	return slot, wire
}
