package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// Options of a run.
type Options struct {
	Embed     embed.Options
	Objective vnet.Objective
	Split     bool                 // links may be split over vnet.MaxPaths paths
	Clock     func() time.Duration // time since some instant; nil: nothing is timed
	Accepted  func(Mapping) error  // called for each accepted request, in order; may be nil
}

// Figures are the benchmark's measures of a run.
type Figures struct {
	Accepted   int     `json:"accepted"`
	Requests   int     `json:"requests"`   // that arrived
	Acceptance float64 `json:"acceptance"` // accepted of those, 0 to 1
	// RevenueCost is the sum of node and link demands over the sum of node
	// demands and link demands times hops, of all accepted requests.
	RevenueCost float64 `json:"revenue_cost"`
	// LongTermRevenue is the sum over accepted requests of their demands times
	// their lifetime, over the time of the last arrival.
	LongTermRevenue float64 `json:"long_term_revenue"`
	Mean            float64 `json:"ms_mean"` // milliseconds to decide a request
	P99             float64 `json:"ms_p99"`
}

// run is a replay under way.
type run struct {
	*Instance
	opt      Options
	embedder *embed.Embedder
	cal      *calendar.Calendar
	booked   map[int][]calendar.Booking // of requests that are in
	times    []time.Duration
	looks    int // second ones

	figures             Figures
	revenue, cost, long float64
	lastArrival         float64
}

// epoch is when the book of a run begins; only the order of events matters.
var epoch = time.Unix(0, 0).UTC()

// Run replays all events: each request that arrives is embedded beside those
// that are in, and booked until its departure.
func Run(in *Instance, opt Options) (Figures, error) {
	embedder, err := embed.New(in.Substrate())
	if err != nil {
		return Figures{}, err
	}
	r := &run{Instance: in, opt: opt, embedder: embedder, cal: calendar.New(), booked: map[int][]calendar.Booking{}}
	for _, e := range in.Events {
		if e.Arrives {
			err = r.arrive(e)
		} else {
			err = r.leave(e.Request)
		}
		if err != nil {
			return Figures{}, fmt.Errorf("request %d: %w", e.Request, err)
		}
	}
	return r.sum(), nil
}

// arrive decides on a request and books it.
func (r *run) arrive(e Event) error {
	r.figures.Requests++
	r.lastArrival = e.Time
	asked := r.Requests[e.Request].network(e.Request, r.opt)
	window := vnet.Window{Start: epoch}
	begun := r.now()
	mapping, err := r.embed(asked, window)
	r.times = append(r.times, r.now()-begun)
	if infeasible := new(embed.Infeasible); errors.As(err, &infeasible) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.booked[e.Request], err = r.embedder.Bookings(asked, window, mapping); err != nil {
		return err
	}
	if err := r.cal.Book(r.booked[e.Request]...); err != nil {
		return err
	}
	return r.account(e.Request, mapping)
}

// Once for so many requests, one that would be refused gets a second look for so
// many times as long: the mean hardly sees it, nor does the 99th percentile.
const (
	secondLook = 125
	patience   = 12
)

// embed finds a place for a request, at the second look if one is due.
func (r *run) embed(asked vnet.Request, window vnet.Window) (vnet.Mapping, error) {
	opt := r.opt.Embed
	mapping, err := r.embedder.Embed(r.cal, asked, window, opt)
	if infeasible := new(embed.Infeasible); !errors.As(err, &infeasible) || r.figures.Requests < (r.looks+1)*secondLook {
		return mapping, err
	}
	r.looks++
	opt.Patience = patience
	return r.embedder.Embed(r.cal, asked, window, opt)
}

// account counts an accepted request.
func (r *run) account(id int, m vnet.Mapping) error {
	request := r.Requests[id]
	mapping, err := mappingOf(id, request, m, r.opt.Split)
	if err != nil {
		return err
	}
	revenue := request.Revenue()
	r.figures.Accepted++
	r.revenue += revenue
	r.long += revenue * request.Lifetime
	r.cost += revenue
	for i, l := range request.Links {
		r.cost += l.Amount * (mapping.Links[i].hops() - 1)
	}
	if r.opt.Accepted == nil {
		return nil
	}
	return r.opt.Accepted(mapping)
}

// leave gives back what a request has, if it was accepted.
func (r *run) leave(id int) error {
	bookings := r.booked[id]
	delete(r.booked, id)
	return r.cal.Release(bookings...)
}

func (r *run) now() time.Duration {
	if r.opt.Clock == nil {
		return 0
	}
	return r.opt.Clock()
}

// sum gives the figures; those of nothing are 0.
func (r *run) sum() Figures {
	f := r.figures
	f.Acceptance = ratio(float64(f.Accepted), float64(f.Requests))
	f.RevenueCost = ratio(r.revenue, r.cost)
	f.LongTermRevenue = ratio(r.long, r.lastArrival)
	var total time.Duration
	for _, t := range r.times {
		total += t
	}
	f.Mean = ratio(milliseconds(total), float64(len(r.times)))
	slices.Sort(r.times)
	if n := len(r.times); n > 0 {
		f.P99 = milliseconds(r.times[int(math.Ceil(0.99*float64(n)))-1])
	}
	return f
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
