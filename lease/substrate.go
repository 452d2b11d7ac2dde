package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// SetSubstrate replaces the substrate. It is refused with ErrConflict, and
// nothing changes, if a live lease would lose what it is mapped to or what was
// booked would exceed what is left.
func (b *Book) SetSubstrate(now time.Time, sub vnet.Substrate) error {
	engine, err := embed.New(sub.WithDelays())
	if err != nil {
		return fmt.Errorf("set substrate: %w", err)
	}
	cal := calendar.New()
	index := sub.Index()
	bookings := make([][]calendar.Booking, len(b.live))
	for i, e := range b.live {
		var err error
		if e.moving() {
			err = errors.New("it is being moved: try again in a moment")
		} else if bookings[i], err = standing(engine, index, e.Lease); err == nil && !e.unplaced() {
			err = cal.Book(bookings[i]...)
		}
		if err != nil {
			return fmt.Errorf("set substrate: %w: lease %s: %w", ErrConflict, e.ID(), err)
		}
	}
	if err := overbooked(engine, cal, slices.Concat(bookings...)); err != nil {
		return fmt.Errorf("set substrate: %w: %w", ErrConflict, err)
	}
	for i, e := range b.live {
		e.hosts, e.parts = hostsOf(index, e.Lease), nil
		if !e.unplaced() {
			e.bookings = bookings[i]
		}
	}
	b.sub, b.calendar, b.noCarrier = sub, cal, nil
	b.setWorking()
	b.solver.all = prepared{sub: sub, engine: engine, index: &index}
	b.rollout.SetDown(downHosts(sub))
	b.stale, b.everyHost, b.changed.substrate = true, true, true
	return b.Tick(now)
}

// standing lists what a lease books on another substrate, where its hosts and
// tunnels must be what they were.
func standing(engine *embed.Embedder, sub vnet.Indexed, l vnet.Lease) ([]calendar.Booking, error) {
	for _, host := range l.Mapping.Nodes {
		if _, ok := sub.HostOf(string(host)); !ok {
			return nil, fmt.Errorf("host %s would be gone", host)
		}
	}
	for link, numbers := range l.VNIs {
		if err := sameTunnels(sub, l, link, len(numbers)); err != nil {
			return nil, err
		}
	}
	if err := engine.CheckPins(l.Request, l.Mapping); err != nil {
		return nil, err
	}
	return engine.Bookings(l.Held(), l.Window, l.Mapping)
}

// overbooked says which element has more booked at some time than there is.
func overbooked(engine *embed.Embedder, cal *calendar.Calendar, bookings []calendar.Booking) error {
	capacities := engine.Capacities()
	for _, k := range bookings {
		if peak := cal.Peak(k.Key, k.Window); peak > capacities[k.Key] {
			return fmt.Errorf("leases have booked %d of %s, which would have %d", peak, k.Key, capacities[k.Key])
		}
	}
	return nil
}

// Measured notes what a host was found to carry. It is refused like
// SetSubstrate when more than that is booked.
func (b *Book) Measured(now time.Time, host vnet.HostID, m vnet.Measurement) error {
	sub := b.sub
	sub.Hosts = slices.Clone(sub.Hosts)
	i := slices.IndexFunc(sub.Hosts, func(h vnet.SubstrateNode) bool { return h.Name == host })
	if i < 0 {
		return &vnet.FieldError{Path: "host", Problem: fmt.Sprintf("there is no host %s", host)}
	}
	if sub.Hosts[i].Measurement == m {
		return nil
	}
	sub.Hosts[i].Measurement = m
	sub.ApplyMeasured()
	if err := sub.Check(); err != nil {
		return err
	}
	return b.SetSubstrate(now, sub)
}

// KeepMeasured fills in what a new description of the substrate says nothing
// about: what was measured of hosts, what is down, and ports of links that stay.
func (b *Book) KeepMeasured(sub *vnet.Substrate) {
	for i, l := range sub.Links {
		if old, ok := b.sub.LinkOf(l.Name); ok {
			sub.Links[i].Ports = keptPorts(l, old)
			sub.Links[i].Down, sub.Links[i].NoCarrier, sub.Links[i].Takes = old.Down, old.NoCarrier, old.Takes
		}
	}
	for i, h := range sub.Hosts {
		if old, ok := b.sub.HostOf(string(h.Name)); ok {
			sub.Hosts[i].Down, sub.Hosts[i].Drained = old.Down, old.Drained
		}
	}
	sub.Maintenance = slices.DeleteFunc(slices.Clone(b.sub.Maintenance), func(m vnet.Maintenance) bool {
		_, host := sub.HostOf(string(m.Host))
		_, link := sub.LinkOf(m.Link)
		return !host && !link
	})
	for i, h := range sub.Hosts {
		if old, ok := b.sub.HostOf(string(h.Name)); ok && h.Measurement == (vnet.Measurement{}) {
			sub.Hosts[i].Measurement = old.Measurement
		}
	}
	sub.ApplyMeasured()
}

// keptPorts are a link's ports. An end of which none is stated has the former one, since
// labs find ports themselves and the files that they are made of state none.
func keptPorts(l, old vnet.SubstrateLink) [2]vnet.Port {
	ports := l.Ports
	for end, node := range l.Ends {
		was := slices.Index(old.Ends[:], node)
		if ports[end] == (vnet.Port{}) && was >= 0 {
			ports[end] = old.Ports[was]
		}
	}
	return ports
}

// SetNodeDefaults says what nodes may take at most that state no limit. What
// runs is changed in place.
func (b *Book) SetNodeDefaults(now time.Time, d vnet.NodeDefaults) error {
	if b.nodes != d {
		b.nodes = d
		b.compiler().Nodes = d
		for _, e := range b.live {
			if !e.asStored() {
				e.parts = nil
			}
		}
		b.stale = true
	}
	return b.Tick(now)
}
