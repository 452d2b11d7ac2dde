package vxlink

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Control in band of OpenFlow switches has a class of its own where a link's rate is
// enforced: below the token bucket of a port, or the class of a tunnel. What is
// control the program says (control.h) by a bit of the mark, from the addresses of
// plan.VxLink.Control, so nothing that a tenant sends is there for another reason.
// The qdisc below is an HTB whose rates nothing reaches but that of control: what it
// holds is in bands, of which the bucket or class takes the first that has a packet.
//
//	X:3 all +- X:2 control, within its minimum before data, behind that after it
//	        +- X:1 data
const (
	minorData    uint16 = 1
	minorControl uint16 = 2
	minorBands   uint16 = 3

	behind = 1 // priority of data
)

// noLimit is the rate of bands, which are held by what is above them.
const noLimit = 100 * vnet.Gbit

// portBands is the qdisc below the token bucket of a port, and its parent.
var portBands, portBucket = kernel.Handle(2, 0), kernel.Handle(1, 1)

// bands are a qdisc with control before data.
type bands struct {
	index          int
	handle, parent uint32
	rate           vnet.Rate // of the link
	mtu            int
	limit          uint32 // of data, in bytes
}

func (b bands) class(minor uint16) uint32 { return b.handle | uint32(minor) }

// least is what control has before data.
func (b bands) least() vnet.Rate { return plan.LeastOfControl(b.rate) }

// classes are those of the bands, in the order in which they are made.
func (b bands) classes() []uplinkClass {
	return []uplinkClass{
		{minorBands, 0, htb(noLimit, noLimit, b.mtu, leased)},
		{minorControl, minorBands, htb(b.least(), noLimit, b.mtu, leased)},
		{minorData, minorBands, htb(noLimit, noLimit, b.mtu, behind)},
	}
}

// limits are those of what waits in each band.
func (b bands) limits() map[uint16]uint32 {
	return map[uint16]uint32{minorData: b.limit, minorControl: queueLimit(b.least(), b.mtu)}
}

// set makes the bands, or changes them in place.
func (b bands) set(c *kernel.Conn) error {
	have, err := c.QdiscAt(b.index, b.parent)
	if err != nil {
		return err
	}
	if have.Kind != "htb" || have.Handle != b.handle {
		if have.Handle == b.handle { // the kernel changes no kind
			if err := c.DeleteQdisc(b.index, b.parent); err != nil {
				return err
			}
		}
		if err := c.Do(kernel.SetHTBAt(b.index, b.handle, b.parent, minorData)); err != nil {
			return fmt.Errorf("make the queue of control: %w", err)
		}
	}
	for _, class := range b.classes() {
		if err := c.Do(kernel.SetClass(b.index, b.class(class.minor), b.class(class.parent), class.htb)); err != nil {
			return fmt.Errorf("set the class of control: %w", err)
		}
		limit, is := b.limits()[class.minor]
		if !is {
			continue
		}
		if err := c.Do(kernel.SetFIFO(b.index, 0, b.class(class.minor), limit)); err != nil {
			return fmt.Errorf("set the queue of a class: %w", err)
		}
	}
	if has, err := c.HasMarkFilter(b.index, b.handle, b.class(minorControl)); has || err != nil {
		return err
	}
	filter, err := kernel.SetMarkFilter(b.index, b.handle, b.class(minorControl), bpf.MarkControl)
	if err != nil {
		return err
	}
	return c.Do(filter)
}

// are says whether the bands are as set makes them. classes are those of the device,
// and limits those of its queues by parent.
func (b bands) are(c *kernel.Conn, classes map[uint32]kernel.Qdisc, limits map[uint32]uint32) bool {
	for _, want := range b.classes() {
		have, parent := classes[b.class(want.minor)], b.class(want.parent)
		if want.parent == 0 {
			parent = kernel.TCRoot
		}
		if have.Parent != parent || !isClass(have.HTB(), want.htb) {
			return false
		}
	}
	for minor, limit := range b.limits() {
		if limits[b.class(minor)] != limit {
			return false
		}
	}
	has, err := c.HasMarkFilter(b.index, b.handle, b.class(minorControl))
	return has && err == nil
}

// bandsOfPort are those below the token bucket of a port.
func bandsOfPort(index int, rate vnet.Rate, mtu int) bands {
	return bands{index: index, handle: portBands, parent: portBucket, rate: rate, mtu: mtu, limit: queue(rate, mtu)}
}

// bands of a tunnel are below its class.
func (r vxlinkRecord) bands() bands {
	return bands{
		index: int(r.Uplink), handle: kernel.Handle(r.Minor, 0), parent: handleOf(r.Minor),
		rate: vnet.Rate(r.Ceil) * 8, mtu: int(r.Mtu) + plan.OuterHeaders, limit: r.limit(),
	}
}

