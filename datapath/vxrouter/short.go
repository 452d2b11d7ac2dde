package vxrouter

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// pinsPrefix begins the directories of pins of routers.
const pinsPrefix = "vxrouter:"

// pinsOf names a router's directory of pins, where dots are refused; names
// have no colons.
func pinsOf(key string) string { return pinsPrefix + strings.ReplaceAll(key, ".", ":") }

// look brings the copy to what the kernel has now.
func (f *follower) look() {
	var version uint32
	var off string
	err := kernel.In(f.ns, func() (err error) {
		if version, err = f.number(); err != nil {
			return err
		}
		// Who has just increased it may not have changed the table yet, but
		// holds the lock that this change, of nothing, waits for.
		if err := f.conn.Do(kernel.ChangeLink(loopback)); err != nil {
			return err
		}
		f.view, off, err = survey(f.conn)
		return err
	})
	if err == nil && off == "" {
		err = f.write(f.view.ways())
	}
	if err == nil {
		err = f.attach()
	}
	if err != nil {
		off = "cannot be followed: " + err.Error()
	}
	f.set(off, version)
	if off == "" {
		f.keep()
	}
}

// loopback is the index of every namespace's first device.
const loopback = 1

// number reads the version of the kernel's table in the thread's namespace.
func (f *follower) number() (uint32, error) {
	version, err := f.version.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		return 0, fmt.Errorf("read the version of the kernel's table: %w", err)
	}
	return version, nil
}

// write changes what differs in the program's table. While routes differ the
// program does not use it: the kernel's version is another than the copy's.
func (f *follower) write(want map[shortKey]shortWay) error {
	for key := range f.table {
		if _, stays := want[key]; stays {
			continue
		}
		if err := f.ways.Delete(key); err != nil {
			return fmt.Errorf("take a route: %w", err)
		}
		delete(f.table, key)
	}
	for key, way := range want {
		if have, there := f.table[key]; there && have == way {
			continue
		}
		if err := f.ways.Put(key, way); err != nil {
			return fmt.Errorf("put a route: %w", err)
		}
		f.table[key] = way
	}
	return nil
}

// attach puts the program on every port.
func (f *follower) attach() error {
	for index, p := range f.view.ports {
		hook := bpf.Hook{Namespace: f.ns, Index: index, Attach: ebpf.AttachTCXIngress, First: true}
		if err := f.pins.Attach(pinOf(p.name), hook, f.program); err != nil {
			return err
		}
	}
	return nil
}

// pinOf names the pin of a port's link; a tenant may have given the port a
// name with dots.
func pinOf(port string) string { return "port_" + strings.ReplaceAll(port, ".", ":") }

// set says whether the copy may be used, and for how long.
func (f *follower) set(off string, version uint32) {
	next := shortState{Version: version, Until: uint64(now() + belief)}
	if off == "" {
		next.On = 1
	}
	for i, a := range f.view.locals[:min(len(f.view.locals), maxLocals)] {
		next.Locals[i] = ip4(a)
	}
	if err := f.states.Put(uint32(0), next); err != nil {
		off = "cannot be followed: " + err.Error()
	}
	f.state = next
	f.say(off)
}

func (f *follower) say(off string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = off
}

// suspend leaves everything to the stack until the next look.
func (f *follower) suspend(why string) {
	f.state.On = 0
	_ = f.states.Put(uint32(0), f.state) // or the kernel's version differs, or belief ends
	f.say(why)
}

// glance looks for what the kernel does not tell of, and goes on believing.
func (f *follower) glance() {
	if f.state.On == 0 {
		f.look()
		return
	}
	var off string
	var version uint32
	err := kernel.In(f.ns, func() (err error) {
		if off, err = glance(); err == nil {
			version, err = f.number()
		}
		return err
	})
	if err != nil || off != "" || version != f.state.Version {
		f.look()
		return
	}
	f.state.Until = uint64(now() + belief)
	if err := f.states.Put(uint32(0), f.state); err != nil {
		f.say("cannot be followed: " + err.Error())
	}
	f.keep()
}

// keep asks for the neighbours that routes lead to and that are not known.
func (f *follower) keep() {
	for n := range f.view.wanted() {
		if _, known := f.view.neighbours[n]; !known {
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
func (f *follower) path() (plan.Path, error) {
	f.mu.Lock()
	path := plan.Path{Kind: plan.KindVxRouter, Of: f.key, Short: f.off == "", Why: f.off}
	f.mu.Unlock()
	var perCPU []shortCount
	if err := f.counts.Lookup(uint32(0), &perCPU); err != nil {
		return path, err
	}
	path.Passed = make(map[string]uint64)
	for _, c := range perCPU {
		path.Packets += c.Packets
		path.Bytes += c.Bytes
		for i, n := range c.Passed {
			if n > 0 {
				path.Passed[passes[i]] += n
			}
		}
	}
	return path, nil
}

// Paths tells of every router.
func (p *Part) Paths() ([]plan.Path, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []plan.Path
	for _, key := range slices.Sorted(maps.Keys(p.failed)) {
		list = append(list, plan.Path{Kind: plan.KindVxRouter, Of: key, Why: p.failed[key].Error()})
	}
	for _, key := range slices.Sorted(maps.Keys(p.followed)) {
		path, err := p.followed[key].path()
		if err != nil {
			return nil, fmt.Errorf("read router %s: %w", key, err)
		}
		list = append(list, path)
	}
	return list, nil
}

// shorten follows a router that forwards, and no longer one that does not. A
// router whose namespace was made anew is followed anew. That it cannot be
// done is no error: the stack forwards.
func (p *Part) shorten(key string, forward bool) {
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
	if _, err := os.Stat(p.host.Dir("bpf") + "/" + pinsOf(key)); err != nil {
		return nil
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
