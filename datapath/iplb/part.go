package iplb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Owner is a loop beside the part that the table belongs to while it runs, since
// it spreads other prefixes by load.
type Owner interface {
	// Call runs f in the loop.
	Call(ctx context.Context, f func()) error
	// AddTunnel and RemoveTunnel tell of tunnels, within Call.
	AddTunnel(s plan.Spread)
	RemoveTunnel(vni vnet.VNI)
}

// Part keeps a host's table of paths as its plan says: the tunnels of leased
// links take the paths that the embedding chose. It opens the table when a plan
// has spreads, or an earlier agent left some, and takes it away with the last.
type Part struct {
	host *kernel.Host
	lock func() (io.Closer, error)

	owner Owner // of the table while it runs; nil: this is

	mu       sync.Mutex
	held     io.Closer // while the table is open, and no other's
	table    *Table
	done     map[string]plan.Spread // by key, as they were told to the kernel
	attached map[string]int         // index of a device when it got its program
}

// NewPart makes the part of a host. The table has one writer at a time: lock
// fails while there is another.
func NewPart(host *kernel.Host, lock func() (io.Closer, error)) *Part {
	return &Part{host: host, lock: lock, done: make(map[string]plan.Spread), attached: make(map[string]int)}
}

// PartOf makes the part of a host where another owns the table: leases and what
// is spread by load share it.
func PartOf(host *kernel.Host, owner Owner, table *Table) *Part {
	p := NewPart(host, nil)
	p.owner, p.table = owner, table
	return p
}

// owning runs f where the table may be touched.
func (p *Part) owning(ctx context.Context, f func() error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil {
		return f()
	}
	if missed := p.owner.Call(ctx, func() { err = f() }); missed != nil {
		return missed
	}
	return err
}

// Close lets go of the table; what is in it stays.
func (p *Part) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table != nil && p.owner == nil {
		p.table.Close()
		p.held.Close()
		p.table = nil
	}
}

// Kinds is the section spreads.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindSpread} }

// Observe lists what the kernel has. A path that another agent put there, or
// whose device is another one now, is listed by its name only, and its lease if
// this agent knows it.
func (p *Part) Observe(ctx context.Context, have *plan.Host) error {
	return p.owning(ctx, func() error { return p.observe(have) })
}

func (p *Part) observe(have *plan.Host) error {
	if p.table == nil {
		if left, err := Left(p.host); err != nil || !left {
			return err
		}
		if err := p.open(); err != nil {
			return nil // its writer is another process, so nothing in it is ours
		}
	}
	if err := p.table.Repin(); err != nil {
		return err
	}
	tunnels, err := p.table.Tunnels()
	if err != nil {
		return err
	}
	for vni, relays := range tunnels {
		s := plan.Spread{VNI: vnet.VNI(vni)}
		if known, ours := p.done[s.Key()]; ours {
			s.Paths = []plan.RelayPath{{Lease: known.LeaseID()}}
			if slices.Equal(known.Paths[0].Relays, relays) && p.attachedTo(known.Interface) {
				s = known
			}
		}
		have.Add(s)
	}
	return nil
}

// attachedTo says whether a device is still the one that got the program, and
// has it.
func (p *Part) attachedTo(device string) bool {
	index, err := p.indexOf(device)
	if err != nil || index != p.attached[device] {
		return false
	}
	on, err := p.table.Chooses(index)
	return err == nil && on
}

func (p *Part) indexOf(device string) (int, error) {
	conn, err := p.host.Dial("")
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	link, err := conn.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", device, err)
	}
	return link.Index, nil
}

// Do makes one change.
func (p *Part) Do(ctx context.Context, step plan.Step) error {
	s, ok := step.Item.(plan.Spread)
	if !ok || s.VNI == 0 {
		return fmt.Errorf("%s: an agent spreads tunnels; state other prefixes to sublet paths run", step.Item.Key())
	}
	return p.owning(ctx, func() error {
		if err := p.open(); err != nil {
			return err
		}
		if step.Op == plan.Delete {
			return p.remove(s)
		}
		return p.set(s)
	})
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
	if p.owner != nil {
		p.owner.AddTunnel(s)
	}
	return nil
}

// attach gives a device the program.
func (p *Part) attach(device string) error {
	index, err := p.indexOf(device)
	if err != nil {
		return err
	}
	if err := p.table.Choose(p.host, device); err != nil {
		return err
	}
	p.attached[device] = index
	return nil
}

// Read calls read with the table, nil if there is none, and with the tunnels that
// this part gave a path.
func (p *Part) Read(ctx context.Context, read func(t *Table, tunnels []plan.Spread) error) error {
	return p.owning(ctx, func() error { return read(p.table, slices.Collect(maps.Values(p.done))) })
}

// remove takes a path out, and the table with the last.
func (p *Part) remove(s plan.Spread) error {
	if err := p.table.RemoveTunnel(uint32(s.VNI)); err != nil {
		return err
	}
	delete(p.done, s.Key())
	if p.owner != nil {
		p.owner.RemoveTunnel(s.VNI)
		return nil // the table is the daemon's too
	}
	left, err := p.table.Tunnels()
	if err != nil || len(left) > 0 {
		return err
	}
	p.table.Close()
	p.table = nil
	clear(p.attached)
	return errors.Join(UnpinSender(p.host), p.held.Close())
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
	table, err := Open(p.host, netip.IPv4Unspecified())
	if err != nil {
		return errors.Join(err, held.Close())
	}
	p.held, p.table = held, table
	return nil
}
