package embed

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Ways out (vnet.NAT) and exits take no part in the search: their routers and
// switches are where they are, and what passes there follows from the request. So
// what they have left is looked at first.

// placedOut is a request with the routers that have a way out, and the switches
// with access to an exit, placed on its host; an error is *Infeasible.
func (e *Embedder) placedOut(request vnet.Request) (vnet.Request, error) {
	union := request.Union()
	if !slices.ContainsFunc(union.Nodes, func(n vnet.VirtualNode) bool { return joins(n) || hasDevice(n) }) && !slices.ContainsFunc(union.Routers, hasWayOut) && !slices.ContainsFunc(union.Switches, hasAccess) {
		return request, nil
	}
	var err error
	missing := func(what, name, of string) {
		reason := fmt.Sprintf("the operator offers no %s %q", what, name)
		if name == vnet.AnyNAT || name == vnet.AnyJoin {
			reason = "the operator offers no " + what
		}
		err = &Infeasible{Reasons: []string{reason}, Nodes: []string{of}}
	}
	place := func(list []vnet.VirtualNode) []vnet.VirtualNode {
		list = slices.Clone(list)
		for i := range list {
			n, ok := e.sub.NATOf(list[i].NAT)
			if ok {
				list[i].Site, list[i].Host = "", n.Host
			} else if hasWayOut(list[i]) {
				missing("way out", list[i].NAT, list[i].Name)
			}
		}
		return list
	}
	placeSwitches := func(list []vnet.VirtualSwitch) []vnet.VirtualSwitch {
		list = slices.Clone(list)
		for i := range list {
			x, ok := e.sub.ExitOf(list[i].Access)
			if ok {
				list[i].Site, list[i].Host = "", x.Host
			} else if hasAccess(list[i]) {
				missing("exit", list[i].Access, list[i].Name)
			}
		}
		return list
	}
	placeNodes := func(list []vnet.VirtualNode) []vnet.VirtualNode {
		list = slices.Clone(list)
		for i := range list {
			j, ok := e.sub.JoinOf(list[i].Join)
			if ok {
				list[i].Site, list[i].Host = "", j.Host
			} else if joins(list[i]) {
				missing("place to join", list[i].Join, list[i].Name)
			}
			if d, ok := e.sub.DeviceOf(list[i].Device); ok {
				list[i].Site, list[i].Host = "", d.Host
			} else if hasDevice(list[i]) {
				missing("device", list[i].Device, list[i].Name)
			}
		}
		return list
	}
	request.Nodes = placeNodes(request.Nodes)
	request.Routers, request.Switches = place(request.Routers), placeSwitches(request.Switches)
	request.Stages = slices.Clone(request.Stages)
	for i := range request.Stages {
		add := &request.Stages[i].Add
		add.Nodes = placeNodes(add.Nodes)
		add.Routers, add.Switches = place(add.Routers), placeSwitches(add.Switches)
	}
	return request, err
}

func hasWayOut(n vnet.VirtualNode) bool { return n.NAT != "" }

// outside chooses the addresses of routers with a way out among those that are
// free in all of their time, the present one first; the error is *Infeasible.
func (e *Embedder) outside(cal *calendar.Calendar, request vnet.Request, spans []span, present map[string]netip.Addr) (map[string]netip.Addr, error) {
	routers := slices.DeleteFunc(request.Union().Routers, func(n vnet.VirtualNode) bool { return !hasWayOut(n) })
	if len(routers) == 0 {
		return nil, nil
	}
	chosen := make(map[string]netip.Addr, len(routers))
	for _, r := range routers {
		way, _ := e.sub.NATOf(r.NAT)
		for _, p := range r.Publish {
			if !way.Publish.Contains(p.Outside) {
				return nil, &Infeasible{Reasons: []string{notPublished(way, p)}, Nodes: []string{r.Name}}
			}
		}
		address, ok := freeAddress(cal, way, request, r.Name, spans, chosen, present[r.Name])
		if !ok {
			return nil, &Infeasible{Reasons: []string{fmt.Sprintf("all %d addresses of way out %s are taken in this window", len(way.Pool.All()), way.Name)}, Nodes: []string{r.Name}}
		}
		chosen[r.Name] = address
	}
	return chosen, nil
}

func notPublished(way vnet.NAT, p vnet.Publish) string {
	if way.Publish == (vnet.PortRange{}) {
		return fmt.Sprintf("way out %s lets no ports be published", way.Name)
	}
	return fmt.Sprintf("way out %s lets ports %s be published, not %d", way.Name, way.Publish, p.Outside)
}

