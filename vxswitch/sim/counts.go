package sim

// counts is what is counted of a whole run: by virtual switch and output, by
// virtual switch and input, and what only the whole can say, its most bytes.
type counts struct {
	ports           int
	outputs, inputs []side // [virtual switch * ports + port - 1]
	switches        []tally
	total           tally
}

// side is one side of a port of a virtual switch.
type side struct {
	tally
	delays *histogram // nil until something leaves
	_      [16]byte   // whole cache lines
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
// buffers or dropped.
func (c *counts) arrived(a *Arrival, counted, queued bool) {
	output, input := c.sides(a)
	if counted {
		output.offered.add(a.Size)
		input.offered.add(a.Size)
	}
	if queued {
		output.enter(a.Size)
		input.enter(a.Size)
		c.switches[a.Switch].enter(a.Size)
		c.total.enter(a.Size)
	} else if counted {
		output.dropped.add(a.Size)
		input.dropped.add(a.Size)
	}
}

// left counts a packet that leaves the buffers, of the warm-up too.
func (c *counts) left(output, input *side, a *Arrival) {
	output.leave(a.Size)
	input.leave(a.Size)
	c.switches[a.Switch].leave(a.Size)
	c.total.leave(a.Size)
}

// dropped counts a packet that is dropped out of a buffer.
func (c *counts) dropped(a *Arrival, counted bool) {
	output, input := c.sides(a)
	c.left(output, input, a)
	if counted {
		output.dropped.add(a.Size)
		input.dropped.add(a.Size)
	}
}

func (c *counts) delivered(d *Departure, counted bool) {
	output, input := c.sides(&d.Arrival)
	c.left(output, input, &d.Arrival)
	if counted {
		output.deliver(d, fineOutput)
		input.deliver(d, fineInput)
	}
}

func (s *side) deliver(d *Departure, fine uint) {
	if s.delays == nil {
		s.delays = newHistogram(fine)
	}
	delay := d.Delay()
	s.tally.deliver(d.Size, delay)
	s.delays.add(delay)
}
