package lease

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/plan"
	"sublet/vnet"
)

// The form of a network is what it consists of. A running one is given another
// form in place: what stands keeps its host, path, numbers and addresses, and
// what is new is embedded beside it. What it had stays booked until all hosts
// have what is new; if one of them cannot build it, all is as it was.

// place finds room for another form of a network on its hosts: first with all its
// links where they are, then with those anew of which more is asked.
func (r *revision) place(request vnet.Request) *vnet.Rejection {
	var refusal *vnet.Rejection
	for _, again := range []bool{false, true} {
		kept := r.keptLinks(request, again)
		mapping, err := r.beside(request, kept)
		var infeasible *embed.Infeasible
		switch {
		case errors.As(err, &infeasible):
			refusal = &vnet.Rejection{Reasons: r.whatIsDown(infeasible.Reasons), Undecided: infeasible.Undecided}
		case err != nil:
			return &vnet.Rejection{Reasons: []string{err.Error()}}
		default:
			was := r.mapping
			if r.mapping = mapping; r.fits(request) {
				return nil
			}
			r.mapping = was
			refusal = &vnet.Rejection{Reasons: []string{"there is no room beside what stands"}}
		}
	}
	return refusal
}

// keptLinks are those that stay on their paths; less: without those whose rates
// change.
func (r *revision) keptLinks(request vnet.Request, less bool) map[string]bool {
	kept := make(map[string]bool)
	rates := func(of vnet.Request, name string) (list [][2]vnet.Bandwidth) {
		of = rewrite(of)
		eachBandwidth(&of, func(link, _ string, b *[2]vnet.Bandwidth) {
			if link == name {
				list = append(list, *b)
			}
		})
		return list
	}
	former := r.lease.Request.Union()
	for _, l := range request.Union().Links {
		was, ok := former.Link(l.Name)
		same := ok && was.Latency == l.Latency && was.MayPaths() == l.MayPaths() && was.Order == l.Order && was.Spread == l.Spread
		kept[l.Name] = same && (!less || reflect.DeepEqual(rates(r.lease.Request, l.Name), rates(request, l.Name)))
	}
	return kept
}

// beside embeds what is new of a request around what stands: nodes that are there
// are bound to their hosts, links that are kept hold their minima on their paths.
func (r *revision) beside(request vnet.Request, kept map[string]bool) (vnet.Mapping, error) {
	was := r.lease.Mapping
	trial := r.calendar.Clone()
	if err := r.bookKept(trial, request, kept); err != nil {
		return vnet.Mapping{}, err
	}
	as := r.lease.Lease
	as.Request = request
	rest := withoutLinks(keepingNodes(as, r.working), func(name string) bool { return kept[name] })
	mapping, err := r.embedAnew(trial, rest, r.window(request), was)
	if err != nil {
		return vnet.Mapping{}, err
	}
	mapping.Links, mapping.Splits = maps.Clone(mapping.Links), maps.Clone(mapping.Splits)
	for name := range kept {
		if path, ok := was.Links[name]; ok && kept[name] {
			mapping.Links[name] = path
		}
		if shares, ok := was.Splits[name]; ok && kept[name] {
			if mapping.Splits == nil {
				mapping.Splits = make(map[string][]vnet.PathShare)
			}
			mapping.Splits[name] = shares
		}
	}
	return mapping, nil
}

// bookKept enters what links that are kept hold of links of the substrate and
// insides of hosts. What their nodes hold comes with these.
func (r *revision) bookKept(trial *calendar.Calendar, request vnet.Request, kept map[string]bool) error {
	standing := withoutLinks(request, func(name string) bool { return !kept[name] })
	for _, t := range topologies(&standing) {
		gone := func(name string) bool { return r.lease.Mapping.Nodes[name] == "" }
		t.Nodes = slices.DeleteFunc(t.Nodes, func(n vnet.VirtualNode) bool { return gone(n.Name) })
		t.Routers = slices.DeleteFunc(t.Routers, func(n vnet.VirtualNode) bool { return gone(n.Name) })
		t.Switches = slices.DeleteFunc(t.Switches, func(s vnet.VirtualSwitch) bool { return gone(s.Name) })
	}
	bookings, err := r.resources.bookings(standing, r.window(request), r.lease.Mapping)
	if err != nil {
		return err
	}
	return trial.Book(slices.DeleteFunc(bookings, func(k calendar.Booking) bool { return !embed.OfLinks(k.Key) })...)
}

// withoutLinks is a request without some of its links, for an embedding.
func withoutLinks(r vnet.Request, gone func(name string) bool) vnet.Request {
	r = rewrite(r)
	for _, t := range topologies(&r) {
		t.Links = slices.DeleteFunc(t.Links, func(l vnet.VirtualLink) bool { return gone(l.Name) })
	}
	for i := range r.Stages {
		maps.DeleteFunc(r.Stages[i].Links, func(name string, _ [2]vnet.Bandwidth) bool { return gone(name) })
	}
	return r
}

