package vxlink

import (
	"fmt"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Queues of a switch's port are classes at the tenant's end, as datapath/ofswitch
// reads them: queue N is class 1:N+1 below 1:fffe, and control in band 1:fffd.
const (
	minorQueues uint16 = 0xfffe
	minorInBand uint16 = 0xfffd
)

func minorOf(queue int) uint16 { return uint16(queue + 1) }

// queueLimit is of a class's queue; one packet that is still to be cut has room.
func queueLimit(most vnet.Rate, mtu int) uint32 {
	return max(queue(most, mtu), largestGSO+largestGSO/8)
}

// speedOf is what the device of a port without queues has for an alias: its rate, as
// datapath/ofswitch reads it. Queues tell it otherwise.
func speedOf(want *plan.Queues) string {
	if want == nil || len(want.List) > 0 {
		return ""
	}
	return want.Rate.String()
}

// setSpeed makes that the alias of a device.
func setSpeed(c *kernel.Conn, index int, speed string) error {
	l, err := c.LinkByIndex(index)
	if err != nil || l.Alias == speed {
		return err
	}
	return c.Do(kernel.ChangeLink(index).String(iflaAlias, speed))
}

// setQueues makes a port's queues or changes them in place; those that it shall not
// have go.
func setQueues(c *kernel.Conn, index int, want *plan.Queues, mtu int) error {
	speed := speedOf(want)
	if err := setSpeed(c, index, speed); err != nil {
		return err
	}
	if speed != "" {
		want = nil
	}
	root, err := c.RootQdisc(index)
	if err != nil {
		return err
	}
	have := root.Kind == "htb" && root.Handle == handleOf(0) && root.HTBFallback() == minorOf(0)
	if want == nil || !have && root.Handle != 0 {
		if root.Handle == 0 {
			return nil
		}
		if err := c.DeleteQdisc(index, kernel.TCRoot); err != nil || want == nil {
			return err
		}
	}
	if !have {
		if err := c.Do(kernel.SetHTB(index, minorOf(0))); err != nil {
			return err
		}
	}
	if err := setClass(c, index, minorQueues, 0, htb(want.Rate, want.Rate, mtu, leased)); err != nil {
		return err
	}
	for minor, q := range classesOf(want) {
		if err := setClass(c, index, minor, minorQueues, htb(q.Min, q.Max, mtu, leased)); err != nil {
			return fmt.Errorf("queue %d: %w", q.Number, err)
		}
		if err := c.Do(kernel.SetFIFO(index, kernel.Handle(minor+1, 0), handleOf(minor), queueLimit(q.Max, mtu))); err != nil {
			return fmt.Errorf("queue %d: %w", q.Number, err)
		}
	}
	return dropQueues(c, index, want)
}

// classesOf are the queues of a port, and control among them, by class.
func classesOf(want *plan.Queues) map[uint16]plan.Queue {
	list := make(map[uint16]plan.Queue, len(want.List)+1)
	for _, q := range want.List {
		list[minorOf(q.Number)] = q
	}
	if want.Control > 0 {
		list[minorInBand] = plan.Queue{Number: -1, Min: want.Control, Max: want.Rate}
	}
	return list
}

// dropQueues deletes classes that are no queues of a port.
func dropQueues(c *kernel.Conn, index int, want *plan.Queues) error {
	classes, err := c.Classes(index)
	if err != nil {
		return err
	}
	wanted := map[uint32]bool{handleOf(minorQueues): true}
	for minor := range classesOf(want) {
		wanted[handleOf(minor)] = true
	}
	for _, class := range classes {
		if !wanted[class.Handle] {
			if err := c.DeleteClass(index, class.Handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// readQueues reads the queues of a namespace's devices back. One that is not as
// setQueues makes it is left out; other queues of whatever kind are without any.
func readQueues(c *kernel.Conn, devices map[int]kernel.Link) (map[int]*plan.Queues, error) {
	qdiscs, err := c.Qdiscs()
	if err != nil {
		return nil, err
	}
	limits := make(map[int]map[uint32]uint32)
	for _, q := range qdiscs {
		if limits[q.Index] == nil {
			limits[q.Index] = make(map[uint32]uint32)
		}
		limits[q.Index][q.Parent] = q.FIFO()
	}
	found := make(map[int]*plan.Queues)
	for index, d := range devices {
		if rate, err := vnet.ParseRate(d.Alias); err == nil {
			found[index] = &plan.Queues{Rate: rate}
		}
	}
	for _, q := range qdiscs {
		if q.Parent != kernel.TCRoot || q.Handle == 0 {
			continue
		}
		found[q.Index] = &plan.Queues{}
		if q.Kind == "htb" && q.Handle == handleOf(0) && q.HTBFallback() == minorOf(0) {
			classes, err := c.Classes(q.Index)
			if err != nil {
				return nil, err
			}
			found[q.Index] = queuesIn(classes, limits[q.Index], devices[q.Index].MTU)
		}
	}
	return found, nil
}

// queuesIn are the queues of one device.
func queuesIn(classes []kernel.Qdisc, limits map[uint32]uint32, mtu int) *plan.Queues {
	all := &plan.Queues{}
	by := make(map[uint32]kernel.Qdisc, len(classes))
	for _, class := range classes {
		by[class.Handle] = class
	}
	whole := by[handleOf(minorQueues)]
	rate := vnet.Rate(whole.HTB().Rate) * 8
	if whole.Parent == kernel.TCRoot && isClass(whole.HTB(), htb(rate, rate, mtu, leased)) {
		all.Rate = rate
	}
	read := func(minor uint16) (q plan.Queue, ok bool) {
		class, there := by[handleOf(minor)]
		h := class.HTB()
		q.Min, q.Max = vnet.Rate(h.Rate)*8, vnet.Rate(h.Ceil)*8
		return q, there && class.Parent == handleOf(minorQueues) && isClass(h, htb(q.Min, q.Max, mtu, leased)) && limits[handleOf(minor)] == queueLimit(q.Max, mtu)
	}
	for number := range vnet.MaxQueue + 1 {
		if q, ok := read(minorOf(number)); ok {
			q.Number = number
			all.List = append(all.List, q)
		}
	}
	if q, ok := read(minorInBand); ok && q.Max == all.Rate {
		all.Control = q.Min
	}
	if len(classes) != len(classesOf(all))+1 { // there are others
		all.Rate = 0
	}
	return all
}
