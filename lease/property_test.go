package lease

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/plan"
	"sublet/vnet"
)

// TestRandomLives lets random tenants and hosts do what they may, and looks
// after every step whether the book keeps its promises.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: noon, have: make(map[vnet.HostID]plan.Host)}
		w.book = New(drawSubstrate(t))
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
	switch rapid.SampledFrom([]string{"admit", "admit", "admit", "release", "advance", "report", "report", "report", "restart", "substrate"}).Draw(t, "step") {
	case "admit":
		w.admit(t, drawRequest(t, w.now))
	case "release":
		if leases := w.book.Leases(); len(leases) > 0 {
			w.check(t, w.book.Release(w.now, rapid.SampledFrom(leases).Draw(t, "lease").ID()))
		}
	case "advance":
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, time.Hour}).Draw(t, "time"))
		for host := range w.have {
			w.book.Seen(w.now, host)
		}
		w.check(t, w.book.Tick(w.now))
	case "report":
		w.report(t, rapid.SampledFrom(slices.Sorted(maps.Keys(w.book.Plans()))).Draw(t, "host"))
	case "restart":
		w.restart(t)
	case "substrate":
		err := w.book.SetSubstrate(w.now, drawChange(t, w.book.Substrate()))
		if err != nil && !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
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
	case rejection.Offer != nil:
		if len(rejection.Changes) == 0 {
			t.Fatal("an offer without a change")
		}
		if _, err := w.book.Admit(w.now, *rejection.Offer, 1000); err != nil {
			t.Fatalf("offer %+v refused: %v", rejection.Changes, err)
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
	w.check(t, w.book.Report(w.now, plan.Report{Host: host, Revision: w.have[host].Revision}))
}

// restart goes on from the store; nothing is published because of it.
func (w *world) restart(t *rapid.T) {
	before := w.book.rollout.revision
	waiting := len(w.book.rollout.Blockers(w.now)) > 0
	state, err := w.text.load()
	w.check(t, err)
	leases := w.book.Leases()
	w.book, err = Restore(w.now, state)
	w.check(t, err)
	w.check(t, w.book.Tick(w.now))
	if !waiting && w.book.rollout.revision != before {
		t.Fatalf("a restart published plans")
	}
	for i, l := range w.book.Leases() {
		if l.ID() != leases[i].ID() || !reflect.DeepEqual(l.Mapping, leases[i].Mapping) || !maps.Equal(l.Rates, leases[i].Rates) {
			t.Fatalf("a restart changed %s", l.ID())
		}
	}
}

// finish releases everything: nothing may remain, in the book or on hosts.
func (w *world) finish(t *rapid.T) {
	for _, l := range w.book.Leases() {
		w.check(t, w.book.Release(w.now, l.ID()))
	}
	for _, host := range slices.Sorted(maps.Keys(w.book.Plans())) {
		w.report(t, host)
	}
	w.inspect(t)
	if !w.book.calendar.Empty() || len(w.book.vnis) > 0 || len(w.book.held) > 0 {
		t.Fatalf("after all was released: %d tunnel identifiers, %d leases held", len(w.book.vnis), len(w.book.held))
	}
	for host, p := range w.have {
		if _, ok := w.book.Plans()[host]; ok && len(p.Items()) > 0 {
			t.Fatalf("%s still has\n%s", host, p)
		}
	}
}

func (w *world) inspect(t *rapid.T) {
	w.minimaFit(t)
	w.calendarIsSum(t)
	w.numbersUnique(t)
	w.ratesKeepPromises(t)
	w.hostsNeverOverbooked(t)
	w.targetsAreCompiled(t)
	if next := w.book.Next(w.now); !next.IsZero() && !next.After(w.now) {
		t.Fatalf("next is %s, now %s", next, w.now)
	}
}

// minimaFit adds up minima on every substrate link and direction whenever a
// stage of any lease begins, without the calendar's help.
func (w *world) minimaFit(t *rapid.T) {
	for _, at := range w.moments() {
		booked := make(map[element]vnet.Rate)
		for _, l := range w.book.Leases() {
			if l.State == vnet.Ended || !l.Window.Contains(at) {
				continue
			}
			for _, link := range l.Request.At(l.Request.StageAt(at.Sub(l.Window.Start))).Links {
				for _, hop := range w.walk(t, l, link) {
					booked[element{hop.Link.Name, hop.Dir}] += link.Bandwidth[vnet.Forward].Min
					booked[element{hop.Link.Name, hop.Dir.Opposite()}] += link.Bandwidth[vnet.Reverse].Min
				}
			}
		}
		for e, sum := range booked {
			if l, _ := w.book.Substrate().LinkOf(e.link); sum > l.Leasable() {
				t.Fatalf("at %s minima of %s on %s, which has %s", at, sum, e.link, l.Leasable())
			}
		}
	}
}

type element struct {
	link string
	dir  vnet.Direction
}

func (w *world) walk(t *rapid.T, l vnet.Lease, link vnet.VirtualLink) []vnet.Hop {
	hops, err := w.book.Substrate().Walk(l.Mapping.Nodes[link.Ends[0]], l.Mapping.Links[link.Name])
	w.check(t, err)
	return hops
}

