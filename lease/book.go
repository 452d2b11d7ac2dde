package lease

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/lease/policy"
	"sublet/lease/rollout"
	"sublet/plan"
	"sublet/vnet"
)

// Errors that Book's methods wrap. Bad input is a *vnet.FieldError, a refusal
// a *vnet.Rejection.
var (
	ErrConflict = errors.New("conflict")      // with what the book holds
	ErrUnknown  = errors.New("no such lease") // also when it is another tenant's
)

// Book holds every lease and decides about them. It is not safe for
// concurrent use. Leases it returns share memory with it and must not be
// changed.
type Book struct {
	// FailAfter is how long hosts must report errors for a lease without a
	// break until it counts as failed.
	FailAfter time.Duration
	// Prices of leases that are admitted from now on.
	Prices vnet.Prices

	// MostMoves is how many leases are moved at most to make room for one; 0:
	// none. DefaultMoves at first.
	MostMoves int

	// VerifyHandover has the promises of networks measured before they are said to
	// run, if their requests do not say whether.
	VerifyHandover bool

	resources
	nodes     vnet.NodeDefaults // ceilings of nodes that state none
	noCarrier map[string]bool   // hosts that see a link without a carrier; nil: to be looked up

	// All leases, and those of some phases: see track. Lists are by Serial.
	entries      map[vnet.LeaseID]*entry
	live         []*entry
	byTenant     map[vnet.TenantID]map[*entry]bool // the live ones
	active       []*entry
	openings     openings // of those whose windows have not opened
	draining     []*entry
	history      map[vnet.TenantID][]*entry // of each tenant, at most History
	onTransition func(from, to phase)       // nil but in tests

	beside  beside
	vnis    vnis
	serial  uint64
	rollout *rollout.Rollout
	changed changes

	allocation allocation

	stale      bool                 // rates and targets do not follow from the leases any more
	dirty      map[vnet.HostID]bool // hosts whose leases changed
	everyHost  bool                 // every host may have
	unmade     map[vnet.HostID]bool // hosts whose targets are still those of the store, see RemakeLater
	news       bool                 // see News
	unfinished bool                 // the store has a part of a write only
	differ     []vnet.HostID        // hosts of which Remake found that they are to have something else
}

// entry is a lease with what the book needs to know about it.
type entry struct {
	vnet.Lease
	bookings []calendar.Booking          // none: nothing is booked for it, see vnet.Loss
	former   []calendar.Booking          // of a moving lease: what it had before
	uses     []policy.Use                // of the request; nil: not added up yet
	links    int                         // in all stages, like uses
	recorded vnet.Record                 // what the ledger has; zero: not known
	listed   phase                       // which the book's lists have it in
	opened   bool                        // its window: it is out of Book.openings
	hosts    []vnet.HostID               // that carry any of it in any stage, sorted
	parts    map[vnet.HostID][]plan.Item // what they shall have of it now; nil: not known yet
	failing  time.Time                   // since when hosts report errors; zero: they do not
	patience time.Duration               // how long that may last
	why      string                      // of the state, without what else Message says
	handover handover
	copied   time.Time // of one with files on their way: when more of them last came
}

// DefaultFailAfter spans some attempts of an agent to repair what it can.
const DefaultFailAfter = 30 * time.Second

// New returns an empty book of a substrate.
func New(sub vnet.Substrate) *Book {
	b := &Book{
		FailAfter: DefaultFailAfter,
		Prices:    vnet.DefaultPrices,
		MostMoves: DefaultMoves,
		resources: resources{sub: sub, calendar: calendar.New(), solver: new(Solver)},
		entries:   make(map[vnet.LeaseID]*entry),
		byTenant:  make(map[vnet.TenantID]map[*entry]bool),
		history:   make(map[vnet.TenantID][]*entry),
		rollout:   rollout.New(rollout.DefaultLiveness),
		stale:     true,
		dirty:     make(map[vnet.HostID]bool),
		everyHost: true,
		changed:   noChanges(),
		beside:    newBeside(),
	}
	b.changed.substrate = true
	b.setWorking()
	return b
}

// book enters a live lease into the calendar, and its window into the openings.
func (b *Book) book(e *entry) error {
	if !e.unplaced() {
		if err := b.bookPlace(e); err != nil {
			return err
		}
	}
	e.countUses()
	b.opens(e)
	return nil
}

