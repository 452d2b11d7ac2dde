package embed

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Ways out (vnet.NAT) take no part in the search: their routers are where the
// way out is, and what passes there follows from the request. So what they have
// left is looked at first.

// placedOut is a request with the routers that have a way out placed on its host,
// by node; an error is *Infeasible.
func (e *Embedder) placedOut(request vnet.Request) (vnet.Request, error) {
	if !slices.ContainsFunc(request.Union().Routers, hasWayOut) {
		return request, nil
	}
	var err error
	place := func(list []vnet.VirtualNode) []vnet.VirtualNode {
		list = slices.Clone(list)
		for i := range list {
			n, ok := e.sub.NATOf(list[i].NAT)
			if ok {
				list[i].Site, list[i].Host = "", n.Host
			} else if hasWayOut(list[i]) {
				err = &Infeasible{Reasons: []string{fmt.Sprintf("the operator offers no way out %q", list[i].NAT)}, Nodes: []string{list[i].Name}}
			}
		}
		return list
	}
	request.Routers, request.Stages = place(request.Routers), slices.Clone(request.Stages)
	for i := range request.Stages {
		request.Stages[i].Add.Routers = place(request.Stages[i].Add.Routers)
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
	if err := e.roomOutside(cal, spans); err != nil {
		return nil, err
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
			way, _ := e.sub.NATOf(key.Link[len(rate.NATPrefix):])
			free := cal.Residual(key.String(), int64(way.Capacity), s.window)
			if int64(need) <= free {
				continue
			}
			where := "outwards"
			if key.Dir == vnet.Reverse {
				where = "inwards"
			}
			text := fmt.Sprintf("way out %s has %s of %s free %s in this window, and the network needs %s", way.Name, vnet.Rate(max(0, free)), way.Capacity, where, need)
			return &Infeasible{Reasons: []string{text}, Links: linksOutside(s.topology, way.Name)}
		}
	}
	return nil
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

// waysOf names the ways out by their routers.
func waysOf(t vnet.Topology) map[string]string {
	var ways map[string]string
	for _, r := range t.Routers {
		if hasWayOut(r) {
			if ways == nil {
				ways = make(map[string]string)
			}
			ways[r.Name] = r.NAT
		}
	}
	return ways
}

// elementsOutside are those of ways out that one direction of a link runs over.
func elementsOutside(ways map[string]string, l vnet.VirtualLink, dir vnet.Direction) (list []rate.Element) {
	if way, ok := ways[l.Ends[dir.Opposite()]]; ok {
		list = append(list, rate.Outside(way, vnet.Forward))
	}
	if way, ok := ways[l.Ends[dir]]; ok {
		list = append(list, rate.Outside(way, vnet.Reverse))
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
		needs := needsOutside(s.topology)
		for _, way := range e.sub.NAT {
			for _, dir := range vnet.Directions {
				key := rate.Outside(way.Name, dir)
				if needs[key] > 0 {
					list = append(list, calendar.Booking{Key: key.String(), Amount: int64(needs[key]), Window: s.window})
				}
			}
		}
	}
	return list, nil
}

// addOutside adds what ways out offer to capacities by key.
func addOutside(capacities map[string]int64, sub vnet.Substrate) {
	for _, way := range sub.NAT {
		for _, dir := range vnet.Directions {
			capacities[rate.Outside(way.Name, dir).String()] = int64(way.Capacity)
		}
		for _, a := range way.Pool.All() {
			capacities[addressKey(way, a)] = 1
		}
	}
}
