package lease

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// TestRandomLives lets random tenants and hosts do what they may, and looks
// after every step whether the book keeps its promises.
func TestRandomLives(t *testing.T) {
	liveAtRandom(t, drawSubstrate, drawRequest, append(everyday, "restart", "remake", "substrate", "link", "host", "revise", "revise", "impair", "stage", "stage", "resubstrate", "drain", "pause", "pause"))
}

// TestRandomMoves is the same where leases make way for each other: movable
// ones between hosts that two paths join.
func TestRandomMoves(t *testing.T) {
	liveAtRandom(t, diamond, drawMovable, append(everyday, "restart", "remake", "link", "host", "revise", "revise", "pause"))
}

// everyday is what happens most.
var everyday = []string{"admit", "admit", "admit", "decide", "decide", "commit", "release", "advance", "report", "report", "report", "all report"}

func liveAtRandom(t *testing.T, substrate func(*rapid.T) vnet.Substrate, request func(*rapid.T, time.Time) vnet.Request, steps []string) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: noon, have: make(map[vnet.HostID]plan.Host), request: request, steps: steps}
		w.book = New(substrate(t))
		w.watch(t)
		w.check(t, w.book.Tick(w.now))
		w.save(t)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.step(t)
			w.inspect(t)
			w.save(t)
		}
		w.finish(t)
	})
}

// world is a book, the time, and what its hosts have.
type world struct {
	book *Book
	now  time.Time
	have map[vnet.HostID]plan.Host
	text memoryStore

	request func(*rapid.T, time.Time) vnet.Request // of tenants
	steps   []string                               // that anybody takes
	pending []Decision                             // not committed yet

	stays map[vnet.HostID]map[uint64]bool // by drained host: leases that were said to stay, by Serial

	shrunk bool // the substrate, and hosts may not have followed yet
}

// save writes what changed, and only that.
func (w *world) save(t *rapid.T) {
	w.check(t, w.text.save(w.book.Changes()))
	w.book.Saved()
	if c := w.book.Changes(); !c.Empty() {
		t.Fatalf("after saving there is more to save: %+v", c)
	}
}

func (w *world) check(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) step(t *rapid.T) {
	switch rapid.SampledFrom(w.steps).Draw(t, "step") {
	case "admit":
		w.admit(t, w.request(t, w.now))
	case "release":
		if leases := w.book.Leases(); len(leases) > 0 {
			w.check(t, w.book.Release(w.now, rapid.SampledFrom(leases).Draw(t, "lease").ID()))
		}
	case "revise":
		w.revise(t)
	case "impair":
		w.impair(t)
	case "stage":
		w.stage(t)
	case "advance":
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 10*time.Minute + 300*time.Millisecond, time.Hour}).Draw(t, "time"))
		for host := range w.have {
			w.book.Seen(w.now, host)
		}
		w.check(t, w.book.Tick(w.now))
	case "decide":
		w.decide(t, w.request(t, w.now))
	case "commit":
		w.commit(t)
	case "report":
		w.report(t, rapid.SampledFrom(slices.Sorted(maps.Keys(w.book.Plans()))).Draw(t, "host"))
	case "all report":
		for _, host := range slices.Sorted(maps.Keys(w.book.Plans())) {
			w.report(t, host)
		}
	case "restart":
		w.restart(t)
	case "remake":
		w.remake(t, rapid.IntRange(1, 3).Draw(t, "at once"))
	case "link":
		if links := w.book.Substrate().Links; len(links) > 0 {
			l := rapid.SampledFrom(links).Draw(t, "link")
			w.check(t, w.book.SetLinkDown(w.now, l.Name, !l.Down))
		}
	case "host":
		h := rapid.SampledFrom(w.book.Substrate().Hosts).Draw(t, "host")
		w.check(t, w.book.SetHostDown(w.now, h.Name, !h.Down))
		w.shrunk = true
	case "substrate":
		err := w.book.SetSubstrate(w.now, drawChange(t, w.book.Substrate()))
		if err != nil && !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
		w.shrunk = w.shrunk || err == nil
	case "drain":
		w.drain(t)
	case "pause":
		w.pause(t)
	case "resubstrate":
		w.resubstrate(t, drawChange(t, w.book.Substrate()))
	}
}

