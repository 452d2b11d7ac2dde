package lease

import (
	"errors"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// engines are prepared substrates: to prepare one of ten thousand nodes takes
// as long as many admissions.
type engines struct{ all, working prepared }

type prepared struct {
	sub    vnet.Substrate
	engine *embed.Engine
}

// engine is that of the substrate b.sub or, of what of it works, b.working.
// Both are replaced, never changed in place.
func (b *Book) engine(sub vnet.Substrate) (*embed.Engine, error) {
	for _, p := range []*prepared{&b.engines.all, &b.engines.working} {
		if p.engine != nil && sameLists(p.sub, sub) {
			return p.engine, nil
		}
	}
	e, err := embed.NewPart(sub, b.sub)
	if err != nil {
		return nil, err
	}
	if sameLists(sub, b.working) && !sameLists(sub, b.sub) {
		b.engines.working = prepared{sub, e}
	} else if sameLists(sub, b.sub) {
		b.engines.all = prepared{sub, e}
	}
	return e, nil
}

// sameLists says whether two substrates share their lists, and so are one.
func sameLists(a, b vnet.Substrate) bool {
	return shared(a.Hosts, b.Hosts) && shared(a.Links, b.Links) && shared(a.Switches, b.Switches)
}

// shared says whether two lists are the same piece of memory.
func shared[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// embed finds where a request fits beside what a calendar holds, on what works.
func (b *Book) embed(cal *calendar.Calendar, r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
	e, err := b.engine(b.working)
	if err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, r, w, embed.Options{})
}

// capacities are what leases may book of the whole substrate's elements.
func (b *Book) capacities() (map[string]int64, error) {
	e, err := b.engine(b.sub)
	if err != nil {
		return nil, err
	}
	return e.Capacities(), nil
}

// Patience of the second look at a request that would be refused: so many
// times as long until a first embedding is found, from other beginnings. A
// refusal tries dozens of variants for its offers, so it hardly costs more for
// it; sixteen times, as the benchmark's once for 125 requests, would double it.
const (
	secondPatience = 4
	secondSeed     = 1
)

// embedOrLookAgain is embed with a second look before a refusal.
func (b *Book) embedOrLookAgain(r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
	mapping, err := b.embed(b.calendar, r, w)
	if infeasible := new(embed.Infeasible); !errors.As(err, &infeasible) {
		return mapping, err
	}
	e, failed := b.engine(b.working)
	if failed != nil {
		return vnet.Mapping{}, failed
	}
	if m, no := e.Embed(b.calendar, r, w, embed.Options{Seed: secondSeed, Patience: secondPatience}); no == nil {
		return m, nil
	}
	return mapping, err
}

// bookings lists what a mapping takes.
func (b *Book) bookings(r vnet.Request, w vnet.Window, m vnet.Mapping) ([]calendar.Booking, error) {
	e, err := b.engine(b.sub)
	if err != nil {
		return nil, err
	}
	return e.Bookings(r, w, m)
}
