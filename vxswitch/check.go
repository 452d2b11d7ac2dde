package vxswitch

import (
	"fmt"

	"sublet/vnet"
)

// Defaults of Config.
const (
	DefaultMaxFrame    vnet.Bytes = 1514
	DefaultMaxSwitches int        = 64
)

// check fills in defaults and says what is wrong with c.
func (c *Config) check() error {
	if c.MaxFrame == 0 {
		c.MaxFrame = DefaultMaxFrame
	}
	if c.MaxSwitches == 0 {
		c.MaxSwitches = DefaultMaxSwitches
	}
	if n := len(c.Ports); n < 1 || n > MaxPorts {
		return fmt.Errorf("a switch of %d ports: from 1 to %d are possible", n, MaxPorts)
	}
	if c.MaxFrame < 1 || c.MaxFrame > 1<<20 || c.MaxSwitches < 1 || c.MaxSwitches > 1<<16 {
		return fmt.Errorf("frames of at most %d bytes and %d switches: 1 to 1048576 and 1 to 65536 are possible", c.MaxFrame, c.MaxSwitches)
	}
	if c.Crosspoint < 0 || c.Crosspoint > 1<<40 {
		return fmt.Errorf("crosspoint memory of %d bytes: from 0 to 1 TiB is possible", c.Crosspoint)
	}
	for i := range c.Ports {
		if err := c.Ports[i].check(i); err != nil {
			return err
		}
	}
	return nil
}

func (p PhysicalPort) check(i int) error {
	if !sane(p.In) || !sane(p.Out) {
		return fmt.Errorf("physical port %d of %v in and %v out: rates go from 1 bit/s to 10 Tbit/s", i, p.In, p.Out)
	}
	if p.Scheduler == nil {
		return fmt.Errorf("physical port %d has no scheduler: name one, for example drr", i)
	}
	return nil
}

// sane bounds rates so that times and sums do not overflow.
func sane(r vnet.Rate) bool { return r >= 1 && r <= 10_000*vnet.Gbit }

// check says what is wrong with v on a switch of c.
func (v *Virtual) check(c *Config) error {
	if err := v.checkShape(); err != nil {
		return fmt.Errorf("virtual switch %q: %w", v.Name, err)
	}
	seen := map[int]int{}
	for i, p := range v.Ports {
		if p.Physical < 0 {
			continue
		}
		if err := p.check(c); err != nil {
			return fmt.Errorf("virtual switch %q, port %d: %w", v.Name, i, err)
		}
		if j, ok := seen[p.Physical]; ok {
			return fmt.Errorf("virtual switch %q: ports %d and %d are both on physical port %d: one is possible", v.Name, j, i, p.Physical)
		}
		seen[p.Physical] = i
	}
	return v.checkCrosspoints(c)
}

func (v *Virtual) checkShape() error {
	n := len(v.Ports)
	switch {
	case v.Name == "":
		return fmt.Errorf("it has no name")
	case n < 1 || n > MaxPorts:
		return fmt.Errorf("%d ports: from 1 to %d are possible", n, MaxPorts)
	case v.Reach != nil && !square(v.Reach, n):
		return fmt.Errorf("the forwarding matrix is not %d by %d", n, n)
	case v.Crosspoints != nil && !square(v.Crosspoints, n):
		return fmt.Errorf("the crosspoints are not %d by %d", n, n)
	case v.until() <= v.From:
		return fmt.Errorf("its lifetime ends at %d ns, not after its start at %d ns", v.Until, v.From)
	}
	return nil
}

func square[T any](m [][]T, n int) bool {
	for _, row := range m {
		if len(row) != n {
			return false
		}
	}
	return len(m) == n
}

func (p Port) check(c *Config) error {
	switch {
	case p.Physical >= len(c.Ports):
		return fmt.Errorf("no physical port %d: the switch has ports 0 to %d", p.Physical, len(c.Ports)-1)
	case !sane(p.In) || !sane(p.Out):
		return fmt.Errorf("%v in and %v out: rates go from 1 bit/s to 10 Tbit/s", p.In, p.Out)
	case p.Scheduler == nil:
		return fmt.Errorf("no scheduler: name one, for example drr")
	case p.Priority < 0 || p.Priority >= MaxPriority:
		return fmt.Errorf("priority %d: from 0 to %d are possible", p.Priority, MaxPriority-1)
	case !small(p.Quantum) || !small(p.InBurst) || !small(p.OutBurst):
		return fmt.Errorf("a quantum of %d, bursts of %d and %d bytes: from 0 to 1 GiB are possible", p.Quantum, p.InBurst, p.OutBurst)
	}
	return nil
}

func small(b vnet.Bytes) bool { return b >= 0 && b <= vnet.GiB }

func (v *Virtual) checkCrosspoints(c *Config) error {
	if v.Crosspoints == nil {
		return v.Buffer.check(v.Name, "every crosspoint")
	}
	for in := range v.Crosspoints {
		for out, x := range v.Crosspoints[in] {
			if err := x.check(v.Name, fmt.Sprintf("crosspoint %d-%d", in, out)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x Crosspoint) check(name, where string) error {
	switch {
	case x.Size < 0 || x.Size > 1<<40:
		return fmt.Errorf("virtual switch %q, %s: a buffer of %d bytes: from 0 to 1 TiB is possible", name, where, x.Size)
	case !(x.Lend >= 0 && x.Lend <= 1):
		return fmt.Errorf("virtual switch %q, %s: lends %v of its buffer: from 0 to 1 is possible", name, where, x.Lend)
	case x.Priority < 0 || x.Priority >= MaxPriority:
		return fmt.Errorf("virtual switch %q, %s: priority %d: from 0 to %d are possible", name, where, x.Priority, MaxPriority-1)
	case !small(x.Quantum):
		return fmt.Errorf("virtual switch %q, %s: a quantum of %d bytes: from 0 to 1 GiB is possible", name, where, x.Quantum)
	}
	return nil
}

func (v *Virtual) until() Time {
	if v.Until == 0 {
		return Forever
	}
	return v.Until
}

// crosspoint is what v wants at (in, out).
func (v *Virtual) crosspoint(in, out int) Crosspoint {
	if v.Crosspoints != nil {
		return v.Crosspoints[in][out]
	}
	return v.Buffer
}

// reaches is f_ij^k.
func (v *Virtual) reaches(in, out int) bool { return v.Reach == nil || v.Reach[in][out] }
