package embed

import (
	"fmt"
	"time"

	"sublet/embed/graph"
	"sublet/vnet"
)

// Embedder embeds requests into one substrate. It keeps what does not change
// from request to request, and working space: one call at a time.
type Embedder struct {
	sub   vnet.Substrate
	whole vnet.Substrate // the substrate of which sub is a part
	graph *graph.Graph

	isRegion bool             // it is the region of a larger substrate
	regions  map[int]*region  // by central host, made when first needed
	byKey    map[string]int64 // capacities by key, made when first needed

	tables  costTables
	least   *graph.Least // made when first needed
	amounts *inventory   // made when first needed
}

// New prepares a substrate, which must not be changed from then on; an error
// says what is malformed.
func New(sub vnet.Substrate) (*Embedder, error) {
	return NewPart(sub, sub)
}

// NewPart prepares a part of a substrate, such as what works of it: relays must
// hold its paths on the whole, where packets have more ways to stray.
func NewPart(part, whole vnet.Substrate) (*Embedder, error) {
	g, err := graph.New(part)
	if err != nil {
		return nil, err
	}
	g.Within(whole)
	return &Embedder{sub: part, whole: whole, graph: g}, nil
}

// CheckPins says which path of an embedding relays cannot hold, if any, or is
// none. Its hosts must be there.
func (e *Embedder) CheckPins(request vnet.Request, m vnet.Mapping) error {
	if len(e.whole.Relays) == 0 {
		return nil
	}
	for _, l := range request.Union().Links {
		for _, share := range m.Paths(l.Name) {
			from, _ := e.graph.Host(m.Nodes[l.Ends[0]])
			to, _ := e.graph.Host(m.Nodes[l.Ends[1]])
			walk, err := e.graph.Walk(from, to, share.Path)
			if err != nil {
				return fmt.Errorf("link %s: %w", l.Name, err)
			}
			if !e.graph.Pinned(walk) {
				return fmt.Errorf("link %s: path %v takes more than %d relays", l.Name, share.Path, vnet.MaxRelays)
			}
		}
	}
	return nil
}

// Options of one embedding. The zero value is the default.
type Options struct {
	// Budget is the processor time to spend on the search. It is counted in
	// units of work, so that the same input gives the same mapping on every
	// machine and under any load. 0: DefaultBudget.
	Budget time.Duration
	// Seed chooses among searches of equal effort; each is deterministic.
	Seed uint64
	// Patience is how many times as long as usual it may take until a first
	// embedding is found, before the request is refused; 0: 1.
	Patience int
	// Effort bounds several embeddings together; nil: there is no such bound.
	Effort *Effort
	// Present is where the network is now: it keeps addresses of ways out and
	// VLANs of exits where they are free.
	Present vnet.Mapping
	// From is the present: what is booked before it binds nothing. Zero: all of
	// the window counts.
	From time.Time
}

// effort is Options.Effort, or one without a bound.
func (o Options) effort() *Effort {
	if o.Effort == nil {
		return new(Effort)
	}
	return o.Effort
}

// work is the budget in units of work.
func (o Options) work() int {
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	return int(min(o.Budget, time.Hour) * workPerMillisecond / time.Millisecond)
}

// DefaultBudget of a request.
const DefaultBudget = 5 * time.Millisecond

// shortestPaths is the working space of searches for walks of least cost.
func (e *Embedder) shortestPaths() *graph.Least {
	if e.least == nil {
		e.least = e.graph.NewLeast()
	}
	return e.least
}

// inventory lists the resources of the substrate.
func (e *Embedder) inventory() *inventory {
	if e.amounts == nil {
		e.amounts = inventoryOf(e.sub)
	}
	return e.amounts
}