// admit asks; what is offered instead is admitted unchanged.
func (w *world) admit(t *rapid.T, r vnet.Request) {
	_, err := w.book.Admit(w.now, r, 1000)
	var rejection *vnet.Rejection
	switch {
	case err == nil, errors.Is(err, ErrConflict):
	case !errors.As(err, &rejection):
		var bad *vnet.FieldError
		if !errors.As(err, &bad) {
			t.Fatalf("admit: %v", err)
		}
	case len(rejection.Reasons) == 0:
		t.Fatal("refused without a reason")
	default:
		w.offered(t, rejection)
	}
}

// impair changes what a link does, by command.
func (w *world) impair(t *rapid.T) {
	leases := w.book.Leases()
	if len(leases) == 0 {
		return
	}
	l := rapid.SampledFrom(leases).Draw(t, "impaired")
	if links := l.Topology().Links; len(links) > 0 {
		link, both := rapid.SampledFrom(links).Draw(t, "link").Name, drawImpairments(t)
		err := w.book.Impair(w.now, l.ID(), link, both)
		if err == nil {
			err = w.book.SetDown(w.now, l.ID(), link, rapid.Bool().Draw(t, "down"))
		}
		now, _ := w.book.Lease(l.ID())
		if is, _ := now.Topology().Link(link); err == nil && is.Impair != both || err != nil && !errors.Is(err, ErrConflict) {
			t.Fatalf("impair %s of %s: %v", link, l.ID(), err)
		}
		w.check(t, w.book.Tick(w.now))
	}
}

// drain takes what can go off a host, or opens it again.
func (w *world) drain(t *rapid.T) {
	hosts := w.book.Substrate().Hosts
	h := hosts[rapid.IntRange(0, len(hosts)-1).Draw(t, "drained")]
	if h.Drained && rapid.Bool().Draw(t, "opened") {
		_, err := w.book.SetHostDrained(w.now, h.Name, false)
		w.check(t, err)
		delete(w.stays, h.Name)
		return
	}
	list, err := w.book.SetHostDrained(w.now, h.Name, true)
	w.check(t, err)
	if w.stays == nil {
		w.stays = make(map[vnet.HostID]map[uint64]bool)
	}
	w.stays[h.Name] = make(map[uint64]bool)
	for _, d := range list {
		e := w.book.entries[d.Lease]
		w.stays[h.Name][e.Serial] = len(d.Stays) > 0 || e.moving() // may be taken back
	}
}

// resubstrate changes the substrate whoever is in the way: as was said before.
func (w *world) resubstrate(t *rapid.T, sub vnet.Substrate) {
	was := w.book.Leases()
	said, err := w.book.Resubstrate(w.now, sub, false, true)
	if errors.Is(err, ErrConflict) {
		return // links are being moved
	}
	w.check(t, err)
	if now := w.book.Leases(); !reflect.DeepEqual(was, now) {
		t.Fatal("a trial changed leases")
	}
	var refused *vnet.Rejection
	displaced, err := w.book.Resubstrate(w.now, sub, false, false)
	if errors.As(err, &refused) {
		if len(refused.Reasons) == 0 || !reflect.DeepEqual(was, w.book.Leases()) {
			t.Fatalf("refused for %v, and something changed", refused.Reasons)
		}
		displaced, err = w.book.Resubstrate(w.now, sub, true, false)
	}
	w.check(t, err)
	if !reflect.DeepEqual(displaced, said) {
		t.Fatalf("displaced are %+v, said was %+v", displaced, said)
	}
	for _, d := range displaced {
		if l, _ := w.book.Lease(d.Lease); d.Ends != (l.State == vnet.Ended) || d.Ends && l.Life.Why == "" {
			t.Fatalf("%+v is %s", d, l.State)
		}
	}
	w.shrunk = true
}