// setLimit gives a tunnel's class its queue: of one kind, or with a band for control.
// Best effort has no rate in which control could be first.
func (r vxlinkRecord) setLimit(c *kernel.Conn, control bool) error {
	if control && r.BestEffort == 0 {
		return r.bands().set(c)
	}
	index, class := int(r.Uplink), handleOf(r.Minor)
	if have, err := c.QdiscAt(index, class); err != nil {
		return err
	} else if have.Kind != "bfifo" && have.Handle == kernel.Handle(r.Minor, 0) {
		if err := c.DeleteQdisc(index, class); err != nil {
			return err
		}
	}
	return c.Do(kernel.SetFIFO(index, kernel.Handle(r.Minor, 0), class, r.limit()))
}

// setBands gives a port's token bucket a band for control, or has it have none.
func (w *work) setBands(i int, e end) error {
	bucket, err := w.inside.QdiscAt(e.Index, portBucket)
	if err != nil || w.link.Control == nil && bucket.Kind != "htb" {
		return err
	}
	rate, mtu := w.link.Ends[i].Rate, w.link.Ends[i].Port.MTU
	if w.link.Control != nil {
		return bandsOfPort(e.Index, rate, mtu).set(w.inside)
	}
	if err := w.inside.DeleteQdisc(e.Index, kernel.TCRoot); err != nil {
		return err
	}
	return w.inside.Do(kernel.SetTBF(e.Index, shaper(rate, mtu)))
}

// controllersOf is what is control as the program has it.
func controllersOf(control *plan.Control) (c vxlinkControllers) {
	put := func(at netip.Addr, port uint16) {
		if int(c.Count) < len(c.List) {
			c.List[c.Count].Address.U6Addr8, c.List[c.Count].Port = at.As16(), networkOrder(port)
			c.Count++
		}
	}
	for _, at := range control.Controllers {
		put(at.Addr(), at.Port())
	}
	for _, at := range control.Gateways {
		put(at, 0)
	}
	return c
}

// networkOrder is a number as its bytes lie in a packet, on a host whose lowest byte
// comes first.
func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

// setControl says what is control of the frames that enter by a slot's end.
func (r *programs) setControl(slot uint32, control *plan.Control) error {
	if control != nil {
		return r.controls.Put(slot, controllersOf(control))
	}
	if err := r.controls.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// control reads it back.
func (r *programs) control(slot uint32) *plan.Control {
	var c vxlinkControllers
	if err := r.controls.Lookup(slot, &c); err != nil {
		return nil
	}
	control := &plan.Control{}
	for _, at := range c.List[:min(int(c.Count), len(c.List))] {
		addr := netip.AddrFrom16(at.Address.U6Addr8).Unmap()
		if at.Port == 0 {
			control.Gateways = append(control.Gateways, addr)
		} else {
			control.Controllers = append(control.Controllers, netip.AddrPortFrom(addr, networkOrder(at.Port)))
		}
	}
	return control
}

// controlOf reads what is control of a link; what its ends do not have in common is
// of no plan.
func (f *fabric) controlOf(l plan.VxLink, slots [2]uint32) *plan.Control {
	control := f.programs.control(slots[0])
	for _, slot := range []uint32{slots[1], f.outletOf(l, 0, slots[0]), f.outletOf(l, 1, slots[1])} {
		if !reflect.DeepEqual(control, f.programs.control(slot)) {
			return &plan.Control{}
		}
	}
	return control
}

// bandsRight says whether a port's token bucket has a band for control if it shall,
// and else none.
func (f *fabric) bandsRight(slot uint32, d kernel.Link) bool {
	rate := f.rates[d.Index]
	_, has := f.limits[d.Index][portBucket]
	if want := f.programs.control(slot) != nil; rate == 0 || !want || !has {
		return rate == 0 || want == has
	}
	classes := make(map[uint32]kernel.Qdisc)
	list, err := f.conn.Classes(d.Index)
	if err != nil {
		f.failed = err
	}
	for _, class := range list {
		classes[class.Handle] = class
	}
	return bandsOfPort(d.Index, rate, d.MTU).are(f.conn, classes, f.limits[d.Index])
}

// limitRight says so of the queue of a tunnel's class.
func (f *fabric) limitRight(slot uint32, r vxlinkRecord) bool {
	index := int(r.Uplink)
	if f.programs.control(slot) == nil || r.BestEffort != 0 {
		return f.queues[index][handleOf(r.Minor)] == r.limit()
	}
	return r.bands().are(f.home, f.classes[index], f.queues[index])
}
