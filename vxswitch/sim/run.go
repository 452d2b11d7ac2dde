package sim

import (
	"errors"
	"slices"
	"time"

	"sublet/vxswitch"
)

// Watch is told of packets during a run and may end it; all may be nil.
type Watch struct {
	Arrived  func(*Arrival)
	Departed func(d *Departure, hop int)
	Stop     func() bool // asked now and then
}

// run is one run of a scenario.
type run struct {
	s        *Scenario
	host     *vxswitch.Switch
	ids      []vxswitch.ID // of virtual switches
	index    []int32       // of virtual switches, by id
	ports    [][]int16     // virtual port by virtual switch and physical port, or -1
	physical [][]int       // physical port by virtual switch and virtual port
	arrivals *merge
	count    counts
	far      *far    // nil: no split
	window   *window // nil: outputs depend on each other
	wires    *wires  // nil: departures come in order
	watch    Watch
	events   uint64
	sent     vxswitch.Departure // that is being counted; here, so that none is allocated
	left     Departure          // the same as what is counted
}

// Run runs a scenario once.
func Run(s *Scenario, seed uint64, watch Watch) (*Outcome, error) {
	r, err := newRun(s, seed, watch)
	if err != nil {
		return nil, err
	}
	if !r.loop() {
		return nil, ErrStopped
	}
	return r.outcome(seed), nil
}

func newRun(s *Scenario, seed uint64, watch Watch) (*run, error) {
	r := &run{s: s, watch: watch, arrivals: newMerge(s.sources(seed)), count: newCounts(s)}
	r.arrivals.keep = len(s.Traffic) == 1 && s.Traffic[0].Trace != nil
	if err := r.lease(seed); err != nil {
		return nil, err
	}
	if s.Split != nil {
		r.far = newFar(r)
	}
	if s.Switch.Sharing == "flexible" {
		r.wires = &wires{}
	}
	if r.apart() {
		r.window = newWindow(s.Switch.Ports)
	}
	return r, nil
}

// lease makes the hosting switch and its virtual switches.
func (r *run) lease(seed uint64) error {
	config := r.s.config(seed)
	config.Dropped = r.dropped
	host, err := vxswitch.New(config)
	if err != nil {
		return err
	}
	r.host = host
	var changes []vxswitch.Change
	for i := range r.s.VirtualSwitches {
		changes = append(changes, vxswitch.Add{Virtual: r.s.virtual(&r.s.VirtualSwitches[i])})
	}
	if err := host.Apply(0, changes...); err != nil {
		return err
	}
	for i := range r.s.VirtualSwitches {
		r.learn(i)
	}
	return nil
}

// learn makes the tables between a virtual switch's ports and the engine's.
func (r *run) learn(i int) {
	v := &r.s.VirtualSwitches[i]
	id, _ := r.host.Find(v.Name)
	r.ids = append(r.ids, id)
	for len(r.index) <= int(id) {
		r.index = append(r.index, -1)
	}
	r.index[id] = int32(i)
	table := slices.Repeat([]int16{-1}, r.s.Switch.Ports+1)
	for virtual, physical := range v.Ports {
		table[physical] = int16(virtual)
	}
	r.ports, r.physical = append(r.ports, table), append(r.physical, v.Ports)
}

// ErrStopped is the error of a run that its watch ended.
var ErrStopped = errors.New("stopped")

// patience is the arrivals between two questions whether to stop.
const patience = 1 << 16

// loop passes time; false if it was stopped.
func (r *run) loop() bool {
	for r.some() {
		if r.watch.Stop != nil && r.watch.Stop() {
			return false
		}
	}
	if r.s.Drain {
		r.advance(vxswitch.Forever)
	} else {
		r.advance(vxswitch.Time(r.s.Duration))
	}
	return true
}

// some passes time for some arrivals; false if there are no more.
func (r *run) some() bool {
	if r.window != nil {
		return r.pass()
	}
	var a Arrival
	for range patience {
		at := r.arrivals.peek()
		if at == never {
			return false
		}
		r.advance(vxswitch.Time(at))
		r.arrivals.next(&a)
		r.arrive(&a)
	}
	return true
}

func (r *run) arrive(a *Arrival) {
	r.events++
	seq := a.Sequence
	if r.far != nil && r.far.owns(a) {
		a.Output, seq = r.far.split(a)
	}
	if r.watch.Arrived != nil {
		r.watch.Arrived(a)
	}
	queued := r.enqueue(a, seq) == vxswitch.None
	r.count.arrived(a, a.At >= r.s.Warmup, queued)
}

// enqueue hands a packet to the engine, with a number of its stream's.
func (r *run) enqueue(a *Arrival, seq uint64) vxswitch.Cause {
	ports := r.ports[a.Switch]
	return r.host.Enqueue(vxswitch.Time(a.At), r.ids[a.Switch], int(ports[a.Output]), vxswitch.Packet{
		Ref: a.Sequence, Seq: seq, Flow: uint64(a.Input), Size: a.Size, In: ports[a.Input],
	})
}

// arrival is what a packet was when it came.
func (r *run) arrival(id vxswitch.ID, p *vxswitch.Packet) Arrival {
	of := r.index[id]
	ports := r.physical[of]
	return Arrival{At: time.Duration(p.At), Sequence: p.Ref, Switch: of, Input: int16(ports[p.In]), Output: int16(ports[p.Out]), Size: p.Size}
}

// dropped is told by the engine of a packet that had been queued.
func (r *run) dropped(id vxswitch.ID, p vxswitch.Packet, _ vxswitch.Cause) {
	a := r.arrival(id, &p)
	r.count.dropped(&a, a.At >= r.s.Warmup)
}

// depart counts a departure, after what happened at the second switch before.
func (r *run) depart(d *vxswitch.Departure) {
	if r.far != nil {
		r.far.advance(time.Duration(d.Start) - 1)
	}
	r.events++
	left := &r.left
	*left = Departure{At: time.Duration(d.Start), Arrival: r.arrival(d.Switch, &d.Packet)}
	r.count.delivered(left, left.Arrival.At >= r.s.Warmup)
	if r.watch.Departed != nil {
		r.watch.Departed(left, 1)
	}
	if r.far != nil && r.far.owns(&left.Arrival) {
		r.far.send(&left.Arrival, time.Duration(d.End), d.Packet.Seq)
	}
}
