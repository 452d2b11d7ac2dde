package vnet

import (
	"math"
	"strings"
	"testing"
	"time"
)

// What a kernel spends is what packets were measured to cost, inside a host and at ends
// of tunnels; of a host that nobody measured, what one that carries the default takes.
func TestKernelTime(t *testing.T) {
	m := Measurement{InsideCost: PacketCost{Fixed: 1000, PerByte: 0.5, Error: 0.1}, TunnelCost: PacketCost{Fixed: 2000, Error: 0.25}}
	if got := m.KernelTime(true, 1000, 900_000); got != 1450*time.Microsecond {
		t.Errorf("inside the host it spends %s", got)
	}
	if got := m.KernelTime(false, 1000, 900_000); got != 2*time.Millisecond {
		t.Errorf("at an end of a tunnel it spends %s", got)
	}
	if m.KernelError() != 0.25 {
		t.Errorf("it may be off by %g", m.KernelError())
	}
	var none Measurement
	if got := none.KernelTime(true, uint64(DefaultHostCapacity)/8/900, 0); (got - time.Second).Abs() > time.Millisecond {
		t.Errorf("the default capacity takes %s of a second", got)
	}
	if none.KernelError() != 1 {
		t.Errorf("what nobody measured may be off by %g", none.KernelError())
	}
	for _, bad := range []PacketCost{{Fixed: -1}, {PerByte: math.Inf(1)}, {Fixed: math.NaN()}, {Fixed: 1e9}} {
		if bad.check("inside_cost") == nil {
			t.Errorf("%+v is taken for a cost", bad)
		}
	}
}

// What kernels spent is part of what was used, at its price, and of no quote.
func TestKernelsAreCharged(t *testing.T) {
	a := &Account{Prices: Prices{Resource: 1, Bandwidth: 1, Kernel: 4}, Used: Cost{Resource: 10, Total: 10}}
	b := a.Charged(1500 * time.Millisecond).Charged(500 * time.Millisecond)
	if b.Used.Kernel != 2 || b.Used.Total != 18 || a.Used.Kernel != 0 {
		t.Errorf("charged 2 s at 4: %+v, and before %+v", b.Used, a.Used)
	}
	if err := (Prices{Kernel: -1}).Check(); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("a price of -1: %v", err)
	}
}