// pause pauses a lease, or lets it go on, with less if there is no room for all.
func (w *world) pause(t *rapid.T) {
	leases := w.book.Leases()
	if len(leases) == 0 {
		return
	}
	l := rapid.SampledFrom(leases).Draw(t, "paused")
	if l.Paused == nil || rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		err := w.book.Pause(w.now, l.ID(), rapid.Bool().Draw(t, "give back"))
		if now, _ := w.book.Lease(l.ID()); err == nil && now.Paused == nil || err != nil && !errors.Is(err, ErrConflict) {
			t.Fatalf("pause %s: %v", l.ID(), err)
		}
		return
	}
	err := w.book.Resume(w.now, l.ID(), nil)
	var refused *vnet.Rejection
	if errors.As(err, &refused) && refused.Offer != nil {
		_, _, err = w.book.Revise(w.now, l.ID(), *refused.Offer, nil, false)
		w.check(t, err)
		err = w.book.Resume(w.now, l.ID(), nil)
	}
	if now, _ := w.book.Lease(l.ID()); err == nil && now.Paused != nil || err != nil && !errors.Is(err, ErrConflict) && refused == nil {
		t.Fatalf("let %s go on: %v", l.ID(), err)
	}
}

// stage lets one begin on command, if it may.
func (w *world) stage(t *rapid.T) {
	leases := slices.DeleteFunc(w.book.Leases(), func(l vnet.Lease) bool { return len(l.Request.Stages) == 0 })
	if len(leases) == 0 {
		return
	}
	l := leases[rapid.IntRange(0, len(leases)-1).Draw(t, "staged")]
	name := l.Request.Stages[rapid.IntRange(0, len(l.Request.Stages)-1).Draw(t, "stage")].Name
	w.now = w.now.Add(1) // so that it does not begin at the instant of another
	err := w.book.BeginStage(w.now, l.ID(), name)
	now, _ := w.book.Lease(l.ID())
	if err == nil && now.Request.Stages[now.Stage].Name != name || err != nil && !errors.Is(err, ErrConflict) {
		t.Fatalf("stage %s of %s: %v, runs %d", name, l.ID(), err, now.Stage)
	}
}

// decide asks as who does not book at once.
func (w *world) decide(t *rapid.T, r vnet.Request) {
	r.Fill()
	if check(w.now, r) != nil {
		return
	}
	view := w.book.View(w.now, func(see func()) { see() })
	var rejection *vnet.Rejection
	switch d, err := view.Decide(r, new(Solver), NewEffort(Budget, nil)); {
	case err == nil:
		w.pending = append(w.pending, d)
	case !errors.As(err, &rejection):
		t.Fatalf("decide: %v", err)
	}
}

// commit books one of the decisions, whatever has happened since.
func (w *world) commit(t *rapid.T) {
	if len(w.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.pending)-1).Draw(t, "decision")
	_, err := w.book.Commit(w.now, w.pending[i], 1000)
	if err != nil && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrConflict) {
		t.Fatalf("commit: %v", err)
	}
	w.pending = slices.Delete(w.pending, i, i+1)
}

// offered tries every offer of a rejection on a copy of the book, and takes
// the nearest.
func (w *world) offered(t *rapid.T, r *vnet.Rejection) {
	if (r.Offer == nil) == (r.Never == "") || (r.Offer == nil) != (len(r.Offers) == 0) {
		t.Fatalf("%d offers, and none ever because %q", len(r.Offers), r.Never)
	}
	for i, o := range r.Offers {
		if len(o.Changes) == 0 || len(o.Axes) == 0 {
			t.Fatalf("offer %d changes nothing: %+v", i, o)
		}
		if slices.Contains(o.Axes, vnet.AxisStart) && o.Request.Start.Nanosecond() != 0 || slices.Contains(o.Axes, vnet.AxisDuration) && o.Request.For%time.Second != 0 {
			t.Fatalf("offer %d has fractions of a second: %s for %s", i, o.Request.Start, o.Request.For)
		}
		state, err := w.text.load()
		w.check(t, err)
		book, err := Restore(w.now, state)
		w.check(t, err)
		if _, err := book.Admit(w.now, o.Request, 1000); err != nil {
			t.Fatalf("offer %+v refused: %v", o.Changes, err)
		}
	}
	if r.Offer != nil {
		if _, err := w.book.Admit(w.now, *r.Offer, 1000); err != nil {
			t.Fatalf("offer %+v refused: %v", r.Changes, err)
		}
	}
}

// report lets a host do what its plan says.
func (w *world) report(t *rapid.T, host vnet.HostID) {
	w.have[host] = w.book.Plans()[host]
	defer func() {
		if _, ok := w.book.Plans()[host]; !ok {
			delete(w.have, host) // it has left the substrate, emptied
		}
	}()
	w.check(t, w.book.Report(w.now, report.Report{Host: host, Revision: w.have[host].Revision}))
}