// moments are when anything may change.
func (w *world) moments() []time.Time {
	moments := []time.Time{w.now}
	for _, l := range w.book.Leases() {
		moments = append(moments, l.Window.Start)
		for _, s := range l.Request.Stages {
			moments = append(moments, l.Window.Start.Add(s.After))
		}
	}
	return moments
}

// calendarIsSum compares the calendar with one made of the live leases alone.
func (w *world) calendarIsSum(t *rapid.T) {
	sum := calendar.New()
	for _, l := range w.book.Leases() {
		if l.State == vnet.Ended {
			continue
		}
		bookings, err := embed.Bookings(w.book.Substrate(), l.Request, l.Window, l.Mapping)
		w.check(t, err)
		w.check(t, sum.Book(bookings...))
	}
	if !reflect.DeepEqual(w.book.calendar, sum) {
		t.Fatal("the calendar is not the sum of the live leases")
	}
}

func (w *world) numbersUnique(t *rapid.T) {
	used := make(map[vnet.VNI]bool)
	for _, l := range w.book.Leases() {
		addresses := make(map[string]bool)
		for _, a := range l.Addresses {
			addresses[a.String()] = true
		}
		if len(addresses) != len(l.Addresses) {
			t.Fatalf("%s has an address twice", l.ID())
		}
		for _, list := range l.VNIs {
			for _, vni := range list {
				if used[vni] || !w.book.vnis[vni] {
					t.Fatalf("tunnel identifier %d of %s is not its own", vni, l.ID())
				}
				used[vni] = true
			}
		}
	}
	if len(used) != len(w.book.vnis) {
		t.Fatalf("%d tunnel identifiers are taken, %d used", len(w.book.vnis), len(used))
	}
}

// ratesKeepPromises wants min <= rate <= max, to whole bytes per second.
func (w *world) ratesKeepPromises(t *rapid.T) {
	for _, l := range w.book.Leases() {
		if l.State == vnet.Booked || l.State == vnet.Ended {
			continue
		}
		for _, link := range l.Topology().Links {
			for d, ask := range link.Bandwidth {
				if r := l.Rates[link.Name][d]; r <= ask.Min-8 || r > ask.Max || r%8 != 0 {
					t.Fatalf("%s link %s got %s of %s..%s", l.ID(), link.Name, r, ask.Min, ask.Max)
				}
			}
		}
	}
}

// hostsNeverOverbooked adds up, on every substrate link, the minima that
// hosts enforce at worst: what they have or what they were told to have,
// whichever is more, each host for itself.
func (w *world) hostsNeverOverbooked(t *rapid.T) {
	worst := make(map[vnet.VNI]map[vnet.HostID]vnet.Rate)
	for host, p := range w.book.Plans() {
		for _, l := range slices.Concat(p.Links, w.have[host].Links) {
			for _, end := range l.Ends {
				if end.Tunnel == nil || end.Tunnel.Class.BestEffort {
					continue
				}
				if worst[end.Tunnel.VNI] == nil {
					worst[end.Tunnel.VNI] = make(map[vnet.HostID]vnet.Rate)
				}
				sum := worst[end.Tunnel.VNI]
				sum[host] = max(sum[host], end.Tunnel.Class.Rate)
			}
		}
	}
	enforced := make(map[element]vnet.Rate)
	for _, l := range w.book.Leases() {
		for name, numbers := range l.VNIs {
			link, _ := l.Request.Union().Link(name)
			cuts, err := plan.Stretches(w.book.Substrate(), l.Mapping.Nodes[link.Ends[0]], l.Mapping.Links[name])
			if l.State == vnet.Ended && err != nil {
				continue // part of the path is no more
			}
			w.check(t, err)
			for i, hops := range cuts {
				from, to := vnet.HostID(hops[0].From()), vnet.HostID(hops[len(hops)-1].To())
				for _, hop := range hops {
					enforced[element{hop.Link.Name, hop.Dir}] += worst[numbers[i]][from]
					enforced[element{hop.Link.Name, hop.Dir.Opposite()}] += worst[numbers[i]][to]
				}
			}
		}
	}
	const spare = vnet.Mbit // classes without a minimum still have a least rate
	for e, sum := range enforced {
		if l, _ := w.book.Substrate().LinkOf(e.link); sum > plan.Outer(l.Leasable())+spare {
			t.Fatalf("hosts may enforce %s on %s, which has %s", sum, e.link, plan.Outer(l.Leasable()))
		}
	}
}

// targetsAreCompiled compares what hosts shall have in the end with what
// plan.Compile makes of all leases together.
func (w *world) targetsAreCompiled(t *rapid.T) {
	leases := w.book.Leases()
	for i := range leases {
		if leases[i].State == vnet.Failed {
			leases[i].State = vnet.Deploying
		}
	}
	want, err := plan.Compile(w.book.Substrate(), leases)
	w.check(t, err)
	for host, p := range want {
		if got := w.book.rollout.hosts[host].target; !same(got, p) {
			t.Fatalf("%s shall have\n%s, want\n%s", host, got, p)
		}
	}
}
