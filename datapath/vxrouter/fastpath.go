package vxrouter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// pinsPrefix begins the directories of pins of routers.
const pinsPrefix = "vxrouter:"

// pinsOf names a router's directory of pins, where dots are refused; names
// have no colons.
func pinsOf(key string) string { return pinsPrefix + strings.ReplaceAll(key, ".", ":") }

// look brings the copies to what the kernel has now.
func (f *follower) look() {
	var ports map[int]port
	err := kernel.In(f.ns, func() (err error) {
		var off string
		if ports, off, err = surveyPorts(f.conn, f.fabric()); err != nil {
			return err
		}
		for _, t := range f.copies {
			t.refresh(f.conn, ports, off)
		}
		return nil
	})
	if err == nil {
		err = f.attach(ports)
	}
	if err != nil {
		for _, t := range f.copies {
			t.off = unfollowed(err)
		}
	}
	f.set()
	f.keep()
}

func unfollowed(err error) string { return "cannot be followed: " + err.Error() }

// fabric is the id by which the router's namespace knows the lease's fabric;
// -1: it does not.
func (f *follower) fabric() int {
	id, _, _ := plan.ParseNamespace(f.key)
	n, err := f.host.NamespaceOf(f.conn, plan.Fabric(id))
	if err != nil {
		return -1
	}
	return n
}

// attach puts the program on every port, and chains it.
func (f *follower) attach(ports map[int]port) error {
	if err := f.pins.Repin(); err != nil {
		return err
	}
	slots := make(map[uint32]bool)
	for index, p := range ports {
		hook := bpf.Hook{Namespace: f.ns, Index: index, Attach: ebpf.AttachTCXIngress, First: true}
		if err := f.pins.Attach(pinOf(p.name), hook, f.program); err != nil {
			return err
		}
		if err := f.joined.Join(f.ns, index, p.slot, 0); err != nil {
			return err
		}
		slots[p.slot] = true
	}
	return f.joined.LeaveAll(slots)
}

// pinOf names the pin of a port's link; a tenant may have given the port a
// name with dots.
func pinOf(port string) string { return "port_" + strings.ReplaceAll(port, ".", ":") }

// set says which copies may be used, and for how long.
func (f *follower) set() {
	err := f.renew()
	next := fastpathState{Until: uint64(now() + belief), Changed: f.state.Changed, Ip4: f.copies[0].row(), Ip6: f.copies[1].row()}
	locals := f.copies[0].view.locals
	for i, a := range locals[:min(len(locals), maxLocals)] {
		next.Locals[i] = ip4(a)
	}
	if err == nil {
		err = f.states.Put(uint32(0), next)
	}
	if err != nil {
		f.say(unfollowed(err), unfollowed(err))
		return
	}
	f.state = next
	f.say(f.copies[0].off, f.copies[1].off)
}

// renew makes the program forget what it found in copies that have changed,
// before they are said to be the kernel's.
func (f *follower) renew() error {
	if f.state.Changed != 0 && !f.copies[0].fresh && !f.copies[1].fresh {
		return nil
	}
	f.state.Changed = uint64(now())
	if err := f.states.Put(uint32(0), f.state); err != nil {
		return err
	}
	f.copies[0].fresh, f.copies[1].fresh = false, false
	return nil
}

// say keeps why the stack forwards IPv4, and IPv6.
func (f *follower) say(offs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(f.offs[:], offs)
}

// suspend leaves everything to the stack until the next look.
func (f *follower) suspend(why string) {
	f.state.Ip4.On, f.state.Ip6.On = 0, 0
	_ = f.states.Put(uint32(0), f.state) // or the kernel's version differs, or belief ends
	f.say(why, why)
}

// pollState looks for what the kernel does not tell of, and goes on believing. Of
// what keeps IPv6 alone from the fast path the kernel tells.
func (f *follower) pollState() {
	if f.state.Ip4.On == 0 || f.changed() {
		f.look()
		return
	}
	f.state.Until = uint64(now() + belief)
	if err := f.states.Put(uint32(0), f.state); err != nil {
		f.say(unfollowed(err), unfollowed(err))
	}
	f.keep()
}

