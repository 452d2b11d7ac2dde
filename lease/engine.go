package lease

import (
	"errors"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/plan"
	"sublet/vnet"
)

// engines are prepared substrates: to prepare one of ten thousand nodes takes
// as long as many admissions.
type engines struct{ all, working prepared }

// prepared is a substrate with what is made of it when first needed.
type prepared struct {
	sub      vnet.Substrate
	engine   *embed.Engine
	index    *vnet.Indexed
	compiler *plan.Compiler
}

// prepared is that of the substrate b.sub or, of what of it works, b.working.
// Both are replaced, never changed in place.
func (b *Book) prepared(sub vnet.Substrate) *prepared {
	for _, p := range []*prepared{&b.engines.all, &b.engines.working} {
		if sameLists(p.sub, sub) {
			return p
		}
	}
	p := new(prepared)
	if sameLists(sub, b.sub) {
		p = &b.engines.all
	} else if sameLists(sub, b.working) {
		p = &b.engines.working
	}
	*p = prepared{sub: sub}
	return p
}

func (b *Book) engine(sub vnet.Substrate) (*embed.Engine, error) {
	p := b.prepared(sub)
	if p.engine == nil {
		e, err := embed.NewPart(sub.WithDelays(), b.sub.WithDelays())
		if err != nil {
			return nil, err
		}
		p.engine = e
	}
	return p.engine, nil
}

// index finds what there is in a substrate by name.
func (b *Book) index(sub vnet.Substrate) vnet.Indexed {
	p := b.prepared(sub)
	if p.index == nil {
		x := sub.Index()
		p.index = &x
	}
	return *p.index
}

// compiler is that of b.sub.
func (b *Book) compiler() *plan.Compiler {
	p := b.prepared(b.sub)
	if p.compiler == nil {
		p.compiler = plan.NewCompiler(b.index(b.sub))
		p.compiler.Nodes = b.nodes
	}
	return p.compiler
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
