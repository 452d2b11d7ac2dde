package nsh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// A Shape is a class of an HTB on a pair of devices of the fabric: packets leave by one
// of them, wait there for their rate, and go on where they come out of the other
// (nsh_shaped). A class has the number of its function.

// queueDevice and queuedDevice are the two.
const queueDevice, queuedDevice = "queue", "queued"

// Sizes of a class.
const (
	queueTime = 30           // ms that a full queue takes at its rate, but for
	queueRoom = 2 * wholeGSO // bytes that have room at any rate
	burstTime = 2            // ms of the rate that may leave at once, but for one packet
	wholeGSO  = 72 << 10     // bytes of the largest packet, with the headers of all its segments
)

// waits says whether packets of a plane wait for rates.
func (p Plane) waits() bool {
	for _, f := range p.Functions {
		if f.Kind == Shape {
			return true
		}
	}
	return false
}

// minorOf is the class of a function's number.
func minorOf(number uint32) uint16 { return uint16(number & (1<<numberBits - 1)) }

// A class takes all that it gets from one above it. It is held to the rate of packets with
// the headers between hosts, and the one above to that without. So both change in place
// when a chain begins to pass other hosts: no packet that waits is lost.

// aboveBit tells the number of the class above.
const aboveBit = 1 << numberBits

// class is one, and the one above it; 0: the root.
type class struct {
	kernel.HTBClass
	above uint16
	queue uint32 // bytes that may wait; 0: it has a class below
}

// classes are those of a plane, by their numbers.
func (r record) classes() map[uint16]class {
	all := make(map[uint16]class)
	for _, f := range r.Plane.Functions {
		if f.Kind == Shape {
			minor, rate := minorOf(r.Numbers[functionKey(f.Name)]), f.Rate/8
			held := class{HTBClass: classOfRate(leastRate, cmp.Or(f.Outer/8, rate)), above: minor | aboveBit, queue: room(rate)}
			held.Overhead = f.Overhead
			all[minor], all[minor|aboveBit] = held, class{HTBClass: classOfRate(rate, rate)}
		}
	}
	return all
}

// leastRate is in byte/s: HTB has no class without a rate of its own.
const leastRate = 1000

func classOfRate(rate, ceil uint64) kernel.HTBClass {
	burst := uint32(max(wholeGSO, min(ceil/1000*burstTime, 1<<30)))
	return kernel.HTBClass{Rate: rate, Ceil: ceil, Burst: burst, CeilBurst: burst, Quantum: wholeGSO}
}

// room is how many bytes may wait for a rate, in byte/s.
func room(rate uint64) uint32 {
	return uint32(min(max(rate/1000*queueTime, queueRoom), 32<<20))
}

// leafOf is the handle of the queue of a class.
func leafOf(minor uint16) uint32 { return kernel.Handle(1<<numberBits|minor, 0) }

// findQueue looks for the pair; false: it is not there, or not whole.
func (s *site) findQueue() (bool, error) {
	l, err := s.inside.LinkByName(queueDevice)
	if kernel.NotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	far, err := s.inside.LinkByName(queuedDevice)
	if err != nil && !kernel.NotFound(err) {
		return false, err
	}
	s.queue = l
	return err == nil && l.Peer == far.Index && l.Up && far.Up, nil
}

// queues makes the pair of a plane and its classes, or changes them in place.
func (s *site) queues(r record) error {
	if !r.Plane.waits() {
		return nil
	}
	whole, err := s.findQueue()
	if err == nil && !whole {
		err = s.makeQueue()
	}
	if err != nil {
		return fmt.Errorf("make the devices of its queues: %w", err)
	}
	root, err := s.inside.RootQdisc(s.queue.Index)
	if err != nil {
		return err
	}
	if root.Kind != "htb" || root.Handle != kernel.Handle(1, 0) {
		if err := s.inside.Do(kernel.SetHTB(s.queue.Index, 0)); err != nil {
			return fmt.Errorf("make its queues: %w", err)
		}
	}
	classes := r.classes()
	for _, minor := range slices.Backward(slices.Sorted(maps.Keys(classes))) { // those above first
		if err := s.setClass(minor, classes[minor]); err != nil {
			return fmt.Errorf("make the queue of a rate: %w", err)
		}
	}
	return nil
}

// setClass makes a class or changes it in place.
func (s *site) setClass(minor uint16, c class) error {
	id := kernel.Handle(1, minor)
	if err := s.inside.Do(kernel.SetClass(s.queue.Index, id, kernel.Handle(1, c.above), c.HTBClass)); err != nil || c.queue == 0 {
		return err
	}
	return s.inside.Do(kernel.SetFIFO(s.queue.Index, leafOf(minor), id, c.queue))
}

