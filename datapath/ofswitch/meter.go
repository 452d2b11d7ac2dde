package ofswitch

import (
	"unsafe"

	"sublet/openflow/pipeline"
)

// spareMeters are places of meters beside as many as there may be: one that is changed
// has another place until its old one is free.
const spareMeters = 64

// What the process and the programs both change lies at the same places.
var (
	_ [unsafe.Offsetof(flowsMeter{}.Rule) - unsafe.Sizeof(pipeline.MeterState{})]struct{}
	_ [unsafe.Sizeof(pipeline.MeterState{}) - unsafe.Offsetof(flowsMeter{}.Rule)]struct{}
)

// PlaceMeter puts a meter where the programs find it (pipeline.MeterPlace).
func (c *cache) PlaceMeter(packets bool, rules []pipeline.MeterRule) *pipeline.MeterState {
	if len(c.meterSlots) == 0 {
		c.collectMeters()
	}
	last := len(c.meterSlots) - 1
	if last < 0 {
		return nil
	}
	at := c.meterSlots[last]
	c.meterSlots = c.meterSlots[:last]
	m := flowsMeter{}
	if packets {
		m.OfPackets = 1
	}
	for i, r := range rules {
		to := &m.Rule[i]
		to.Rate, to.Depth, to.Used, to.Remark = r.Rate, r.Depth, 1, r.Remark
		if r.Drops {
			to.Drops = 1
		}
	}
	c.meters[at] = m
	state := (*pipeline.MeterState)(unsafe.Pointer(&c.meters[at]))
	c.places[state] = at
	return state
}

// collectMeters frees the places of meters that are gone. No flow leads to them: the
// pipeline has ended those. While changes may still be taken back, none is known to be.
func (c *cache) collectMeters() {
	if c.tables.Changing() {
		return
	}
	used := make(map[*pipeline.MeterState]bool)
	for state := range c.tables.MeterStates() {
		used[state] = true
	}
	for state, at := range c.places {
		if !used[state] {
			delete(c.places, state)
			c.meterSlots = append(c.meterSlots, at)
		}
	}
}

// shareMeters maps them; all places are free.
func (c *cache) shareMeters() (err error) {
	if c.meters, err = mapped[flowsMeter](c, c.objects.Meters); err != nil {
		return err
	}
	for at := range uint32(len(c.meters)) {
		c.meterSlots = append(c.meterSlots, uint32(len(c.meters))-1-at)
	}
	return nil
}
