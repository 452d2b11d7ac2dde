package pipeline

import (
	"fmt"
	"testing"

	"sublet/openflow/of13"
)

// Packets that exceed a meter wait for its rate, in their order and no longer than they
// may, and are counted where they go on; others are dropped.
func TestPacketsWaitAtMeters(t *testing.T) {
	s, r := newSwitch(t)
	s.config.Hold = second / 2
	must(t, s, 0, meterMod(of13.MeterMod{Meter: 1, Flags: of13.MeterPKTPS | of13.MeterBurst, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 10, Burst: 2}}}),
		flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, apply(of13.SetField(of13.Exact(of13.EthDst, 7)))...)), flow(1, 1, apply(of13.Output(2))))
	s.tables[0].oldest.does.table = 1
	frame := udp(t, 40)
	for n := range byte(10) {
		frame[6] = n
		s.Receive(second, 1, frame)
	}
	var order []byte
	for now := second; now <= 2*second; now += second / 20 {
		s.Release(now)
		for _, f := range r.frames {
			order = append(order, f[6])
		}
		if r.frames = nil; now == second+second/10 && len(order) != 3 {
			t.Errorf("%d packets after 100 ms", len(order))
		}
	}
	if fmt.Sprint(order) != "[0 1 2 3 4 5 6]" {
		t.Errorf("order %v", order)
	}
	m := s.meters[1].stats(0, 0)
	if m.In.Packets != 10 || m.Bands[0].Packets != 3 || s.tables[1].oldest.Packets != 7 || s.holding.bytes != 0 {
		t.Errorf("meter %+v, entry behind it %d, %d bytes wait", m, s.tables[1].oldest.Packets, s.holding.bytes)
	}
}

// A burst beyond what may wait is dropped, whatever time it might wait; a meter that
// remarks has none wait.
func TestWaitingPacketsAreBounded(t *testing.T) {
	s, r := newSwitch(t)
	s.config.Hold = second
	must(t, s, 0, meterMod(of13.MeterMod{Meter: 1, Flags: of13.MeterPKTPS | of13.MeterBurst, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 1e6, Burst: 1}}}),
		meterMod(of13.MeterMod{Meter: 2, Flags: of13.MeterPKTPS | of13.MeterBurst, Bands: []of13.Band{{Kind: of13.BandDSCPRemark, Rate: 1, Burst: 1}}}),
		flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, apply(of13.Output(2))...), of13.Exact(of13.InPort, 1)),
		flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 2}}, apply(of13.Output(3))...), of13.Exact(of13.InPort, 2)))
	for range 10 * maxHeld / 2048 {
		s.Receive(second, 1, udp(t, 40))
	}
	if s.holding.bytes > maxHeld || s.Waiting() < 1000 {
		t.Errorf("%d packets of %d bytes wait", s.Waiting(), s.holding.bytes)
	}
	waiting := s.Waiting()
	r.frames = nil
	for range 3 {
		s.Receive(second, 2, udp(t, 40))
	}
	if len(r.frames) != 3 || s.Waiting() != waiting {
		t.Errorf("%d remarked packets left, %d wait", len(r.frames), s.Waiting()-waiting)
	}
}