// restart goes on from the store; nothing is published because of it.
func (w *world) restart(t *rapid.T) {
	before := w.book.rollout.Lineage().Revision
	waiting := len(w.book.rollout.Blockers(w.now)) > 0
	state, err := w.text.load()
	w.check(t, err)
	leases := w.book.Leases()
	plain, err := Restore(w.now, state)
	w.check(t, err)
	state.Ahead = aheadOf(t, state)
	w.book, err = Restore(w.now, state)
	w.check(t, err)
	sameAhead(t, w.book, plain)
	w.watch(t)
	if rapid.Bool().Draw(t, "remake later") {
		w.book.RemakeLater(w.now)
	}
	w.check(t, w.book.Tick(w.now))
	if !waiting && w.book.rollout.Lineage().Revision != before {
		t.Fatalf("a restart published plans")
	}
	for i, l := range w.book.Leases() {
		if l.ID() != leases[i].ID() || !reflect.DeepEqual(l.Mapping, leases[i].Mapping) || !maps.Equal(l.Rates, leases[i].Rates) {
			t.Fatalf("a restart changed %s", l.ID())
		}
	}
}

// remake has the book make some more of what it took over, as a server does.
func (w *world) remake(t *rapid.T, most int) (more bool) {
	if w.book.Unmade() == 0 {
		return false
	}
	more, err := w.book.Remake(most)
	w.check(t, err)
	if !more {
		w.check(t, w.book.Tick(w.now))
	}
	return more
}

// aheadOf is what a server that waited has made of some leases of a state, and of others
// that went or changed meanwhile.
func aheadOf(t *rapid.T, state State) *Ahead {
	a := NewAhead(state.Substrate)
	for _, l := range state.Leases {
		gone := l
		gone.Request.Network += "-gone"
		a.Take(gone)
		longer := l
		if !longer.Window.End.IsZero() {
			longer.Window.End = longer.Window.End.Add(time.Hour)
		}
		a.Take(longer)
		if a.Drop(gone.ID()); rapid.Bool().Draw(t, "known ahead") {
			a.Take(l)
		} else {
			a.Drop(l.ID())
		}
		if rapid.Bool().Draw(t, "converge") {
			a.Converge()
		}
	}
	for host, p := range state.Plans {
		a.TakePlan(plan.Host{Host: host})
		if a.DropPlan(host); len(host)%2 == 0 {
			a.TakePlan(p)
		}
	}
	return a
}

// sameAhead wants a book that was made ahead in part to be the one that was not.
func sameAhead(t *rapid.T, b, plain *Book) {
	for id, e := range b.entries {
		p := plain.entries[id]
		if p == nil || !slices.Equal(e.hosts, p.hosts) || !reflect.DeepEqual(e.bookings, p.bookings) || !reflect.DeepEqual(e.uses, p.uses) || e.links != p.links {
			t.Fatalf("%s is another one: %+v, %+v", id, e, p)
		}
	}
	if len(b.entries) != len(plain.entries) || b.calendar.Empty() != plain.calendar.Empty() {
		t.Fatalf("a book that was made ahead is another one")
	}
	for _, e := range plain.entries {
		for _, k := range e.bookings {
			if is, was := b.calendar.Steps(k.Key, vnet.Window{}), plain.calendar.Steps(k.Key, vnet.Window{}); !slices.Equal(is, was) {
				t.Fatalf("%s has %v booked, not %v", k.Key, is, was)
			}
		}
	}
}

// finish releases everything: nothing may remain, in the book or on hosts.
func (w *world) finish(t *rapid.T) {
	for w.remake(t, 1) {
	}
	w.inspect(t)
	for _, l := range w.book.Leases() {
		w.check(t, w.book.Release(w.now, l.ID()))
	}
	for _, host := range slices.Sorted(maps.Keys(w.book.Plans())) {
		w.report(t, host)
	}
	w.inspect(t)
	if !w.book.calendar.Empty() || w.book.vnis.used() > 0 || len(w.book.draining) > 0 {
		t.Fatalf("after all was released: %d tunnel identifiers, %d leases held", w.book.vnis.used(), len(w.book.draining))
	}
	for host, p := range w.have {
		if _, ok := w.book.Plans()[host]; ok && len(p.Items()) > 0 {
			t.Fatalf("%s still has\n%s", host, p)
		}
	}
}