// opens enters the window of a lease that waits for it.
func (b *Book) opens(e *entry) {
	if e.State == vnet.Booked {
		heap.Push(&b.openings, e)
	}
}

// bookPlace enters into the calendar what a lease uses.
func (b *Book) bookPlace(e *entry) (err error) {
	bookings := e.bookings
	if bookings == nil {
		bookings, err = b.bookings(e.Held(), e.Window, e.Mapping)
	}
	if err != nil {
		return err
	}
	if e.moving() {
		was := e.beforeMove()
		if e.former, err = b.bookings(was.Held(), was.Window, was.Mapping); err != nil {
			return err
		}
	}
	if err := b.calendar.Book(bookings...); err != nil {
		return err
	}
	e.bookings = bookings
	return nil
}

// Tenants lists those who have a live lease, in no order.
func (b *Book) Tenants() []vnet.TenantID { return slices.Collect(maps.Keys(b.byTenant)) }

// Holdings are what the live leases of some tenants take, as quotas count it.
func (b *Book) Holdings(has func(vnet.TenantID) bool) []policy.Holding { return b.holdings(has, nil) }

// holdings leaves out one lease.
func (b *Book) holdings(has func(vnet.TenantID) bool, but *entry) (list []policy.Holding) {
	for tenant, entries := range b.byTenant {
		if !has(tenant) {
			continue
		}
		for e := range entries {
			if e == but {
				continue
			}
			h := policy.Holding{Tenant: tenant, Window: e.Window, Uses: e.uses}
			if e.State == vnet.Booked && e.Request.Movable {
				h.Latest = e.Request.Before
			}
			list = append(list, h)
		}
	}
	return list
}

// Substrate is the one the book leases out.
func (b *Book) Substrate() vnet.Substrate { return b.sub }

// Lease finds a lease, ended ones in the history too.
func (b *Book) Lease(id vnet.LeaseID) (vnet.Lease, bool) {
	if e, ok := b.entries[id]; ok {
		return e.Lease, true
	}
	return vnet.Lease{}, false
}

// Leases lists live leases and the history, in order of admission.
func (b *Book) Leases() []vnet.Lease {
	return b.list(func(vnet.Lease) bool { return true })
}

// Of lists one tenant's leases, in order of admission.
func (b *Book) Of(tenant vnet.TenantID) []vnet.Lease {
	return b.list(func(l vnet.Lease) bool { return l.Request.Tenant == tenant })
}

// Active lists leases whose windows are open, without the history, in order of
// admission.
func (b *Book) Active() []vnet.Lease {
	list := make([]vnet.Lease, len(b.active))
	for i, e := range b.active {
		list[i] = e.Lease
	}
	return list
}

// EndingBefore lists leases whose windows are open and end before a time.
func (b *Book) EndingBefore(t time.Time) (list []vnet.Lease) {
	for _, e := range b.active {
		if end := e.Window.End; !end.IsZero() && end.Before(t) {
			list = append(list, e.Lease)
		}
	}
	return list
}

func (b *Book) list(wanted func(vnet.Lease) bool) []vnet.Lease {
	var list []vnet.Lease
	for _, e := range b.entries {
		if wanted(e.Lease) {
			list = append(list, e.Lease)
		}
	}
	slices.SortFunc(list, bySerial)
	return list
}

// Plans are what hosts shall have now. Hand one out only after the Changes
// that came with it are saved.
func (b *Book) Plans() map[vnet.HostID]plan.Host { return b.rollout.Plans() }

// PlanBegins is when a host that is handed its plan now shall begin with it, as all hosts
// of a stage do; zero: at once.
func (b *Book) PlanBegins(now time.Time, host vnet.HostID) time.Time {
	return b.rollout.Begins(now, host)
}

// Plan is that of one host.
func (b *Book) Plan(host vnet.HostID) (plan.Host, bool) { return b.rollout.Plan(host) }

// SetVerdict stores the outcome of a check with the lease that it was about.
func (b *Book) SetVerdict(id vnet.LeaseID, v vnet.Verdict) error {
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("store verdict of %s: %w", id, ErrUnknown)
	}
	if e.Serial != v.Serial {
		return fmt.Errorf("store verdict of %s: %w: another lease has the name now", id, ErrConflict)
	}
	e.Verdict = &v
	b.touch(e)
	return nil
}

func bySerial(a, b vnet.Lease) int { return cmp.Compare(a.Serial, b.Serial) }