// reform carries a decided change of form out.
func (b *Book) reform(now time.Time, r revision) error {
	e := r.lease
	former := formOf(e.Lease)
	union, running := r.request.Union(), e.onHosts()
	var changed []vnet.VirtualLink
	for _, l := range union.Links {
		if _, there := e.VNIs[l.Name]; !running || !there && !hasRoute(e.Mapping, l.Name) || !sameRoute(l, e.Mapping, r.mapping) {
			changed = append(changed, l)
		}
	}
	if err := plan.CheckChains(b.index(b.sub), r.mapping, union.Links); err != nil {
		return err
	}
	numbers, err := b.vnis.number(b.index(b.sub), b.sources(), changed, r.mapping)
	if err != nil {
		return err
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		b.vnis.free(numbers)
		return err
	}
	e.Lease = e.Metered(now)
	e.Account = b.withNewPlaces(e, r.mapping).Revised(e.Request, r.request, now.Sub(e.Window.Start))
	r.mapping.Places = e.Mapping.Places
	from, left, window := e.Mapping, leftNumbers(e.VNIs, union, changed), r.window(r.request)
	e.overrule(r.request)
	b.renumber(e, r.request, running)
	kept := maps.Clone(e.VNIs)
	maps.DeleteFunc(kept, func(link string, _ []vnet.VNI) bool { _, gone := left[link]; return gone })
	maps.Copy(kept, numbers)
	b.markDirty(e)
	e.former = e.bookings
	e.Request, e.Mapping, e.VNIs, e.Window, e.bookings = r.request, r.mapping, kept, window, r.bookings
	e.Revision++
	e.uses, e.Undone, e.parts, b.stale = nil, "", nil, true
	defer e.countUses()
	b.recordMove(now, e, from, left, vnet.MoveBuilds, 0)
	if running {
		e.Move.Form = &former
		b.rebuild(e)
	}
	b.markDirty(e)
	b.touch(e)
	return b.calendar.Book(e.bookings...)
}

func hasRoute(m vnet.Mapping, link string) bool {
	_, whole := m.Links[link]
	return whole || len(m.Splits[link]) > 0
}

// leftNumbers are the tunnel identifiers of links that go or take another path.
func leftNumbers(was map[string][]vnet.VNI, union vnet.Topology, changed []vnet.VirtualLink) map[string][]vnet.VNI {
	left := make(map[string][]vnet.VNI)
	for link, numbers := range was {
		_, stays := union.Link(link)
		if !stays || slices.ContainsFunc(changed, func(l vnet.VirtualLink) bool { return l.Name == link }) {
			left[link] = numbers
		}
	}
	return left
}

// formOf is what a lease is now.
func formOf(l vnet.Lease) vnet.Form {
	return vnet.Form{
		Request: l.Request, Window: l.Window, Addresses: l.Addresses, LinkAddresses: l.LinkAddresses,
		Numbers: l.Numbers, Account: l.Account, Impaired: l.Impaired, LinkStates: l.LinkStates,
	}
}

// takeForm makes a lease what it was, but for its mapping and tunnels.
func takeForm(l *vnet.Lease, f vnet.Form) {
	l.Request, l.Window, l.Addresses, l.LinkAddresses = f.Request, f.Window, f.Addresses, f.LinkAddresses
	l.Numbers, l.Impaired, l.LinkStates = f.Numbers, f.Impaired, f.LinkStates
	union := f.Request.Union()
	maps.DeleteFunc(l.VNIs, func(link string, _ []vnet.VNI) bool { _, there := union.Link(link); return !there })
}

// withNewPlaces is a lease's account with prices of what another mapping has beside.
func (b *Book) withNewPlaces(e *entry, m vnet.Mapping) *vnet.Account {
	if e.Account == nil {
		return nil
	}
	a := *e.Account
	a.Prices = a.Prices.At(b.sub, m, e.Mapping)
	return &a
}

// undoForm returns a lease to its former form, and says why.
func (b *Book) undoForm(now time.Time, e *entry) {
	why := b.rollout.Errors(e.ID(), e.allHosts())
	if len(why) == 0 {
		why = []string{"no word of it from " + list(b.rollout.Missing(e.ID(), e.allHosts()))}
	}
	e.Lease = e.Metered(now)
	account := e.Account.Revised(e.Request, e.Move.Form.Request, now.Sub(e.Window.Start))
	e.VNIs = maps.Clone(e.VNIs)
	takeForm(&e.Lease, *e.Move.Form)
	e.Account, e.Undone, e.uses = account, brief(why), nil
	e.Revision++
	e.countUses()
	b.rebuild(e)
}

