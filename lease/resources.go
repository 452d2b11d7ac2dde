package lease

import (
	"errors"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/plan"
	"sublet/vnet"
)

// Solver keeps what is prepared of a substrate for embedding: to prepare one of
// ten thousand nodes takes as long as many admissions. The zero value is ready.
// It is not safe for concurrent use: one decision at a time.
type Solver struct {
	all, working, open prepared
	parts              []openPart // of what is open, without what is under maintenance
}

// prepared is a substrate with what is made of it when first needed.
type prepared struct {
	sub      vnet.Substrate
	engine   *embed.Embedder
	index    *vnet.Indexed
	compiler *plan.Compiler
}

// of is what is prepared of a substrate: the whole one, what of it works, or what
// of that is open.
// Both are replaced, never changed in place.
func (s *Solver) of(sub, whole, working vnet.Substrate) *prepared {
	for _, p := range []*prepared{&s.all, &s.working, &s.open} {
		if sameLists(p.sub, sub) {
			return p
		}
	}
	p := &s.open
	switch {
	case sameLists(sub, whole):
		p = &s.all
	case sameLists(sub, working):
		p = &s.working
	}
	*p = prepared{sub: sub}
	return p
}

// resources are what embeddings use, and what is booked of it.
type resources struct {
	sub      vnet.Substrate
	working  vnet.Substrate // sub without what is down
	open     vnet.Substrate // working without what is drained: where something new may go
	calendar *calendar.Calendar
	solver   *Solver
	effort   *embed.Effort // of the answer; nil: there is no bound
	now      time.Time     // of the last Tick, or of the view: what is booked before binds nothing
}

func (g *resources) engine(sub vnet.Substrate) (*embed.Embedder, error) {
	p := g.solver.of(sub, g.sub, g.working)
	if p.engine == nil {
		e, err := embed.NewPart(sub.WithDelays(), g.sub.WithDelays())
		if err != nil {
			return nil, err
		}
		p.engine = e
	}
	return p.engine, nil
}

// index finds what there is in a substrate by name.
func (g *resources) index(sub vnet.Substrate) vnet.Indexed {
	p := g.solver.of(sub, g.sub, g.working)
	if p.index == nil {
		x := sub.Index()
		p.index = &x
	}
	return *p.index
}

// compiler is that of b.sub.
func (b *Book) compiler() *plan.Compiler {
	p := b.solver.of(b.sub, b.sub, b.working)
	if p.compiler == nil {
		p.compiler = plan.NewCompiler(b.index(b.sub))
		p.compiler.Nodes = b.nodes
	}
	return p.compiler
}

// setWorking notes what of the substrate works, and what is open.
func (g *resources) setWorking() {
	g.working = g.sub.Working()
	g.open = g.working.Undrained(nil)
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
func (g *resources) embed(cal *calendar.Calendar, r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
	return g.embedAnew(cal, r, w, vnet.Mapping{})
}

// embedAnew is embed of a lease that has an embedding, with the addresses and
// VLANs that it has outside where they are free.
func (g *resources) embedAnew(cal *calendar.Calendar, r vnet.Request, w vnet.Window, was vnet.Mapping) (vnet.Mapping, error) {
	options := embed.Options{Effort: g.effort, From: g.now, Present: was}
	e, planned, err := g.engineFor(r, w, was)
	if err != nil {
		return vnet.Mapping{}, err
	}
	mapping, err := e.Embed(cal, r, w, options)
	if err == nil || len(planned) == 0 {
		return mapping, err
	}
	if len(was.Nodes) == 0 {
		return mapping, because(err, planned)
	}
	// One that is there already rather stays, and is told, than is lost.
	if e, err = g.engine(g.openTo(r, was)); err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, r, w, options)
}

// capacities are what leases may book of the whole substrate's elements.
func (g *resources) capacities() (map[string]int64, error) {
	e, err := g.engine(g.sub)
	if err != nil {
		return nil, err
	}
	return e.Capacities(), nil
}

// A request that would be refused is tried once more, from another seed and
// with so many times the patience until a first embedding is found. A refusal
// tries dozens of variants for its offers, so this hardly adds to its cost;
// sixteen times would double it.
const (
	retryPatience = 4
	retrySeed     = 1
)

// embedWithRetry is embed with a retry before a refusal.
func (v *View) embedWithRetry(r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
	mapping, err := v.embed(v.calendar, r, w)
	if infeasible := new(embed.Infeasible); !errors.As(err, &infeasible) {
		return mapping, err
	}
	e, _, failed := v.engineFor(r, w, vnet.Mapping{})
	if failed != nil {
		return vnet.Mapping{}, failed
	}
	if m, no := e.Embed(v.calendar, r, w, embed.Options{Seed: retrySeed, Patience: retryPatience, Effort: v.effort, From: v.now}); no == nil {
		return m, nil
	}
	return mapping, err
}

// bookings lists what a mapping takes.
func (g *resources) bookings(r vnet.Request, w vnet.Window, m vnet.Mapping) ([]calendar.Booking, error) {
	e, err := g.engine(g.sub)
	if err != nil {
		return nil, err
	}
	return e.Bookings(r, w, m)
}