func (s *site) makeQueue() error {
	if s.queue.Index != 0 {
		if err := s.inside.DeleteLink(s.queue.Index); err != nil && !kernel.NotFound(err) {
			return err
		}
	}
	m := kernel.NewLink(queueDevice, "veth", func(m *kernel.Message) {
		m.Nest(vethPeer, func() {
			m.Raw(kernel.LinkHeader(0, 0, 0)).String(unix.IFLA_IFNAME, queuedDevice).Uint32(unix.IFLA_MTU, pairMTU)
		})
	}).Uint32(unix.IFLA_MTU, pairMTU)
	if err := s.inside.Do(m); err != nil {
		return err
	}
	var err error
	if s.queue, err = s.inside.LinkByName(queueDevice); err != nil {
		return err
	}
	return errors.Join(bringUp(s.inside, s.queue.Index), bringUp(s.inside, s.queue.Peer))
}

// queued says what of the pair and its classes is missing or wrong.
func (s *site) queued(r record) error {
	want := r.classes()
	if len(want) == 0 {
		return nil
	}
	whole, err := s.findQueue()
	if err != nil || !whole {
		return fmt.Errorf("device %s is missing: %w", queueDevice, err)
	}
	have, err := s.inside.Classes(s.queue.Index)
	if err != nil {
		return err
	}
	for _, c := range have {
		if w, h := want[uint16(c.Handle)], c.HTB(); w.Ceil == h.Ceil && w.Rate == h.Rate && w.Overhead == h.Overhead {
			delete(want, uint16(c.Handle))
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%d queues of rates are missing or have another", len(want))
	}
	return nil
}

// sweepQueues takes away the classes that no function has, and the pair that has none.
func (s *site) sweepQueues(r record) error {
	there, err := s.findQueue()
	if err != nil || s.queue.Index == 0 {
		return err
	}
	want := r.classes()
	if !there || len(want) == 0 {
		return s.inside.DeleteLink(s.queue.Index)
	}
	have, err := s.inside.Classes(s.queue.Index)
	if err != nil {
		return err
	}
	slices.SortFunc(have, func(a, b kernel.Qdisc) int { return cmp.Compare(a.Handle, b.Handle) }) // those below first
	for _, c := range have {
		if _, ok := want[uint16(c.Handle)]; !ok {
			if err := s.inside.DeleteClass(s.queue.Index, c.Handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteQueues takes the pair away, if there is a fabric.
func (p *Part) deleteQueues(fabric string) error {
	s, err := p.open(Plane{Fabric: fabric})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.close()
	return s.sweepQueues(record{})
}

// hopOf is a hop of a plane.
type hopOf struct {
	fabric string
	Place
}

// readQueues adds to what hops of a plane counted what their queues had no room for.
func (p *Part) readQueues(r record, counted Report) error {
	if !r.Plane.waits() {
		return nil
	}
	s, err := p.open(r.Plane)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.findQueue(); err != nil {
		return err
	}
	list, err := s.inside.Classes(s.queue.Index)
	if err != nil {
		return fmt.Errorf("read its queues: %w", err)
	}
	classes := make(map[uint16]kernel.Qdisc, len(list))
	for _, c := range list {
		classes[uint16(c.Handle)] = c
	}
	for i, h := range r.Plane.Hops {
		if f, ok := r.Plane.function(h.Function); ok && f.Kind == Shape {
			c, at := &counted.Hops[i], hopOf{r.Plane.Fabric, Place{h.Path, h.Index}}
			if n := limited(*c, classes[minorOf(r.Numbers[functionKey(f.Name)])], p.limited[at]); n > 0 {
				c.Drops[limitedCause] = n
			}
			p.limited[at] = *c
		}
	}
	return nil
}

// limitedCause is of packets above a rate.
const limitedCause = "limited"

// limited is how many packets of a hop the queue of its rate had no room for, as what
// came, what left and what waits say. The queue counts a large packet once, and while it
// has dropped none the difference is on its way. It is never less than it was before.
func limited(c Counts, class kernel.Qdisc, before Counts) uint64 {
	was := before.Drops[limitedCause]
	if c.Packets < before.Packets { // counted anew
		was = 0
	}
	if class.Drops == 0 || c.Bytes == 0 {
		return was
	}
	waiting := (uint64(class.Backlog)*c.Packets + c.Bytes - 1) / c.Bytes
	return max(was, c.Packets-min(c.Packets, c.Returned+waiting))
}
