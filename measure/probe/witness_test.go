package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// Figures that the links cannot have carried are not believed.
func TestWitness(t *testing.T) {
	there, back := LinkDirection{"l", "a"}, LinkDirection{"l", "b"}
	measured := func() *check {
		c := &check{opt: Options{Duration: 3 * time.Second}, trials: newTrials([]Target{
			{Link: "l", From: "a", To: "b", Min: vnet.Mbit, Max: vnet.Mbit, Alloc: vnet.Mbit},
			{Link: "l", From: "b", To: "a", Min: vnet.Mbit, Max: vnet.Mbit, Alloc: vnet.Mbit},
		})}
		for _, trial := range c.trials {
			trial.link.TCP, trial.link.UDP = vnet.Mbit, vnet.Mbit
			trial.link.TCPPayload, trial.link.UDPPayload = 960_000, 970_000
			trial.arrived.Payload = 330_000
		}
		return c
	}
	claimed := uint64((960_000+970_000)/8*3 + 330_000)
	for name, k := range map[string]struct {
		before, after map[LinkDirection]uint64
		want          [2]bool
	}{
		"all delivered":              {map[LinkDirection]uint64{there: 5, back: 0}, map[LinkDirection]uint64{there: 6 + claimed, back: claimed}, [2]bool{true, true}},
		"one direction carried less": {map[LinkDirection]uint64{there: 5, back: 0}, map[LinkDirection]uint64{there: 6 + claimed, back: claimed - 1}, [2]bool{true, false}},
		"nothing was carried":        {map[LinkDirection]uint64{there: 7, back: 7}, map[LinkDirection]uint64{there: 7, back: 7}, [2]bool{false, false}},
		"built anew meanwhile":       {map[LinkDirection]uint64{there: claimed, back: claimed}, map[LinkDirection]uint64{there: 9, back: 9}, [2]bool{true, true}},
		"of a link nobody knows":     {nil, nil, [2]bool{true, true}},
	} {
		c := measured()
		c.witness(k.before, k.after)
		for i, trial := range c.trials {
			v := trial.verdict(c.opt.scope())
			if v.OK != k.want[i] || !v.OK && !strings.Contains(v.Why, "forges") {
				t.Errorf("%s: %s to %s: %t, %s", name, v.From, v.To, v.OK, v.Why)
			}
		}
	}
	c := measured()
	c.opt.Carried = func(context.Context) (map[LinkDirection]uint64, error) { return nil, errors.New("no agent") }
	c.carried(context.Background())
	if v := c.trials[0].verdict(c.opt.scope()); v.OK || !strings.Contains(v.Why, "no agent") {
		t.Errorf("without counters: %t, %s", v.OK, v.Why)
	}
}
