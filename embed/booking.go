package embed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Bookings lists what a mapping takes of the substrate during each stage's
// part of window, one booking per element and span, in a fixed order. Release
// the same list to give it back. It depends on the substrate's names and ends,
// not on its capacities. An error says that the mapping does not belong to the
// request or the substrate.
//
// Keys: "cpu:HOST" in milli-cores, "memory:HOST" in bytes, "guests:HOST" (a
// network with an exclusive node takes all, others one), and in bit/s
// "carrying:HOST", "machine" and rate.Element's String. "nat:NAME:ADDRESS" is an
// address of a way out, "exit:NAME:VLAN" a VLAN of an exit. "entries:NAME>" and
// "meters:NAME>" are those of an OpenFlow switch, "slow-path:NAME>" bit/s that it
// carries in software.
func (e *Embedder) Bookings(request vnet.Request, window vnet.Window, mapping vnet.Mapping) ([]calendar.Booking, error) {
	inside, err := e.bookInside(request, window, mapping)
	if err != nil {
		return nil, err
	}
	outside, err := e.bookOutside(spansOf(request, window), mapping)
	if err != nil {
		return nil, fmt.Errorf("book %s: %w", request.Network, err)
	}
	switches, err := e.bookSwitches(spansOf(request, window), mapping)
	if err != nil {
		return nil, fmt.Errorf("book %s: %w", request.Network, err)
	}
	return slices.Concat(inside, outside, switches), nil
}

// bookInside is Bookings without ways out.
func (e *Embedder) bookInside(request vnet.Request, window vnet.Window, mapping vnet.Mapping) ([]calendar.Booking, error) {
	p, err := problemOf(request, window)
	if err != nil {
		return nil, err
	}
	g := e.graph
	l := &ledger{residuals: residuals{inventory: e.inventory(), spans: len(p.spans)}, taken: map[resource][]int64{}}
	for i := range p.nodes {
		host, ok := g.Host(mapping.Nodes[p.nodes[i].name])
		if !ok {
			return nil, fmt.Errorf("book %s: node %s is mapped to %q, which is no host", request.Network, p.nodes[i].name, mapping.Nodes[p.nodes[i].name])
		}
		l.addNode(p.nodes[i], host)
	}
	for i := range p.links {
		v := p.links[i]
		host, carriers, err := route(g, mapping, v.name, [2]string{p.nodes[v.ends[0]].name, p.nodes[v.ends[1]].name})
		if err != nil {
			return nil, fmt.Errorf("book %s: %w", request.Network, err)
		}
		for _, carrier := range carriers {
			l.addCarrier(v, host, carrier)
		}
	}
	return l.bookings(p.spans), nil
}

// ledger adds up what is taken of each resource in each span.
type ledger struct {
	residuals
	taken map[resource][]int64
}

// amounts of a resource taken so far.
func (l *ledger) amounts(i resource) []int64 {
	if l.taken[i] == nil {
		l.taken[i] = make([]int64, l.spans)
	}
	return l.taken[i]
}

func (l *ledger) add(i resource, amounts []int64) {
	taken := l.amounts(i)
	for s, amount := range amounts {
		taken[s] += amount
	}
}

// addNode books a node at a host.
func (l *ledger) addNode(n node, host int) {
	for _, kind := range summed {
		l.add(l.of(host, kind), n.need(kind))
	}
	if l.sub.Forwards != 0 {
		l.add(l.machine(), n.need(carrying))
	}
	taken := l.amounts(l.of(host, guests))
	for s := range taken {
		taken[s] = max(taken[s], n.guests[s]) // a network is one guest, however many nodes it has
	}
}

// addCarrier books a path's part of a link's minima, in both directions.
func (l *ledger) addCarrier(v link, host int, way carrier) {
	for _, dir := range vnet.Directions {
		minima := part(way.share, v.min[dir])
		if len(way.walk) == 0 {
			l.add(l.inside(host, dir), minima)
		}
		for _, a := range way.walk {
			l.add(l.arc(a^graph.Arc(dir)), minima)
		}
	}
}

// part is a path's part of amounts by span.
func part(share vnet.PathShare, amounts []int64) []int64 {
	if share.Units == vnet.ShareUnits {
		return amounts
	}
	parts := make([]int64, len(amounts))
	for s, amount := range amounts {
		parts[s] = int64(share.Of(vnet.Rate(amount)))
	}
	return parts
}

// bookings lists the ledger by resource and time; neighbouring spans of equal
// amount are one booking.
func (l *ledger) bookings(spans []span) []calendar.Booking {
	var list []calendar.Booking
	for _, i := range slices.Sorted(maps.Keys(l.taken)) {
		amounts, windows := most(spans, l.taken[i])
		for s := 0; s < len(amounts); s++ {
			booking := calendar.Booking{Key: l.key(i), Amount: amounts[s], Window: windows[s]}
			for s+1 < len(amounts) && amounts[s+1] == amounts[s] {
				s++
				booking.Window.End = windows[s].End
			}
			if booking.Amount > 0 {
				list = append(list, booking)
			}
		}
	}
	return list
}

// most is what is taken at most in each time: one of the spans that are the same
// time runs then.
func most(spans []span, taken []int64) (amounts []int64, windows []vnet.Window) {
	for s, amount := range taken {
		if last := len(windows) - 1; s > 0 && spans[s].window == windows[last] {
			amounts[last] = max(amounts[last], amount)
			continue
		}
		amounts, windows = append(amounts, amount), append(windows, spans[s].window)
	}
	return amounts, windows
}

// mostOfEach is a list with one booking for each key and time, the largest.
func mostOfEach(list []calendar.Booking) []calendar.Booking {
	type place struct {
		key    string
		window vnet.Window
	}
	at := make(map[place]int, len(list))
	kept := list[:0]
	for _, k := range list {
		i, again := at[place{k.Key, k.Window}]
		if again {
			kept[i].Amount = max(kept[i].Amount, k.Amount)
			continue
		}
		at[place{k.Key, k.Window}] = len(kept)
		kept = append(kept, k)
	}
	return kept
}

// OfLinks says of a booking's key that it is of what carries links: a link of the
// substrate or the inside of a host.
func OfLinks(key string) bool {
	return key != machineKey && !slices.ContainsFunc(append(hostKeys[:], rate.NATPrefix, rate.ExitPrefix, rate.JoinPrefix, rate.DevicePrefix), func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
