package lease

import (
	"maps"
	"math/bits"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/plan"
	"sublet/vnet"
)

// inspect looks whether the book keeps all its promises right now.
func (w *world) inspect(t *rapid.T) {
	w.minimaFit(t)
	w.calendarIsSum(t)
	w.numbersUnique(t)
	w.addressesOutsideUnique(t)
	w.ratesKeepPromises(t)
	w.ratesAreFromScratch(t)
	w.hostsNeverOverbooked(t)
	w.targetsAreCompiled(t)
	w.nothingUsesWhatIsDown(t)
	w.phasesHold(t)
	w.drainedTakeNothing(t)
	if next := w.book.Next(w.now); !next.IsZero() && !next.After(w.now) {
		t.Fatalf("next is %s, now %s", next, w.now)
	}
}

// minimaFit adds up minima on every substrate link and direction whenever a
// stage of any lease begins, without the calendar's help. Of stages on command
// each may have begun by then.
func (w *world) minimaFit(t *rapid.T) {
	for _, at := range w.moments() {
		booked := make(map[element]vnet.Rate)
		for _, l := range w.book.Leases() {
			if l.State == vnet.Ended || !l.Window.Contains(at) || adrift(l) {
				continue
			}
			most := make(map[element]vnet.Rate)
			stage := l.Request.StageAt(at.Sub(l.Window.Start))
			for again := true; again; again = stage < len(l.Request.Stages) && l.Request.Stages[stage].OnCommand && l.Request.Stages[stage].After == 0 {
				for e, sum := range w.minima(t, l, l.Held().At(stage).Links) {
					most[e] = max(most[e], sum)
				}
				stage++
			}
			for e, sum := range most {
				booked[e] += sum
			}
		}
		for e, sum := range booked {
			if l, _ := w.book.Substrate().LinkOf(e.link); sum > l.Leasable() {
				t.Fatalf("at %s minima of %s on %s, which has %s", at, sum, e.link, l.Leasable())
			}
		}
	}
}

// minima of links on every element.
func (w *world) minima(t *rapid.T, l vnet.Lease, links []vnet.VirtualLink) map[element]vnet.Rate {
	sums := make(map[element]vnet.Rate)
	for _, link := range links {
		for _, hop := range w.walk(t, l, link) {
			sums[element{hop.Link.Name, hop.Dir}] += link.Bandwidth[vnet.Forward].Min
			sums[element{hop.Link.Name, hop.Dir.Opposite()}] += link.Bandwidth[vnet.Reverse].Min
		}
	}
	return sums
}

