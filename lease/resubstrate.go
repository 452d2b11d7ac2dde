package lease

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// Displaced is a lease that cannot stay where it is on another substrate.
type Displaced struct {
	Lease   vnet.LeaseID
	Running bool     // it is on its hosts: to go elsewhere interrupts it
	Ends    bool     // there is no other place for it
	Why     []string // it ends
}

// Resubstrate replaces the substrate, whatever the leases have of the present one.
// Those for which there is no room any more, the last admitted first, go
// elsewhere, as after a failure: nodes of running ones stay where they are unless
// their hosts go. What finds no place ends. Running leases are displaced, and others
// end, only if displace says so: else the error is a *vnet.Rejection and nothing
// changes. With try, only what would come of it is said.
func (b *Book) Resubstrate(now time.Time, sub vnet.Substrate, displace, try bool) ([]Displaced, error) {
	if err := b.Tick(now); err != nil {
		return nil, err
	}
	trial, err := b.copy(now)
	if err != nil {
		return nil, fmt.Errorf("try another substrate: %w", err)
	}
	displaced, err := trial.resubstrate(now, sub)
	if err != nil || try {
		return displaced, err
	}
	if refusal := refuseDisplacing(displaced); refusal != nil && !displace {
		return displaced, refusal
	}
	return b.resubstrate(now, sub)
}

// copy is another book with the same leases, for trials.
func (b *Book) copy(now time.Time) (*Book, error) {
	state := State{Substrate: b.sub, Leases: b.Leases(), Plans: maps.Clone(b.Plans()), Counters: b.Changes().Counters}
	c, err := Restore(now, state)
	if err != nil {
		return nil, err
	}
	c.FailAfter, c.Prices, c.MostMoves, c.nodes, c.now = b.FailAfter, b.Prices, b.MostMoves, b.nodes, b.now
	return c, nil
}

// refuseDisplacing says who is in the way of a substrate; nil: nobody notices.
func refuseDisplacing(displaced []Displaced) *vnet.Rejection {
	var reasons []string
	for _, d := range displaced {
		switch {
		case d.Ends:
			reasons = append(reasons, fmt.Sprintf("lease %s would end: %s", d.Lease, brief(d.Why)))
		case d.Running:
			reasons = append(reasons, fmt.Sprintf("lease %s would be interrupted while it goes elsewhere", d.Lease))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &vnet.Rejection{Reasons: reasons, Never: "state that leases may be displaced, or change less"}
}

// resubstrate replaces the substrate. Meanwhile what goes counts as down, so that
// where leases were is still known.
func (b *Book) resubstrate(now time.Time, sub vnet.Substrate) ([]Displaced, error) {
	if slices.ContainsFunc(b.active, (*entry).moving) {
		return nil, fmt.Errorf("set substrate: %w: links of leases are being moved: try again in a moment", ErrConflict)
	}
	stay, displaced, err := b.standingOn(now, sub)
	if err != nil {
		return nil, fmt.Errorf("set substrate: %w", err)
	}
	if len(displaced) == 0 {
		return nil, b.SetSubstrate(now, sub)
	}
	if err := b.enterInterim(withGone(sub, b.sub), stay); err != nil {
		return nil, fmt.Errorf("set substrate: %w", err)
	}
	b.byConstraint(displaced)
	list := make([]Displaced, 0, len(displaced))
	for _, e := range displaced {
		d, err := b.displace(now, e)
		if err != nil {
			return nil, fmt.Errorf("displace %s: %w", e.ID(), err)
		}
		list = append(list, d)
	}
	return list, b.SetSubstrate(now, sub)
}

// standingOn lists what leases book that can stay on another substrate, and those
// that cannot. What runs has precedence, then what was admitted first.
func (b *Book) standingOn(now time.Time, sub vnet.Substrate) (stay map[*entry][]calendar.Booking, displaced []*entry, err error) {
	engine, err := embed.New(sub.WithDelays())
	if err != nil {
		return nil, nil, err
	}
	cal, index, capacities := calendar.New(), sub.Index(), engine.Capacities()
	lacks := func(k calendar.Booking) bool {
		w, ahead := k.Window.Since(now)
		return ahead && cal.Residual(k.Key, capacities[k.Key], w) < k.Amount
	}
	order := slices.Clone(b.live)
	slices.SortStableFunc(order, func(x, y *entry) int { return rank(x) - rank(y) })
	stay = make(map[*entry][]calendar.Booking)
	for _, e := range order {
		bookings, err := standing(engine, index, e.Lease)
		switch {
		case err == nil && e.unplaced():
			stay[e] = nil
		case err == nil && !slices.ContainsFunc(bookings, lacks):
			stay[e] = bookings
			if err := cal.Book(bookings...); err != nil {
				return nil, nil, err
			}
		default:
			displaced = append(displaced, e)
		}
	}
	return stay, displaced, nil
}

// rank is 0 of what runs.
func rank(e *entry) int {
	if e.onHosts() {
		return 0
	}
	return 1
}

// withGone is a substrate with what it lacks of a former one, as down.
func withGone(sub, former vnet.Substrate) vnet.Substrate {
	sub.Hosts, sub.Switches, sub.Links = slices.Clone(sub.Hosts), slices.Clone(sub.Switches), slices.Clone(sub.Links)
	sub.NAT, sub.Exits, sub.Joins = slices.Clone(sub.NAT), slices.Clone(sub.Exits), slices.Clone(sub.Joins)
	for _, h := range former.Hosts {
		if _, ok := sub.HostOf(string(h.Name)); !ok && !slices.Contains(sub.Switches, string(h.Name)) {
			h.Down = true
			sub.Hosts = append(sub.Hosts, h)
		}
	}
	for _, s := range former.Switches {
		if _, host := sub.HostOf(s); !host && !slices.Contains(sub.Switches, s) {
			sub.Switches = append(sub.Switches, s)
		}
	}
	for _, l := range former.Links {
		if _, ok := sub.LinkOf(l.Name); !ok {
			l.Down = true
			sub.Links = append(sub.Links, l)
		}
	}
	return sub
}

// enterInterim makes a substrate the book's, with those leases booked that stay.
func (b *Book) enterInterim(sub vnet.Substrate, stay map[*entry][]calendar.Booking) error {
	engine, err := embed.New(sub.WithDelays())
	if err != nil {
		return err
	}
	cal, index := calendar.New(), sub.Index()
	for _, e := range b.live {
		e.bookings = stay[e]
		if err := cal.Book(e.bookings...); err != nil {
			return err
		}
	}
	b.sub, b.calendar, b.noCarrier = sub, cal, nil
	b.setWorking()
	b.solver.all = prepared{sub: sub, engine: engine, index: &index}
	return nil
}

// displace gives a lease another place, or ends it.
func (b *Book) displace(now time.Time, e *entry) (Displaced, error) {
	d := Displaced{Lease: e.ID(), Running: e.onHosts()}
	why, err := b.reembed(now, e)
	if err != nil || why == nil {
		return d, err
	}
	d.Ends, d.Why = true, why
	return d, b.end(now, e, "the substrate was changed: "+brief(why))
}