// keepNodes lets nodes that go live on until what is new is built: what was in
// them is there if it cannot be.
func (b *Book) keepNodes(e *entry) error {
	if !e.moving() || e.Move.Form == nil {
		return nil
	}
	was := e.beforeMove()
	was.State = vnet.Deploying
	hosts, err := b.compiler().Compile([]vnet.Lease{was})
	if err != nil {
		return err
	}
	for _, name := range e.allHosts() {
		nodes := slices.DeleteFunc(hosts[name].Items(), func(item plan.Item) bool {
			return item.Kind() != plan.KindVNode && item.Kind() != plan.KindSetup
		})
		e.parts[name] = merged(e.parts[name], nodes)
	}
	return nil
}

// renumber gives what is new of a request numbers and addresses beside what the
// lease has; running: that keeps its own.
func (b *Book) renumber(e *entry, request vnet.Request, running bool) {
	seen := request.Union().Controlled()
	if !running {
		e.Numbers, e.LinkAddresses = nil, linkAddresses(request, seen)
		e.Addresses = addresses(seen, e.LinkAddresses)
		return
	}
	numbers := e.renumbered(seen)
	e.Numbers = &numbers
	pinned := e.pinned(seen)
	e.LinkAddresses = linkAddresses(request, pinned)
	e.Addresses = addresses(pinned, e.LinkAddresses)
}

// renumbered is the numbering of a lease with another union.
func (e *entry) renumbered(seen vnet.Topology) vnet.Numbering {
	union := e.Request.Union().Controlled()
	was := union.Numbering()
	if e.Numbers != nil {
		was = *e.Numbers
	}
	return seen.Renumbered(was, union)
}

// pinned is a topology in which everything that has an address states it, and new
// stations of a segment state one of its subnet.
func (e *entry) pinned(seen vnet.Topology) vnet.Topology {
	seen = copyTopology(seen)
	taken := make(map[netip.Addr]bool)
	for _, a := range e.Addresses { // also of nodes that go: for the time being both are there
		taken[a] = true
	}
	for i, l := range seen.Links {
		if given, ok := e.LinkAddresses[l.Name]; ok {
			seen.Links[i].Addresses = given
		}
	}
	segments := seen.Segments()
	for _, list := range [][]vnet.VirtualNode{seen.Nodes, seen.Routers} {
		for i, n := range list {
			if has, ok := e.Addresses[n.Name]; ok && !n.Address.IsValid() {
				list[i].Address = has
			} else if !n.Address.IsValid() && !numbered(seen, n.Name) {
				list[i].Address = e.besideIn(segments, n.Name, taken)
			}
			taken[list[i].Address] = true
		}
	}
	return seen
}

// numbered says whether a node's links state addresses.
func numbered(t vnet.Topology, node string) bool {
	return slices.ContainsFunc(t.Links, func(l vnet.VirtualLink) bool {
		return l.Ends[0] == node && len(l.Addresses[0]) > 0 || l.Ends[1] == node && len(l.Addresses[1]) > 0
	})
}

// besideIn is an address in the subnet of the first segment where a new node meets
// others; not valid: there are none, or the subnet is full.
func (e *entry) besideIn(segments []vnet.Segment, node string, taken map[netip.Addr]bool) netip.Addr {
	for _, s := range segments {
		var there, others []netip.Addr
		mine := false
		stands := make(map[string]bool)
		for _, st := range s.Stations {
			mine = mine || st.Node == node
			stands[st.Node] = true
		}
		for name, a := range e.Addresses {
			if stands[name] {
				there = append(there, a)
			} else {
				others = append(others, a)
			}
		}
		if !mine || len(there) == 0 {
			continue
		}
		slices.SortFunc(there, netip.Addr.Compare)
		subnet := plan.Subnet(there, others)
		for a := subnet.Addr(); subnet.IsValid() && subnet.Contains(a); a = a.Next() {
			if last := a.As4()[3]; !taken[a] && last != 0 && last != 255 {
				return a
			}
		}
	}
	return netip.Addr{}
}

// clash says which node would have two interfaces of one name.
func (e *entry) clash(request vnet.Request) error {
	seen := request.Union().Controlled()
	numbers, owner := e.renumbered(seen), make(map[string]string)
	for _, l := range seen.Links {
		for end, node := range l.Ends {
			if numbers.Interfaces[l.Name][end] == "" { // of a chain: none
				continue
			}
			is := node + " " + numbers.Interfaces[l.Name][end]
			if other, twice := owner[is]; twice {
				return &vnet.FieldError{Path: "links", Problem: fmt.Sprintf("interface %s belongs to link %s already: state another one for %s",
					strings.Replace(is, " ", ":", 1), other, l.Name)}
			}
			owner[is] = l.Name
		}
	}
	return nil
}
