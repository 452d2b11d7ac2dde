package iplbd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Part keeps a host's table of paths as its plan says: the tunnels of leased
// links take the paths that the embedding chose. It opens the table when a plan
// has spreads, or an earlier agent left some, and takes it away with the last.
type Part struct {
	host *kernel.Host
	lock func() (io.Closer, error)

	mu       sync.Mutex
	held     io.Closer // while the table is open
	table    *iplb.Table
	done     map[string]plan.Spread // by key, as they were told to the kernel
	attached map[string]int         // index of a device when it got its program
}

// NewPart makes the part of a host. The table has one writer at a time: lock
// fails while there is another.
func NewPart(host *kernel.Host, lock func() (io.Closer, error)) *Part {
	return &Part{host: host, lock: lock, done: make(map[string]plan.Spread), attached: make(map[string]int)}
}

// Close lets go of the table; what is in it stays.
func (p *Part) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table != nil {
		p.table.Close()
		p.held.Close()
		p.table = nil
	}
}

// Kinds is the section spreads.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindSpread} }

// Observe lists what the kernel has. A path that another agent put there, or
// whose device is another one now, is listed by its name only.
func (p *Part) Observe(_ context.Context, have *plan.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table == nil {
		if left, err := iplb.Left(p.host); err != nil || !left {
			return err
		}
		if err := p.open(); err != nil {
			return nil // its writer is another process, so nothing in it is ours
		}
	}
	tunnels, err := p.table.Tunnels()
	if err != nil {
		return err
	}
	for vni, relays := range tunnels {
		s := plan.Spread{VNI: vnet.VNI(vni)}
		if known := p.done[s.Key()]; known.VNI != 0 && slices.Equal(known.Paths[0].Relays, relays) && p.attachedTo(known.Interface) {
			s = known
		}
		have.Add(s)
	}
	return nil
}

// attachedTo says whether a device is still the one that got the program.
func (p *Part) attachedTo(device string) bool {
	conn, err := p.host.Dial("")
	if err != nil {
		return false
	}
	defer conn.Close()
	link, err := conn.LinkByName(device)
	return err == nil && link.Index == p.attached[device]
}

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	s, ok := step.Item.(plan.Spread)
	if !ok || s.VNI == 0 {
		return fmt.Errorf("%s: an agent spreads tunnels; state other prefixes to sublet paths run", step.Item.Key())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(); err != nil {
		return err
	}
	if step.Op == plan.Delete {
		return p.remove(s)
	}
	return p.set(s)
}

func (p *Part) set(s plan.Spread) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := p.table.SetTunnel(uint32(s.VNI), s.Paths[0].Relays); err != nil {
		return err
	}
	if err := p.attach(s.Interface); err != nil {
		return err
	}
	p.done[s.Key()] = s
	return nil
}

// attach gives a device the program.
func (p *Part) attach(device string) error {
	conn, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := conn.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	if p.attached[device] == link.Index {
		return nil
	}
	if err := p.table.Choose(p.host, device); err != nil {
		return err
	}
	p.attached[device] = link.Index
	return nil
}

// remove takes a path out, and the table with the last.
func (p *Part) remove(s plan.Spread) error {
	if err := p.table.RemoveTunnel(uint32(s.VNI)); err != nil {
		return err
	}
	delete(p.done, s.Key())
	left, err := p.table.Tunnels()
	if err != nil || len(left) > 0 {
		return err
	}
	p.table.Close()
	p.table = nil
	clear(p.attached)
	return errors.Join(iplb.Unpin(p.host), p.held.Close())
}

// open opens the table, if it is not open.
func (p *Part) open() error {
	if p.table != nil {
		return nil
	}
	held, err := p.lock()
	if err != nil {
		return err
	}
	// Lists go into packets that have their source already.
	table, err := iplb.Open(p.host, netip.IPv4Unspecified())
	if err != nil {
		return errors.Join(err, held.Close())
	}
	p.held, p.table = held, table
	return nil
}