// changed says whether the copies are not what the kernel has any more.
func (f *follower) changed() (changed bool) {
	err := kernel.In(f.ns, func() error {
		off, err := pollState()
		changed = off != ""
		for _, t := range f.copies {
			version, failed := t.number()
			changed = changed || failed != nil || version != t.read
		}
		return err
	})
	return changed || err != nil
}

// keep asks for the neighbours that routes lead to and that are not known.
func (f *follower) keep() {
	for _, t := range f.copies {
		if t.off != "" {
			continue
		}
		for _, n := range t.missing() {
			f.touch(n)
		}
	}
}

// now is the program's clock.
func now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // never fails with this clock
	return time.Duration(t.Nano())
}

// path is what the program counted, and why it does not do more.
func (f *follower) path() (report.Forwarding, error) {
	f.mu.Lock()
	path := report.Forwarding{Kind: plan.KindVxRouter, Of: f.key, Fast: f.offs[0] == "", Why: why(f.offs[0], f.offs[1])}
	f.mu.Unlock()
	var perCPU []fastpathCount
	if err := f.counts.Lookup(uint32(0), &perCPU); err != nil {
		return path, err
	}
	path.Fallbacks = make(map[string]uint64)
	for _, c := range perCPU {
		path.Packets += c.Packets
		path.Bytes += c.Bytes
		path.Chained += c.Chained
		for i, n := range c.Fallbacks {
			if n > 0 {
				path.Fallbacks[fallbacks()[i]] += n
			}
		}
	}
	return path, nil
}

// why says what keeps packets from the fast path. IPv4 is what the plan is of;
// IPv6 the tenant's own.
func why(off4, off6 string) string {
	switch {
	case off4 == off6:
		return off4
	case off4 == "":
		return "IPv6: " + off6
	case off6 == "":
		return "IPv4: " + off4
	}
	return off4 + "; IPv6: " + off6
}

// Samples tell of every router.
func (p *Part) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []report.Sample
	for _, key := range slices.Sorted(maps.Keys(p.failed)) {
		if lease := leaseOf(key); of.Holds(lease) {
			list = append(list, report.Forwarding{Kind: plan.KindVxRouter, Of: key, Why: p.failed[key].Error()}.Sample(lease))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.followed)) {
		lease := leaseOf(key)
		if !of.Holds(lease) {
			continue
		}
		path, err := p.followed[key].path()
		if err != nil {
			return nil, fmt.Errorf("read router %s: %w", key, err)
		}
		list = append(list, path.Sample(lease))
	}
	return list, nil
}

// leaseOf is the lease of a router, whose key is its namespace.
func leaseOf(key string) vnet.LeaseID {
	id, _, _ := plan.ParseNamespace(key)
	return id
}

// setFastpath follows a router that forwards, and no longer one that does not. A
// router whose namespace was made anew is followed anew. That it cannot be
// done is no error: the stack forwards.
func (p *Part) setFastpath(key string, forward bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.followed[key]
	if f != nil && (!forward || !kernel.SameFile(f.ns, p.host.Path(key))) {
		_ = f.end(true)
		delete(p.followed, key)
		f = nil
	}
	if f != nil || !forward {
		if !forward {
			delete(p.failed, key)
			_ = p.forget(key)
		}
		return
	}
	f, err := follow(p.host, key)
	if err != nil {
		p.failed[key] = err
		return
	}
	delete(p.failed, key)
	p.followed[key] = f
}

// forget takes away the pins of a router that nobody follows.
func (p *Part) forget(key string) error {
	if left, err := bpf.Left(p.host, pinsOf(key)); err != nil || !left {
		return err
	}
	pins, err := bpf.OpenPins(p.host, pinsOf(key))
	if err != nil {
		return err
	}
	if err := pins.Unpin(); err != nil {
		return err
	}
	return pins.Close()
}

// Close stops following. What is pinned stays, and is believed for a while.
func (p *Part) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, f := range p.followed {
		_ = f.end(false)
		delete(p.followed, key)
	}
}
