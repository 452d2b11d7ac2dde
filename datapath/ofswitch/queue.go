package ofswitch

import (
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// Queues of a port are classes of an HTB at its device, numbered as Open vSwitch does
// (linux-htb): below the class of all that leaves, 1:fffe, class 1:N+1 is queue N.
// Frames for no queue, or for one that a port has not, are for the fallback class. A
// class 1:fffd there is for control in band, and no queue. A switch reads them: who runs
// it makes them.
const (
	queueMajor  = 1
	wholeClass  = 0xfffe
	bandClass   = 0xfffd
	mostQueues  = 64 // of a port: each has a socket
	queueMin    = 1  // kinds of properties (OpenFlow 1.3.5, 7.2.3.1)
	queueMax    = 2
	partsOfRate = 1000 // in which properties tell rates
)

// classHandle is by which frames are told for a queue (skb->priority).
func classHandle(queue uint32) uint32 { return kernel.Handle(queueMajor, uint16(queue+1)) }

// queue of a port. Its socket is its own, so that one which is full keeps no frame
// from the others.
type queue struct {
	least, most uint64 // bytes per second
	socket      int
	made        int64 // when it was first seen
}

// queues of a port, by number.
type queues struct {
	rate uint64 // bytes per second, of all
	by   map[uint32]*queue
}

// readQueues reads those of a device, and whether control has a class there; nil: it
// has none.
func readQueues(conn *kernel.Conn, index int) (whole uint64, classes map[uint32]kernel.Qdisc, control bool) {
	root, err := conn.RootQdisc(index)
	if err != nil || root.Kind != "htb" || root.Handle != kernel.Handle(queueMajor, 0) {
		return 0, nil, false
	}
	list, err := conn.Classes(index)
	if err != nil {
		return 0, nil, false
	}
	classes = make(map[uint32]kernel.Qdisc)
	for _, c := range list {
		switch minor := c.Handle & 0xffff; {
		case minor == wholeClass:
			whole = c.HTB().Ceil
		case minor == bandClass:
			control = true
		case c.Parent == kernel.Handle(queueMajor, wholeClass) && minor > 0 && len(classes) < mostQueues:
			classes[minor-1] = c
		}
	}
	if whole == 0 {
		return 0, nil, false
	}
	return whole, classes, control
}

// lookAtQueues sees which queues a port has now; changed is whether others than before.
func (d *device) lookAtQueues(conn *kernel.Conn, now int64) (changed bool) {
	if d.xsk != nil || d.tap { // what they send meets no queueing discipline of the device
		return false
	}
	whole, classes, control := readQueues(conn, d.index)
	d.control.first(control)
	changed = d.queues.rate != whole
	d.queues.rate = whole
	for number, q := range d.queues.by {
		if _, there := classes[number]; !there {
			unix.Close(q.socket)
			delete(d.queues.by, number)
			changed = true
		}
	}
	for number, c := range classes {
		q := d.queues.by[number]
		if q == nil {
			if q = d.openQueue(number, now); q == nil {
				continue
			}
			changed = true
		}
		q.least, q.most = c.HTB().Rate, c.HTB().Ceil
	}
	return changed
}

// openQueue makes the socket by which frames go to a queue; nil: that failed, and is
// tried again at the next look.
func (d *device) openQueue(number uint32, now int64) *queue {
	socket, err := packetSocket(d.index, true, nil)
	if err != nil {
		return nil
	}
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PRIORITY, int(classHandle(number))); err != nil {
		unix.Close(socket)
		return nil
	}
	if d.queues.by == nil {
		d.queues.by = make(map[uint32]*queue)
	}
	d.queues.by[number] = &queue{socket: socket, made: now}
	return d.queues.by[number]
}

// socketOf is by which a frame leaves for a queue.
func (d *device) socketOf(number uint32) int {
	if q := d.queues.by[number]; q != nil {
		return q.socket
	}
	return d.fd
}

// close gives up the device.
func (d *device) close() {
	if d.xsk != nil {
		d.xsk.Close()
	} else {
		unix.Close(d.fd) // which takes it out of epoll too
	}
	if d.control != nil {
		unix.Close(d.control.fd)
	}
	for _, q := range d.queues.by {
		unix.Close(q.socket)
	}
}

// device is that of a port; nil: there is none.
func (s *Switch) device(port uint32) *device {
	if port == of13.PortLocal {
		return s.local
	}
	if port == 0 || int(port) > len(s.devices) {
		return nil
	}
	return s.devices[port-1]
}

// queuesOf tells of the queues of a port (pipeline.Switch.Queues).
func (s *Switch) queuesOf(port uint32) (list []pipeline.Queue) {
	d := s.device(port)
	if d == nil || len(d.queues.by) == 0 {
		return nil
	}
	whole, classes, _ := readQueues(s.conn, d.index)
	for number, c := range classes {
		made, h := s.now(), c.HTB()
		if q := d.queues.by[number]; q != nil {
			made = q.made
		}
		life := s.now() - made
		list = append(list, pipeline.Queue{
			Queue: of13.Queue{Queue: number, Port: port, Properties: []of13.QueueProperty{{Kind: queueMin, Rate: parts(h.Rate, whole)}, {Kind: queueMax, Rate: parts(h.Ceil, whole)}}},
			Stats: of13.QueueStats{
				Port: port, Queue: number, Bytes: c.Bytes, Packets: c.Packets, TxErrors: uint64(c.Drops),
				Life: of13.Lifetime{Seconds: uint32(life / second), Nanos: uint32(life % second)},
			},
		})
	}
	slices.SortFunc(list, func(a, b pipeline.Queue) int { return int(a.Queue.Queue) - int(b.Queue.Queue) })
	return list
}

// parts are what a rate is of another, rounded.
func parts(rate, of uint64) uint16 {
	return uint16(min((rate*partsOfRate+of/2)/of, partsOfRate))
}
