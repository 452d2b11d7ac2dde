package overlay

import (
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Entries follow the host: whenever a link, an address, a route or a
// neighbour changes, every next hop is looked up anew, and the entries of those
// that changed are written. Ways are few, one for each pair of hosts, however
// many entries there are.

// gather is how long to wait for the rest of a burst of events, and listenSize
// one read of them.
const (
	gather     = time.Millisecond
	listenSize = 64 << 10
)

// follow listens until stop is closed.
func (p *Part) follow(fd int, stop <-chan struct{}) {
	defer unix.Close(fd)
	buffer := make([]byte, listenSize)
	for {
		select {
		case <-stop:
			return
		default:
		}
		_, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil && err != unix.ENOBUFS {
			return // Observe still looks
		}
		time.Sleep(gather)
		for err == nil || err == unix.ENOBUFS {
			_, _, err = unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
		}
		p.mu.Lock()
		_ = p.refresh() // the next event or audit tries again
		p.mu.Unlock()
	}
}

// listen starts follow, once.
func (p *Part) listen() error {
	if p.stop != nil {
		return nil
	}
	var fd int
	err := kernel.In(p.host.Home(), func() (err error) {
		fd, err = kernel.Listen()
		return err
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{}) // Close takes that of the part away, perhaps before follow begins
	p.stop = stop
	p.done.Go(func() { p.follow(fd, stop) })
	return nil
}

// refresh looks up all next hops and rewrites the entries of those that changed.
func (p *Part) refresh() error {
	if p.table == nil {
		return nil
	}
	r, err := newResolver(p.home)
	if err != nil {
		return err
	}
	changed := make(map[path]bool)
	for at := range p.paths() {
		w, err := r.nextHop(at)
		if err != nil {
			return err
		}
		before, known := p.nextHops[at]
		changed[at] = !known || before != w
		p.nextHops[at] = w
	}
	for at := range p.nextHops {
		if _, used := changed[at]; !used {
			delete(p.nextHops, at)
		}
	}
	p.keep(r.kept)
	if p.Changed != nil {
		for _, differs := range changed {
			if differs {
				p.Changed()
				break
			}
		}
	}
	p.refreshTables(changed)
	return p.rewrite(changed)
}

// paths are those of all entries.
func (p *Part) paths() map[path]bool {
	all := make(map[path]bool)
	for _, item := range p.items {
		all[pathOf(item)] = true
	}
	for _, t := range p.tables {
		for _, e := range t.Entries {
			all[t.path(e)] = true
		}
	}
	return all
}

// keep lets go of next hops that no path uses any more.
func (p *Part) keep(now map[neighbour]bool) {
	for n := range p.kept {
		if !now[n] {
			_ = p.home.Do(kernel.LeaveNeighbour(n.address, n.index)) // gone is fine
		}
	}
	p.kept = now
}

// rewrite writes the entries whose next hop changed.
func (p *Part) rewrite(changed map[path]bool) error {
	for id, item := range p.items {
		if !changed[pathOf(item)] {
			continue
		}
		have, ok, err := p.table.entry(id)
		if err != nil {
			return err
		}
		if !ok {
			continue // Observe tells
		}
		e, err := p.build(item, have.Slot)
		if err != nil {
			return err
		}
		if err := p.table.objects.Entries.Put(id, e); err != nil {
			return err
		}
	}
	return nil
}
