package iplbd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

	daemon *Daemon // that owns the table while it runs; nil: this does
	stop   func()  // ends what Open began; nil: nothing

	mu       sync.Mutex
	held     io.Closer // while the table is open, and no daemon's
	table    *iplb.Table
	done     map[string]plan.Spread // by key, as they were told to the kernel
	attached map[string]int         // index of a device when it got its program
}

// NewPart makes the part of a host. The table has one writer at a time: lock
// fails while there is another.
func NewPart(host *kernel.Host, lock func() (io.Closer, error)) *Part {
	return &Part{host: host, lock: lock, done: make(map[string]plan.Spread), attached: make(map[string]int)}
}

// PartOf makes the part of a host whose daemon runs beside it: leases and what
// is spread by load share its table.
func PartOf(d *Daemon, host *kernel.Host) *Part {
	p := NewPart(host, nil)
	p.daemon, p.table = d, d.Table
	return p
}

// owning runs f where the table may be touched.
func (p *Part) owning(ctx context.Context, f func() error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.daemon == nil {
		return f()
	}
	if missed := p.daemon.call(ctx, func() { err = f() }); missed != nil {
		return missed
	}
	return err
}

// Close ends what Open began and lets go of the table; what is in it stays.
func (p *Part) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table != nil && p.daemon == nil {
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
		if left, err := iplb.Left(p.host); err != nil || !left {
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
	if p.daemon != nil {
		p.daemon.addTunnel(s)
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

// Ask lists the tunnels of leases and their paths.
func (p *Part) Ask(ctx context.Context) (Status, error) {
	s := Status{Host: p.host.Host, Moves: []Move{}, Prefixes: []PrefixStatus{}}
	err := p.owning(ctx, func() (err error) {
		if p.table == nil {
			return nil
		}
		if s.Outcomes, err = p.table.Counts(); err != nil {
			return err
		}
		tunnels, err := tunnelStatuses(p.table, slices.Collect(maps.Values(p.done)))
		s.Prefixes = append(s.Prefixes, tunnels...)
		return err
	})
	return s, err
}

// remove takes a path out, and the table with the last.
func (p *Part) remove(s plan.Spread) error {
	if err := p.table.RemoveTunnel(uint32(s.VNI)); err != nil {
		return err
	}
	delete(p.done, s.Key())
	if p.daemon != nil {
		delete(p.daemon.leased, s.VNI)
		return nil // the table is the daemon's too
	}
	left, err := p.table.Tunnels()
	if err != nil || len(left) > 0 {
		return err
	}
	p.table.Close()
	p.table = nil
	clear(p.attached)
	return errors.Join(iplb.UnpinSender(p.host), p.held.Close())
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