// drainedTakeNothing: only what was said to stay has anything of a drained host.
func (w *world) drainedTakeNothing(t *rapid.T) {
	for _, h := range w.book.Substrate().Hosts {
		for _, e := range w.book.live {
			if h.Drained && slices.Contains(e.hosts, h.Name) && !w.stays[h.Name][e.Serial] {
				t.Fatalf("%s #%d is on %s, which is drained: %+v", e.ID(), e.Serial, h.Name, e.Mapping)
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

// moments are when anything may change. What passed was as former requests of
// the leases had it.
func (w *world) moments() []time.Time {
	moments := []time.Time{w.now}
	for _, l := range w.book.Leases() {
		moments = append(moments, l.Window.Start)
		for _, s := range l.Request.Stages {
			moments = append(moments, l.Window.Start.Add(s.After))
		}
	}
	return slices.DeleteFunc(moments, func(t time.Time) bool { return t.Before(w.now) })
}

// calendarIsSum compares the calendar with one made of the live leases alone.
func (w *world) calendarIsSum(t *rapid.T) {
	engine, err := embed.New(w.book.Substrate())
	w.check(t, err)
	sum := calendar.New()
	for _, l := range w.book.Leases() {
		if l.State == vnet.Ended || adrift(l) {
			continue
		}
		bookings, err := engine.Bookings(l.Held(), l.Window, l.Mapping)
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
		lists := slices.Collect(maps.Values(l.VNIs))
		if l.Move != nil {
			lists = append(lists, slices.Collect(maps.Values(l.Move.VNIs))...)
		}
		for _, list := range lists {
			for _, vni := range list {
				if used[vni] || !w.book.vnis.has(vni) {
					t.Fatalf("tunnel identifier %d of %s is not its own", vni, l.ID())
				}
				used[vni] = true
			}
		}
	}
	if len(used) != w.book.vnis.used() {
		t.Fatalf("%d tunnel identifiers are taken, %d used", w.book.vnis.used(), len(used))
	}
}

// addressesOutsideUnique wants no address of a way out to be two routers'.
func (w *world) addressesOutsideUnique(t *rapid.T) {
	has := make(map[netip.Addr]vnet.LeaseID)
	for _, l := range w.book.Leases() {
		if l.State == vnet.Booked || l.State == vnet.Ended || adrift(l) {
			continue
		}
		for _, r := range l.Topology().Routers {
			a := l.Mapping.Outside[r.Name]
			if other, taken := has[a]; taken || !a.IsValid() {
				t.Fatalf("%s of %s has %s, as %s has", r.Name, l.ID(), a, other)
			}
			has[a] = l.ID()
		}
	}
}

// ratesKeepPromises wants min <= rate <= max, to whole bytes per second.
func (w *world) ratesKeepPromises(t *rapid.T) {
	for _, l := range w.book.Leases() {
		if l.State == vnet.Booked || l.State == vnet.Ended || l.Lost != nil {
			continue
		}
		for _, link := range l.Topology().Links {
			for d, ask := range link.Bandwidth {
				if l.Move != nil && l.Move.Form != nil { // until it is built, no more than it had
					if former, there := (&entry{Lease: l}).beforeMove().Topology().Link(link.Name); there {
						ask.Min = min(ask.Min, former.Bandwidth[d].Min, former.Bandwidth[d].Max)
					}
				}
				if r := l.Rates[link.Name][d]; r <= ask.Min-8 || r > ask.Max || r%8 != 0 {
					t.Fatalf("%s link %s got %s of %s..%s", l.ID(), link.Name, r, ask.Min, ask.Max)
				}
			}
		}
	}
}

// ratesAreFromScratch compares the rates, which follow what changes, with
// those of an allocation among all who run, made anew.
func (w *world) ratesAreFromScratch(t *rapid.T) {
	var running []vnet.Lease
	var now, before []embed.Tenancy
	for _, l := range w.book.Leases() {
		if l.State == vnet.Booked || l.State == vnet.Ended || adrift(l) {
			continue
		}
		tenancy := embed.Tenancy{Topology: l.Topology(), Mapping: l.Mapping}
		running, now = append(running, l), append(now, tenancy)
		if l.Move != nil && l.Move.Phase != vnet.MoveLeaves {
			was := (&entry{Lease: l}).beforeMove()
			tenancy = embed.Tenancy{Topology: was.Topology(), Mapping: was.Mapping}
		}
		before = append(before, tenancy)
	}
	rates, err := ratesOn(w.book.Substrate(), now)
	w.check(t, err)
	former, err := ratesOn(w.book.Substrate(), before)
	w.check(t, err)
	for i, l := range running {
		for link, r := range rates[i] {
			f, was := former[i][link]
			if !was {
				f = r
			}
			if want := [2]vnet.Rate{min(r[0], f[0]) / 8 * 8, min(r[1], f[1]) / 8 * 8}; l.Rates[link] != want {
				t.Fatalf("%s link %s got %v, from scratch %v", l.ID(), link, l.Rates[link], want)
			}
		}
		if len(l.Rates) != len(rates[i]) {
			t.Fatalf("%s got %v, from scratch %v", l.ID(), l.Rates, rates[i])
		}
	}
}

// hostsNeverOverbooked adds up, on every substrate link, the minima that
// hosts enforce at worst: what they have or what they were told to have,
// whichever is more, each host for itself.
func (w *world) hostsNeverOverbooked(t *rapid.T) {
	w.shrunk = w.shrunk && len(w.book.rollout.Blockers(w.now)) > 0
	if w.shrunk {
		return // nobody can make hosts follow the operator before they do
	}
	worst := make(map[vnet.VNI]map[vnet.HostID]vnet.Rate)
	for host, p := range w.book.Plans() {
		if h, _ := w.book.Substrate().HostOf(string(host)); h.Down {
			continue // it sends nothing, and takes back what it has before it does
		}
		for _, has := range []plan.Host{p, w.have[host]} {
			for vni, rate := range enforcedBy(has) {
				if worst[vni] == nil {
					worst[vni] = make(map[vnet.HostID]vnet.Rate)
				}
				worst[vni][host] = max(worst[vni][host], rate)
			}
		}
	}
	enforced := make(map[element]vnet.Rate)
	for _, l := range w.book.Leases() {
		most := make(map[element]vnet.Rate) // an end sends by the old or the new path
		for _, version := range versions(l) {
			for e, sum := range w.enforced(t, version, worst) {
				most[e] = max(most[e], sum)
			}
		}
		for e, sum := range most {
			enforced[e] += sum
		}
	}
	const spare = vnet.Mbit // classes without a minimum still have a least rate
	for e, sum := range enforced {
		if l, _ := w.book.Substrate().LinkOf(e.link); sum > plan.Outer(l.Leasable())+spare {
			t.Fatalf("hosts may enforce %s on %s, which has %s", sum, e.link, plan.Outer(l.Leasable()))
		}
	}
}

// enforcedBy are the minima of a host's tunnels. What has no entry in the
// overlay's table sends nothing.
func enforcedBy(p plan.Host) map[vnet.VNI]vnet.Rate {
	rates := make(map[vnet.VNI]vnet.Rate)
	for _, l := range plan.Of[plan.VxLink](p) {
		for _, end := range l.Ends {
			if end.Tunnel != nil && !end.Tunnel.Class.BestEffort && slices.ContainsFunc(plan.Of[plan.Overlay](p), func(o plan.Overlay) bool { return o.VNI == end.Tunnel.VNI }) {
				rates[end.Tunnel.VNI] = end.Tunnel.Class.Guaranteed
			}
		}
	}
	return rates
}

// versions are a lease, and what it was before it moved.
func versions(l vnet.Lease) []vnet.Lease {
	if l.Move == nil {
		return []vnet.Lease{l}
	}
	return []vnet.Lease{l, (&entry{Lease: l}).beforeMove()}
}

// enforced adds up what hosts may enforce for one lease on each element.
func (w *world) enforced(t *rapid.T, l vnet.Lease, worst map[vnet.VNI]map[vnet.HostID]vnet.Rate) map[element]vnet.Rate {
	sums := make(map[element]vnet.Rate)
	for name, numbers := range l.VNIs {
		link, _ := l.Request.Union().Link(name)
		cuts, err := plan.TunnelHops(w.book.Substrate(), l.Mapping.Nodes[link.Ends[0]], l.Mapping.Links[name])
		if err != nil && (l.State == vnet.Ended || l.Move != nil) {
			continue // part of the path is no more
		}
		w.check(t, err)
		for i, hops := range cuts {
			if i >= len(numbers) {
				break
			}
			from, to := vnet.HostID(hops[0].From()), vnet.HostID(hops[len(hops)-1].To())
			for _, hop := range hops {
				sums[element{hop.Link.Name, hop.Dir}] += worst[numbers[i]][from]
				sums[element{hop.Link.Name, hop.Dir.Opposite()}] += worst[numbers[i]][to]
			}
		}
	}
	return sums
}

func adrift(l vnet.Lease) bool { return l.Lost != nil && !l.Lost.Booked }

// nothingUsesWhatIsDown: whoever is mapped to it is lost, and knows why.
func (w *world) nothingUsesWhatIsDown(t *rapid.T) {
	for _, l := range w.book.Leases() {
		switch {
		case l.State == vnet.Ended:
		case l.Lost == nil && !w.book.stillValid(l):
			t.Fatalf("%s stands on what is down: %+v", l.ID(), l.Mapping)
		case l.Lost != nil && (len(l.Lost.Reasons) == 0 || l.State != vnet.Failed && l.State != vnet.Booked || l.Message == ""):
			t.Fatalf("%s is lost, and says %s %q", l.ID(), l.State, l.Message)
		}
	}
}

// targetsAreCompiled compares what hosts shall have in the end with what
// plan.Compile makes of all leases together.
func (w *world) targetsAreCompiled(t *rapid.T) {
	leases := w.book.Leases()
	for i, l := range leases {
		switch {
		case l.Move != nil && l.Move.Phase != vnet.MoveLeaves:
			return // it has more until it has moved
		case adrift(l):
			leases[i].State = vnet.Booked
		case l.State == vnet.Failed:
			leases[i].State = vnet.Deploying
		}
	}
	want, err := plan.Compile(w.book.Substrate(), leases)
	w.check(t, err)
	for host, p := range want {
		if w.book.unmade[host] || slices.Contains(w.book.differ, host) {
			continue // see RemakeLater
		}
		if got := w.book.rollout.Target(host); !reflect.DeepEqual(itemsByKey(got), itemsByKey(p)) {
			t.Fatalf("%s shall have\n%s, want\n%s", host, got, p)
		}
	}
}

func itemsByKey(p plan.Host) map[string]plan.Item {
	items := make(map[string]plan.Item)
	for _, item := range p.Items() {
		items[string(item.Kind())+" "+item.Key()] = item
	}
	return items
}

// used counts the tunnel identifiers that are in use.
func (v *vnis) used() (n int) {
	for _, word := range v.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// ratesOn allocates among leases that all enter at once; by lease, then by link.
func ratesOn(sub vnet.Substrate, running []embed.Tenancy) ([]map[string][2]vnet.Rate, error) {
	e, err := embed.New(sub)
	if err != nil {
		return nil, err
	}
	a, claims := e.Allocation(), make([]*embed.Claim, len(running))
	for i, t := range running {
		if claims[i], err = a.Enter(t); err != nil {
			return nil, err
		}
	}
	if err := a.Settle(); err != nil {
		return nil, err
	}
	rates := make([]map[string][2]vnet.Rate, len(running))
	for i, c := range claims {
		rates[i] = c.Rates()
	}
	return rates, nil
}
