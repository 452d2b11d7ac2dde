package vxlink

import (
	"context"
	"fmt"

	"sublet/datapath/bpf"
	"sublet/datapath/impair"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Frames that enter by an impaired port leave by a TAP device of the fabric, its
// detour, and come in by that again, lost, late or damaged. So the detour has a
// slot of its own, at which they go on as without impairment:
//
//	node eth0 ==veth== l0a --[vxlink_port]--> i0a == process == i0a --[vxlink_port]--> the other end

// detourOf is the place of the detour of a port.
func detourOf(at place) place { return place{at.lease, at.index, at.end + 2} }

// isDetour says whether a place is one.
func (at place) isDetour() bool { return at.index != trunkIndex && at.end >= 2 }

// detourDevice names the device.
func detourDevice(l plan.VxLink, i int) string { return "i" + l.Device(i)[1:] }

// impaired says whether an end's frames take a detour.
func impaired(e plan.End) bool { return e.Impair != (vnet.Impairment{}) }

// detour returns the slot at which frames that enter by an end go on: that of
// its detour, which is made, or the end's own.
func (w *work) detour(i int, slot uint32) (uint32, error) {
	l := w.link
	if !takesDetour(l, i) {
		return slot, nil
	}
	outlet, err := w.part.slot(w.programs, detourOf(placeOf(l, i)))
	if err != nil || l.Ends[i].Join != nil {
		return outlet, err
	}
	record := identify(detourOf(placeOf(l, i)))
	copy(record.Link[:], l.Link)
	if err := w.programs.setRecord(outlet, record); err != nil {
		return outlet, fmt.Errorf("write down its detour: %w", err)
	}
	return outlet, w.setWire(i, outlet)
}

// setWire makes a detour's device, and sets what is done there.
func (w *work) setWire(i int, outlet uint32) error {
	err := w.part.wires.Set(context.Background(), impair.Spec{
		Namespace: w.part.host.Path(plan.Fabric(w.link.Lease)), Device: detourDevice(w.link, i), Index: number(outlet),
		Terms: impair.Terms{Impairment: w.link.Ends[i].Impair, Hold: hold(w.link, i), Number: divides(w.link, i)},
	})
	if err != nil {
		return err
	}
	if err := admit(w.inside, number(outlet), w.programs.port); err != nil {
		return err
	}
	return w.inside.Do(kernel.UpLink(number(outlet)).Uint32(iflaTxQueue, txQueue).String(iflaAlias, mark(w.link)))
}

// Frames that wait for the process: a large rate's for as long as that may wait
// for a processor.
const txQueue = 8192

// Bounds of what a wire holds: what the link's rate, which comes after it, brings
// in the longest usual delay, twice. Links without a rate have the most. All of
// a host together have less than 64 times that (datapath/impair).
const (
	leastHold  = 1 << 20
	mostHold   = 64 << 20
	deviations = 4 // of the delay, above its mean
)

// hold is the most bytes that the wire of an end holds: also those that will go
// by the link's other paths.
func hold(l plan.VxLink, i int) int {
	rate := l.Ends[1-i].Rate
	if rate == 0 {
		return mostHold
	}
	if l.Units > 0 {
		rate = rate * vnet.ShareUnits / vnet.Rate(l.Units)
	}
	im := l.Ends[i].Impair
	longest := (im.Delay + deviations*im.Jitter).Seconds()
	return min(leastHold+int(2*longest*float64(rate.BytesPerSecond())), mostHold)
}

// goRound is what becomes of frames that enter by a port with a detour.
func goRound(slot, outlet uint32) vxlinkEnd {
	return vxlinkEnd{From: uint32(number(slot)), Device: uint32(number(outlet)), Action: vxlinkActionFWD_QUEUE}
}

// goStraight removes the detour of a port that has none any more.
func (w *work) goStraight(i int) error {
	if w.link.Ends[i].Join != nil || takesDetour(w.link, i) {
		return nil
	}
	return w.part.removeDetour(w.programs, detourOf(placeOf(w.link, i)))
}

// removeDetour removes a detour, if there is one.
func (p *Part) removeDetour(r *programs, at place) error {
	slot, ok, err := p.find(r, at)
	if err != nil || !ok {
		return err
	}
	if err := p.wires.Delete(context.Background(), number(slot)); err != nil {
		return fmt.Errorf("remove the detour of its frames: %w", err)
	}
	record, err := r.read(slot)
	if err != nil {
		return err
	}
	return p.forget(r, slot, record)
}

// impairment reads what is done to the frames of a port, and at which slot they
// go on; ok: what is there of a detour is whole.
func (f *fabric) impairment(l plan.VxLink, i int, slot uint32) (is vnet.Impairment, outlet uint32, ok bool) {
	l.Path = 0
	outlet, found := f.slots[detourOf(placeOf(l, i))]
	if !found {
		return is, slot, true
	}
	wire, running := f.wires[number(outlet)]
	d := f.devices[detourDevice(l, i)]
	ok = running && d.Kind == "tun" && d.Index == number(outlet) && d.Up && !f.foreign[d.Index] && f.admits(d.Index)
	return wire.Impairment, outlet, ok
}

// readWires reads the wires of this host's detours, and ends all others.
func (s *survey) readWires(ctx context.Context) error {
	s.wires = make(map[int]impair.Status)
	for _, wire := range s.part.wires.List(ctx) {
		s.wires[wire.Index] = wire
	}
	wanted := make(map[int]bool)
	for at, slot := range s.slots {
		wanted[number(slot)] = at.isDetour()
	}
	return s.part.wires.Keep(ctx, func(index int) bool { return wanted[index] })
}

// wireCounts are those of impaired ports.
func (p *Part) wireCounts(ctx context.Context, records map[uint32]vxlinkRecord) map[place]impair.Counts {
	counts := make(map[place]impair.Counts)
	for _, wire := range p.wires.List(ctx) {
		switch at := records[uint32(wire.Index-bpf.FirstDevice)].place(); {
		case at.isMerge(): // what it drops came by the tunnel
			counts[place{at.lease, at.index, 1 - (at.end - 4)}] = wire.Counts
		case at.isDetour():
			counts[place{at.lease, at.index, at.end - 2}] = wire.Counts
		}
	}
	return counts
}
