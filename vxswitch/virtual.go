package vxswitch

// virtual is a virtual switch at work.
type virtual struct {
	s     *Switch
	id    ID
	cfg   Virtual
	vxbs  []*vxb  // [out*len(outs)+in]
	ports []int16 // by physical port, -1: none
	ins   []vinput
	gates []gate // of ins
	outs  []*voutput
	gone  bool     // being removed: drains, takes nothing
	count Counters // of frames that reached no VXB; of all that left with a port
}

// gate is whether a frame may come in. All of a switch's are together, because
// a large one has more inputs than fit into a cache.
type gate uint8

const (
	shut    gate = iota // there is no such port (any more)
	open                // whatever its rate
	metered             // within the bucket
)

// vinput is the input side of a virtual port.
type vinput struct {
	phys   int // -1: there is no such port any more
	bucket bucket
	count  Counters // of frames that reached no VXB
}

// voutput is the output side of a virtual port: what a physical output sees
// of a virtual switch.
type voutput struct {
	v         *virtual
	out       int
	phys      int  // -1: there is no such port (any more)
	closed    bool // drains, takes nothing
	scheduler Scheduler
	entries   int     // it was made for: inputs that came since it does not know
	awake     PortSet // inputs with something queued
	next      int     // where the fallback's round goes on
	picked    int     // scheduler's answer while nothing changed, unasked: ask
	bytes     int     // own frames
	packets   int     // own frames
	loans     int     // frames on loan
	waits     bool    // the scheduler is a Retrier: nothing may leave but by its order
	quantum   int     // at the host's scheduler
	priority  int
	capped    bool
	bucket    bucket // what own frames may use of Out
	real      bucket // the same with what left on loan
	credit    int    // bytes sent above what would have been sent without loans
	owed      int    // bytes of its turn that its scheduler's slowness used up
	faults    uint64
}

const unasked = -2

func (v *virtual) at(in, out int) *vxb { return v.vxbs[out*len(v.outs)+in] }

// voutput shows its scheduler the VXBs of its column.

func (o *voutput) Size(i int) int     { return int(o.head(i).Size) }
func (o *voutput) Head(i int) Packet  { return *o.head(i) }
func (o *voutput) Backlog(i int) int  { return o.vxb(i).bytes }
func (o *voutput) Quantum(i int) int  { return o.vxb(i).quantum }
func (o *voutput) Priority(i int) int { return int(o.vxb(i).priority) }
func (o *voutput) vxb(i int) *vxb     { return o.v.vxbs[o.out*len(o.v.outs)+i] }
func (o *voutput) has(i int) bool     { return i >= 0 && i < len(o.v.outs) && o.awake.Has(i) }
func (o *voutput) head(i int) *Packet {
	if !o.has(i) {
		return &noPacket // a scheduler that asks about an entry that sleeps
	}
	return &o.v.s.pool.nodes[o.vxb(i).first].Packet
}

var noPacket Packet

// pick returns the input whose head is next, or Nobody.
func (o *voutput) pick(now Time) int {
	if o.picked == unasked {
		o.picked = o.ask(now)
	}
	return o.picked
}

// ask asks the scheduler, and answers in its stead if what it says cannot be.
func (o *voutput) ask(now Time) int {
	i := o.scheduler.Pick(now)
	if i == Nobody || o.has(i) {
		return i
	}
	o.faults++
	return o.fallback()
}

// fallback is round robin over the inputs that have something queued.
func (o *voutput) fallback() int {
	i := o.awake.Next(o.next)
	if i < 0 {
		i = o.awake.Next(0)
	}
	return i
}

// added tells the scheduler of a frame appended to input i.
func (o *voutput) added(i, size int) {
	o.bytes += size
	o.packets++
	o.picked = unasked
	if o.awake.Has(i) {
		o.scheduler.Changed(i)
		return
	}
	o.awake.Add(i)
	o.scheduler.Wake(i)
}

// dropped tells the scheduler that a queued frame of input i is gone unsent.
func (o *voutput) dropped(i, size int) {
	o.taken(i, size)
	if o.awake.Has(i) {
		o.scheduler.Changed(i)
	}
}

// taken keeps the books when a frame leaves the queue of input i.
func (o *voutput) taken(i, size int) {
	o.bytes -= size
	o.packets--
	o.picked = unasked
	if o.vxb(i).first == nothing {
		o.awake.Remove(i)
		o.scheduler.Sleep(i)
	}
}

// sent tells the scheduler that the head of input i has left.
func (o *voutput) sent(i, size int) {
	o.next = (i + 1) % MaxPorts
	o.scheduler.Sent(i, size)
	o.taken(i, size)
}
