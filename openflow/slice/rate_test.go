package slice

import (
	"errors"
	"testing"

	"sublet/openflow/of13"
)

// A slice with a rate has a burst of it at once, by packets that come in and by those of
// its controllers; another slice, and one without a rate, has all. The meter is none of
// the controllers', outlives the process, and goes with the rate.
func TestRates(t *testing.T) {
	g, memory := newGround(t), newRemembered()
	g.begin(memory)
	alice, bob := newPeer(t), newPeer(t)
	const rate, burst = 1_000_000, 120_000
	limited, free := sliceOf("alice", alice, 2, 1, 2), sliceOf("bob", bob, 3, 3, 4)
	limited.Rate = rate
	g.set(limited, free)
	alice.accept()
	bob.accept()
	alice.does(&of13.MeterMod{Flags: of13.MeterPKTPS, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 1000}}})
	alice.by7(2)
	bob.by7(4)
	one := frame(t, 0, 1)
	most := burst / (8 * len(one))
	passes := func(port uint32) (n int) {
		for range 2 * most {
			n += len(g.receive(port, one))
		}
		return n
	}
	if n := passes(1); n < most-1 || n > most {
		t.Errorf("%d packets of alice's passed at once, of %d in a burst", n, most)
	}
	if n := passes(3); n != 2*most {
		t.Errorf("%d of %d packets of bob's passed", n, 2*most)
	}
	if m := alice.asks(of13.MultipartMeterConfig).MeterConfigs; len(m) != 1 || m[0].Meter != 1 {
		t.Errorf("alice sees meters %+v", m)
	}
	out := &of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Data: make([]byte, 5000), Actions: []of13.Action{of13.Output(1), of13.Output(2)}}
	alice.does(out)
	if _, err := alice.ask(out); !errors.Is(err, of13.BadRequestEPerm) {
		t.Errorf("more packets than its rate: %v", err)
	}
	alice.does(&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll})
	g.end()

	g.begin(memory)
	g.set(limited, free)
	alice.accept()
	bob.accept()
	if _, _, meters := g.tables.Held(); meters != 1 || len(alice.asks(of13.MultipartMeterConfig).MeterConfigs) != 0 {
		t.Errorf("%d meters at the switch", meters)
	}
	if n := passes(1); n > 1 {
		t.Errorf("%d packets of alice's passed a meter that was used up", n)
	}
	limited.Rate = 0
	g.set(limited, free)
	if n := passes(1); n != 2*most {
		t.Errorf("%d of %d packets passed without a rate", n, 2*most)
	}
	if _, _, meters := g.tables.Held(); meters != 0 || len(memory.meters) != 0 {
		t.Errorf("%d meters at the switch, remembered %v", meters, memory.meters)
	}
	limited.Rate = 500
	if err := g.local.Set([]Slice{limited}); err == nil {
		t.Error("a rate that no meter has was taken")
	}
}
