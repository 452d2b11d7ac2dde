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
}

func newCounts(s *Scenario) counts {
	n := len(s.VirtualSwitches) * s.Switch.Ports
	return counts{
		ports: s.Switch.Ports, outputs: make([]side, n), inputs: make([]side, n),
		switches: make([]tally, len(s.VirtualSwitches)),
	}
}

func (c *counts) output(a *Arrival) *side { return &c.outputs[int(a.Switch)*c.ports+int(a.Output)-1] }
func (c *counts) input(a *Arrival) *side  { return &c.inputs[int(a.Switch)*c.ports+int(a.Input)-1] }

func (c *counts) offered(a *Arrival) {
	c.output(a).offered.add(a.Size)
	c.input(a).offered.add(a.Size)
}

func (c *counts) dropped(a *Arrival) {
	c.output(a).dropped.add(a.Size)
	c.input(a).dropped.add(a.Size)
}

// enter and leave count the bytes in the buffers, of packets of the warm-up
// too.
func (c *counts) enter(a *Arrival) {
	c.output(a).enter(a.Size)
	c.input(a).enter(a.Size)
	c.switches[a.Switch].enter(a.Size)
	c.total.enter(a.Size)
}

func (c *counts) leave(a *Arrival) {
	c.output(a).leave(a.Size)
	c.input(a).leave(a.Size)
	c.switches[a.Switch].leave(a.Size)
	c.total.leave(a.Size)
}

func (c *counts) delivered(d *Departure) {
	c.output(&d.Arrival).deliver(d)
	c.input(&d.Arrival).deliver(d)
}

func (s *side) deliver(d *Departure) {
	if s.delays == nil {
		s.delays = new(histogram)
	}
	delay := d.Delay()
	s.tally.deliver(d.Size, delay)
	s.delays.add(delay)
}