// freeAddress looks for a free address: first for the present one, then from one
// that follows from the names on, so that a network mostly has the same again.
func freeAddress(cal *calendar.Calendar, way vnet.NAT, request vnet.Request, router string, spans []span, chosen map[string]netip.Addr, present netip.Addr) (netip.Addr, bool) {
	pool, digest := way.Pool.All(), fnv.New32a()
	fmt.Fprintf(digest, "%s/%s/%s", request.Tenant, request.Network, router)
	first := int(digest.Sum32() % uint32(len(pool)))
	order := slices.Concat(pool[first:], pool[:first])
	if way.Pool.Contains(present) {
		order = slices.Insert(order, 0, present)
	}
	for _, a := range order {
		taken := slices.ContainsFunc(spans, func(s span) bool {
			return has(s.topology, router) && cal.Residual(addressKey(way, a), 1, s.window) < 1
		})
		for _, other := range chosen {
			taken = taken || other == a
		}
		if !taken {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func has(t vnet.Topology, router string) bool {
	return slices.ContainsFunc(t.Routers, func(n vnet.VirtualNode) bool { return n.Name == router })
}

// roomOutside compares what links ask of ways out with what is left there.
func (e *Embedder) roomOutside(cal *calendar.Calendar, spans []span) error {
	for _, s := range spans {
		for key, need := range needsOutside(s.topology) {
			way, capacity := e.offered(key.Link)
			free := cal.Residual(key.String(), int64(capacity), s.window)
			if int64(need) <= free {
				continue
			}
			where := "outwards"
			if key.Dir == vnet.Reverse {
				where = "inwards"
			}
			text := fmt.Sprintf("%s has %s of %s free %s in this window, and the network needs %s", way, vnet.Rate(max(0, free)), capacity, where, need)
			return &Infeasible{Reasons: []string{text}, Links: linksOutside(s.topology, key.Link)}
		}
	}
	return nil
}

// RoomOutside says whether ways out and exits have what a request asks of them, in
// every instant of window from a time on.
func (e *Embedder) RoomOutside(cal *calendar.Calendar, request vnet.Request, window vnet.Window, from time.Time) bool {
	request, err := e.placedOut(request)
	if err != nil {
		return false
	}
	_, err = e.allOutside(cal, request, spansFrom(request, window, from), vnet.Mapping{})
	return err == nil
}

// allOutside is what a request gets of ways out and exits; the error is *Infeasible.
func (e *Embedder) allOutside(cal *calendar.Calendar, request vnet.Request, spans []span, present vnet.Mapping) (got vnet.Mapping, err error) {
	if err = e.roomOutside(cal, spans); err != nil {
		return got, err
	}
	if err = freeDevices(cal, spans); err != nil {
		return got, err
	}
	if got.Outside, err = e.outside(cal, request, spans, present.Outside); err != nil {
		return got, err
	}
	if got.VLANs, err = e.vlans(cal, request, spans, present.VLANs); err != nil {
		return got, err
	}
	got.Joins, err = e.ports(cal, request, spans, present.Joins)
	return got, err
}

// spansFrom are the spans of a request that are not over at an instant.
func spansFrom(request vnet.Request, window vnet.Window, from time.Time) []span {
	spans := spansOf(request, window)
	startFrom(spans, from)
	return slices.DeleteFunc(spans, func(s span) bool { return s.past })
}

// offered is what an element of a way out or exit is called, and its capacity.
func (e *Embedder) offered(link string) (what string, capacity vnet.Rate) {
	if name, ok := strings.CutPrefix(link, rate.NATPrefix); ok {
		way, _ := e.sub.NATOf(name)
		return "way out " + name, way.Capacity
	}
	if name, ok := strings.CutPrefix(link, rate.JoinPrefix); ok {
		join, _ := e.sub.JoinOf(name)
		return "place to join " + name, join.Capacity
	}
	name := strings.TrimPrefix(link, rate.ExitPrefix)
	exit, _ := e.sub.ExitOf(name)
	return "exit " + name, exit.Capacity
}

// needsOutside adds up the minima of the links that end at ways out.
func needsOutside(t vnet.Topology) map[rate.Element]vnet.Rate {
	needs := make(map[rate.Element]vnet.Rate)
	ways := waysOf(t)
	for _, l := range t.Links {
		for _, dir := range vnet.Directions {
			for _, e := range elementsOutside(ways, l, dir) {
				needs[e] += l.Bandwidth[dir].Min
			}
		}
	}
	return needs
}

// waysOf are the links of elements of ways out and exits, by their routers and
// switches.
func waysOf(t vnet.Topology) map[string]string {
	var ways map[string]string
	put := func(name, link string) {
		if ways == nil {
			ways = make(map[string]string)
		}
		ways[name] = link
	}
	for _, n := range t.Nodes {
		if joins(n) {
			put(n.Name, rate.JoinPrefix+n.Join)
		}
	}
	for _, r := range t.Routers {
		if hasWayOut(r) {
			put(r.Name, rate.NATPrefix+r.NAT)
		}
	}
	for _, s := range t.Switches {
		if hasAccess(s) {
			put(s.Name, rate.ExitPrefix+s.Access)
		}
	}
	return ways
}

// elementsOutside are those of ways out that one direction of a link runs over.
func elementsOutside(ways map[string]string, l vnet.VirtualLink, dir vnet.Direction) (list []rate.Element) {
	if way, ok := ways[l.Ends[dir.Opposite()]]; ok {
		list = append(list, rate.Element{Link: way, Dir: vnet.Forward})
	}
	if way, ok := ways[l.Ends[dir]]; ok {
		list = append(list, rate.Element{Link: way, Dir: vnet.Reverse})
	}
	return list
}

func linksOutside(t vnet.Topology, way string) (names []string) {
	ways := waysOf(t)
	for _, l := range t.Links {
		if ways[l.Ends[0]] == way || ways[l.Ends[1]] == way {
			names = append(names, l.Name)
		}
	}
	return names
}

// addressKey names an address of a pool in the calendar.
func addressKey(way vnet.NAT, a netip.Addr) string {
	return rate.NATPrefix + way.Name + ":" + a.String()
}

// bookOutside lists what a mapping takes of ways out, in a fixed order. An error
// says what of it the substrate does not have.
func (e *Embedder) bookOutside(spans []span, m vnet.Mapping) (list []calendar.Booking, err error) {
	for _, s := range spans {
		for _, r := range s.topology.Routers {
			if !hasWayOut(r) {
				continue
			}
			way, ok := e.sub.NATOf(r.NAT)
			switch a := m.Outside[r.Name]; {
			case !ok:
				return nil, fmt.Errorf("way out %s would be gone", r.NAT)
			case !way.Pool.Contains(a):
				return nil, fmt.Errorf("router %s has address %s, which is not of way out %s", r.Name, a, r.NAT)
			case m.Nodes[r.Name] != way.Host:
				return nil, fmt.Errorf("router %s is on %s, and way out %s is on %s", r.Name, m.Nodes[r.Name], r.NAT, way.Host)
			case slices.ContainsFunc(r.Publish, func(p vnet.Publish) bool { return !way.Publish.Contains(p.Outside) }):
				return nil, fmt.Errorf("router %s publishes a port that way out %s would not let be published", r.Name, way.Name)
			default:
				list = append(list, calendar.Booking{Key: addressKey(way, a), Amount: 1, Window: s.window})
			}
		}
		vlans, err := e.bookVLANs(s, m)
		if err != nil {
			return nil, err
		}
		ports, err := e.bookPorts(s, m)
		if err != nil {
			return nil, err
		}
		devices, err := e.bookDevices(s, m)
		if err != nil {
			return nil, err
		}
		list = slices.Concat(list, vlans, ports, devices)
		needs := needsOutside(s.topology)
		for _, key := range slices.SortedFunc(maps.Keys(needs), compareElements) {
			if needs[key] > 0 {
				list = append(list, calendar.Booking{Key: key.String(), Amount: int64(needs[key]), Window: s.window})
			}
		}
	}
	return mostOfEach(list), nil
}

func compareElements(a, b rate.Element) int {
	return cmp.Or(strings.Compare(a.Link, b.Link), cmp.Compare(a.Dir, b.Dir))
}

// addOutside adds what ways out and exits offer to capacities by key.
func addOutside(capacities map[string]int64, sub vnet.Substrate) {
	addExits(capacities, sub)
	addJoins(capacities, sub)
	for _, d := range sub.Devices {
		capacities[deviceKey(d.Name)] = 1
	}
	for _, way := range sub.NAT {
		for _, dir := range vnet.Directions {
			capacities[rate.Outside(way.Name, dir).String()] = int64(way.Capacity)
		}
		for _, a := range way.Pool.All() {
			capacities[addressKey(way, a)] = 1
		}
	}
}
