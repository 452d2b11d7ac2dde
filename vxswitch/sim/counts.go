package sim

import "time"

// counts is what is counted of a whole run: by virtual switch and output, by
// virtual switch and input, and what only the whole can say, its most bytes.
type counts struct {
	ports           int
	outputs, inputs []side // [virtual switch * ports + port - 1]
	switches        []tally
	total           tally
}

// side is one side of a port of a virtual switch, in two cache lines.
type side struct {
	tally
	delays histogram // without counts until something leaves
}

func newCounts(s *Scenario) counts {
	n := len(s.VirtualSwitches) * s.Switch.Ports
	return counts{
		ports: s.Switch.Ports, outputs: make([]side, n), inputs: make([]side, n),
		switches: make([]tally, len(s.VirtualSwitches)),
	}
}

// sides of a packet: its output and its input.
func (c *counts) sides(a *Arrival) (output, input *side) {
	base := int(a.Switch)*c.ports - 1
	return &c.outputs[base+int(a.Output)], &c.inputs[base+int(a.Input)]
}

// arrived counts a packet that came: offered if it counts, then either in the
// buffers or dropped. It is came on both sides, and so is delivered went.
func (c *counts) arrived(a *Arrival, counted, queued bool) {
	output, input := c.sides(a)
	output.came(a.Size, counted, queued)
	input.came(a.Size, counted, queued)
	if queued {
		c.enter(a.Switch, a.Size)
	}
}

func (c *counts) enter(of, size int32) {
	c.switches[of].enter(size)
	c.total.enter(size)
}

func (c *counts) leave(of, size int32) {
	c.switches[of].leave(size)
	c.total.leave(size)
}

// dropped counts a packet that is dropped out of a buffer.
func (c *counts) dropped(a *Arrival, counted bool) {
	output, input := c.sides(a)
	for _, s := range [2]*side{output, input} {
		s.leave(a.Size)
		if counted {
			s.dropped.add(a.Size)
		}
	}
	c.leave(a.Switch, a.Size)
}

func (c *counts) delivered(d *Departure, counted bool) {
	output, input := c.sides(&d.Arrival)
	output.went(d.Size, d.Delay(), counted, fineOutput)
	input.went(d.Size, d.Delay(), counted, fineInput)
	c.leave(d.Switch, d.Size)
}

func (s *side) came(size int32, counted, queued bool) {
	if counted {
		s.offered.add(size)
	}
	if queued {
		s.enter(size)
	} else if counted {
		s.dropped.add(size)
	}
}

// went counts a packet that leaves the buffers, of the warm-up too.
func (s *side) went(size int32, delay time.Duration, counted bool, fine uint) {
	s.leave(size)
	if counted {
		s.deliver(size, delay, fine)
	}
}

func (s *side) deliver(size int32, delay time.Duration, fine uint) {
	if s.delays.counts == nil {
		s.delays = *newHistogram(fine)
	}
	s.tally.deliver(size, delay)
	s.delays.add(delay)
}
