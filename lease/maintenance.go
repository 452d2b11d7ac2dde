package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// mostMaintenance bounds the windows that are planned at a time.
const mostMaintenance = 1000

// AddMaintenance plans work on a host or link. What is asked for from now on goes
// elsewhere, or to another time. Of the leases that have something there meanwhile
// those that can go elsewhere do so at once; it returns what becomes of each. With
// try, only that is said, and nothing is planned. The error wraps ErrNoElement.
func (b *Book) AddMaintenance(now time.Time, m vnet.Maintenance, try bool) ([]Cleared, error) {
	if try {
		trial, err := b.copy(now)
		if err != nil {
			return nil, fmt.Errorf("try maintenance: %w", err)
		}
		return trial.AddMaintenance(now, m, false)
	}
	if err := b.planMaintenance(now, m); err != nil {
		return nil, err
	}
	return b.clear(now, m)
}

// planMaintenance enters work on a host or link.
func (b *Book) planMaintenance(now time.Time, m vnet.Maintenance) error {
	host, link := false, false
	if m.Host != "" {
		_, host = b.sub.HostOf(string(m.Host))
	} else {
		_, link = b.sub.LinkOf(m.Link)
	}
	if !host && !link {
		return fmt.Errorf("%s: %w", m, ErrNoElement)
	}
	list := b.Maintenance(now)
	if len(list) >= mostMaintenance {
		return &vnet.FieldError{Problem: fmt.Sprintf("%d times of maintenance are planned, the most there can be: remove one", len(list))}
	}
	list = append(list, m)
	slices.SortStableFunc(list, func(a, b vnet.Maintenance) int { return a.Start.Compare(b.Start) })
	return b.setMaintenance(now, list)
}

// RemoveMaintenance takes it back, and returns the leases that it concerned. The
// error wraps ErrNoElement.
func (b *Book) RemoveMaintenance(now time.Time, id string) (vnet.Maintenance, []vnet.Lease, error) {
	list := b.Maintenance(now)
	i := slices.IndexFunc(list, func(m vnet.Maintenance) bool { return m.ID == id })
	if i < 0 {
		return vnet.Maintenance{}, nil, fmt.Errorf("maintenance %q: %w", id, ErrNoElement)
	}
	m := list[i]
	return m, b.Concerned(m), b.setMaintenance(now, slices.Delete(list, i, i+1))
}

// Maintenance is what is planned, or under way, in order.
func (b *Book) Maintenance(now time.Time) []vnet.Maintenance {
	return slices.DeleteFunc(slices.Clone(b.sub.Maintenance), func(m vnet.Maintenance) bool { return !now.Before(m.End) })
}

// Concerned are the leases that have something where and when there is maintenance:
// nodes, links, or links that only pass a host.
func (b *Book) Concerned(m vnet.Maintenance) (list []vnet.Lease) {
	for _, e := range b.concerned(m) {
		list = append(list, e.Lease)
	}
	return list
}

func (b *Book) concerned(m vnet.Maintenance) (list []*entry) {
	for _, e := range b.live {
		if m.Concerns(e.Lease) || m.Host != "" && e.Window.Overlaps(m.Window()) && slices.Contains(e.hosts, m.Host) {
			list = append(list, e)
		}
	}
	return list
}

// setMaintenance replaces what is planned. The substrate is another one from then
// on, so that what was decided about the former is decided anew.
func (b *Book) setMaintenance(now time.Time, list []vnet.Maintenance) error {
	b.sub.Hosts, b.sub.Maintenance = slices.Clone(b.sub.Hosts), list
	return errors.Join(b.failover(now), b.Tick(now))
}

// Planned is the maintenance during a window.
func (g *resources) Planned(w vnet.Window) []vnet.Maintenance {
	var list []vnet.Maintenance
	for _, m := range g.sub.Maintenance {
		if m.Window().Overlaps(w) {
			list = append(list, m)
		}
	}
	return list
}

// engineFor is where a request may go in a window: what is open to it, without
// what is under maintenance then.
func (g *resources) engineFor(r vnet.Request, w vnet.Window, was vnet.Mapping) (*embed.Embedder, []vnet.Maintenance, error) {
	sub, list := g.openTo(r, was), g.Planned(w)
	if len(list) == 0 {
		e, err := g.engine(sub)
		return e, nil, err
	}
	e, err := g.solver.without(sub, g.sub, list)
	return e, list, err
}

// without is an engine of a substrate without what is under maintenance. A search
// for offers asks for the same few again and again.
func (s *Solver) without(sub, whole vnet.Substrate, list []vnet.Maintenance) (*embed.Embedder, error) {
	const most = 8
	for _, p := range s.parts {
		if sameLists(p.of, sub) && slices.EqualFunc(p.list, list, func(a, b vnet.Maintenance) bool { return a.Host == b.Host && a.Link == b.Link }) {
			return p.engine, nil
		}
	}
	e, err := embed.NewPart(sub.Without(list).WithDelays(), whole.WithDelays())
	if err != nil {
		return nil, err
	}
	if len(s.parts) >= most {
		s.parts = s.parts[1:]
	}
	s.parts = append(s.parts, openPart{sub, list, e})
	return e, nil
}

// openPart is a substrate without what is under maintenance.
type openPart struct {
	of     vnet.Substrate
	list   []vnet.Maintenance
	engine *embed.Embedder
}

// because adds to a refusal what is under maintenance.
func because(err error, list []vnet.Maintenance) error {
	const most = 3
	if infeasible := new(embed.Infeasible); errors.As(err, &infeasible) {
		for _, m := range list[:min(len(list), most)] {
			infeasible.Reasons = append(infeasible.Reasons, m.String()+" is planned")
		}
	}
	return err
}

// bounds are when maintenance ends, or begins, after a time.
func (g *resources) bounds(after time.Time, of func(vnet.Maintenance) time.Time) (times []time.Time) {
	for _, m := range g.sub.Maintenance {
		if t := of(m); t.After(after) {
			times = append(times, t)
		}
	}
	return times
}
