package lease

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"sublet/embed"
	"sublet/plan"
	"sublet/vnet"
)

// Chains that are given another form lose no packet. First all hosts get the hops of
// the new form beside those of the former one, then the classifiers lead packets to
// the new ones, then what is on its way arrives, then the former ones go. Hops of
// both are told apart by their paths or indexes (vnet.Numbering.Chains).

const (
	// bridgeSettles is how long new programs have to begin, from when the change of
	// form began, before packets are led to them.
	bridgeSettles = 3 * time.Second

	// bridgeDrains is how long packets of the former form may be on their way: queues
	// of links hold a fraction of a second.
	bridgeDrains = 2 * time.Second

	// bridgeLasts is for how long segments that go are booked beside the new ones.
	bridgeLasts = 5 * time.Minute
)

// bridging says whether a lease is given another form with other chains. Another
// rate, and other rules, are changed in place.
func (e *entry) bridging() bool {
	return e.moving() && e.Move.Form != nil && !reflect.DeepEqual(led(e.Move.Form.Request), led(e.Request))
}

// ledChain is where a chain leads what.
type ledChain struct {
	vnet.Chain
	balanced []string
}

func led(r vnet.Request) (chains []ledChain) {
	for _, c := range r.Chains {
		c.Rate = min(c.Rate, 1)
		chains = append(chains, ledChain{c, r.Balanced(c)})
	}
	return chains
}

// bridgeWaits is when a bridge's phase may end at the earliest; zero: at once.
func (e *entry) bridgeWaits() time.Time {
	switch {
	case !e.bridging():
	case e.Move.Phase == vnet.MoveBuilds:
		return e.Move.Since.Add(bridgeSettles)
	case e.Move.Phase == vnet.MoveDrains:
		return e.Move.Since.Add(bridgeDrains)
	}
	return time.Time{}
}

// nextPhase is what follows a phase of a move.
func (e *entry) nextPhase() vnet.MovePhase {
	switch {
	case e.Move.Phase == vnet.MovePrepares, e.Move.Phase == vnet.MoveCopies && e.Move.Live, e.Move.Phase == vnet.MoveBuilds && e.bridging():
		return vnet.MoveSwitches
	case e.Move.Phase == vnet.MoveSwitches && e.bridging():
		return vnet.MoveDrains
	}
	return vnet.MoveLeaves
}

// bridge adds to the items of a lease what its chains had in their former form.
func (b *Book) bridge(e *entry) error {
	if !e.bridging() {
		return nil
	}
	was, is := e.beforeMove(), e.Request.Union()
	was.State, was.Rates = vnet.Deploying, maps.Clone(was.Rates)
	leaving := make(map[string]bool)
	for _, l := range was.Request.Union().Links {
		if _, stays := is.Link(l.Name); l.Chain != "" && !stays {
			leaving[l.Name] = true
			was.Rates[l.Name] = [2]vnet.Rate{l.Bandwidth[vnet.Forward].Min, l.Bandwidth[vnet.Reverse].Min}
		}
	}
	hosts, err := b.compiler().Compile([]vnet.Lease{was})
	if err != nil {
		return err
	}
	for _, name := range e.allHosts() {
		former := plan.Chains{Lease: e.ID()}
		var kept []plan.Item
		for _, item := range hosts[name].Items() {
			switch i := item.(type) {
			case plan.Chains:
				former = i
			case plan.VxLink:
				if leaving[i.Link] {
					kept = append(kept, i)
				}
			case plan.Overlay:
				if leaving[i.Link] {
					kept = append(kept, i)
				}
			case plan.Uplink:
				kept = append(kept, i)
			}
		}
		e.parts[name] = e.bridged(merged(e.parts[name], kept), former)
	}
	return nil
}

// bridged are a host's items with its chains as they are in this phase.
func (e *entry) bridged(items []plan.Item, former plan.Chains) []plan.Item {
	now := plan.Chains{Lease: e.ID()}
	i := slices.IndexFunc(items, func(item plan.Item) bool { return item.Kind() == plan.KindChains })
	if i >= 0 {
		now = items[i].(plan.Chains)
	}
	entries := now.Entries
	if e.Move.Phase == vnet.MoveBuilds {
		entries = former.Entries
	}
	both := now.Bridged(former, entries)
	switch {
	case i >= 0:
		items[i] = both
	case len(both.Hops) > 0:
		items = append(items, both)
	}
	return items
}

// bookLeaving books the segments of chains that go beside those that come, as long
// as both are there.
func (r *revision) bookLeaving(now time.Time) error {
	e, is := r.lease, r.request.Union()
	leaving := withoutLinks(e.Request, func(name string) bool {
		l, _ := e.Request.Union().Link(name)
		_, stays := is.Link(name)
		return l.Chain == "" || stays
	})
	window := vnet.Window{Start: now, End: now.Add(bridgeLasts)}
	bookings, err := r.resources.bookings(leaving, window, e.Mapping)
	if err != nil {
		return err
	}
	for _, k := range bookings {
		if !embed.OfLinks(k.Key) {
			continue
		}
		if err := r.calendar.Book(k); err != nil {
			return err
		}
	}
	return nil
}

// samePrograms wants chains to have the transport that they have, and the programs of chains to have the interfaces that they have:
// those of the first chain through them.
func (e *entry) samePrograms(is vnet.Request) error {
	for i, c := range is.Chains {
		was, there := e.Request.ChainOf(c.Name)
		if there && (was.Transport != c.Transport || was.Compat != c.Compat) {
			return fixed(fmt.Sprintf("chains[%d].transport", i), "transport and compat of chain "+c.Name+" are other ones")
		}
		if there && was.Metadata.Size() != c.Metadata.Size() {
			return fixed(fmt.Sprintf("chains[%d].metadata", i), fmt.Sprintf("metadata of chain %s takes %d bytes, and took %d", c.Name, c.Metadata.Size(), was.Metadata.Size()))
		}
	}
	for i, n := range is.Nodes {
		if !n.IsFunction() || n.Function.Kind != vnet.FunctionProgram {
			continue
		}
		was, now := interfacesOf(e.Request, n.Name), interfacesOf(is, n.Name)
		if len(was) > 0 && len(now) > 0 && !slices.Equal(was, now) {
			return fixed(elementsOf(is)[n.Name].path, "the program of "+is.Nodes[i].Name+" would have other neighbours in the first chain through it, and so other interfaces")
		}
	}
	return nil
}

// interfacesOf are the segments of the first chain through a function, which end at
// its interfaces.
func interfacesOf(r vnet.Request, function string) (links []string) {
	for _, end := range []int{1, 0} {
		i := slices.IndexFunc(r.Links, func(l vnet.VirtualLink) bool {
			return l.Chain != "" && l.Sender() != function && l.Ends[end] == function
		})
		if i >= 0 {
			links = append(links, r.Links[i].Name)
		}
	}
	return links
}
