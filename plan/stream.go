package plan

import (
	"cmp"
	"slices"
	"time"

	"sublet/vnet"
)

// Stream is a stream between two stations of a segment that fills the link
// it begins by, or where none can, at least to its minimum, and nothing it
// crosses more than it may: by such streams, all at once, the links at switches
// are measured.
type Stream struct {
	From, To  DirectedLink // the station's link to its switch, the other's from its own
	Ends      [2]string    // nodes
	Ports     [2]Port
	Rate      vnet.Rate // that it is to have; 0: best effort
	Fills     bool      // From; else it is asked for less than that carries
	Saturates bool      // fills To too
	// Latency is the sum of the bounds on what it crosses; 0: not all have one.
	Latency time.Duration
}

// DirectedLink is one direction of a virtual link.
type DirectedLink struct {
	Link string
	Dir  vnet.Direction
}

// Streams finds streams that together fill as many links at switches as
// possible: the fastest first, each to the slowest station that takes it all.
func Streams(sub vnet.Substrate, l vnet.Lease) ([]Stream, error) {
	n, err := newNetwork(sub, l)
	if err != nil {
		return nil, err
	}
	c := streams{network: n, left: make(map[DirectedLink]vnet.Rate), used: make(map[DirectedLink]bool)}
	var stations []vnet.Station
	for _, s := range n.top.Segments() {
		if !n.segment[s.Switches[0]].openFlow { // what arrives there is its controller's matter
			stations = append(stations, s.Stations...)
		}
	}
	for _, link := range n.top.Links {
		for _, d := range vnet.Directions {
			c.left[DirectedLink{link.Name, d}] = n.carries(link, d)
		}
	}
	slices.SortStableFunc(stations, func(a, b vnet.Station) int { return cmp.Compare(c.left[up(b)], c.left[up(a)]) })
	for _, from := range stations {
		c.begin(from, stations)
	}
	return c.list, nil
}

// carries is what a link carries in a direction with the switches at its ends:
// its rate, but no more than their ports' own capacities.
func (n *network) carries(link vnet.VirtualLink, d vnet.Direction) vnet.Rate {
	rate := n.lease.Rates[link.Name][d]
	for end, name := range link.Ends {
		s, ok := n.top.Switch(name)
		if !ok || rate == 0 {
			continue
		}
		port := s.Ports[link.Name]
		capacity := port.In
		if vnet.Direction(end) == d { // it leaves the switch
			capacity = port.Out
		}
		if capacity != 0 {
			rate = min(rate, capacity)
		}
	}
	return rate
}

type streams struct {
	*network
	left map[DirectedLink]vnet.Rate // that no stream takes yet
	used map[DirectedLink]bool      // stations' links that end a stream
	list []Stream
}

// up is a station's link towards its switch; the other way leads down to it.
func up(s vnet.Station) DirectedLink { return DirectedLink{s.Link.Name, vnet.Direction(s.End)} }

func down(s vnet.Station) DirectedLink {
	return DirectedLink{s.Link.Name, vnet.Direction(s.End).Opposite()}
}

// begin finds the best end for a stream from a station.
func (c *streams) begin(from vnet.Station, stations []vnet.Station) {
	rate := c.left[up(from)]
	best := c.slowest(from, stations, rate)
	fills := best != nil
	if !fills {
		best, rate = c.fastest(from, stations)
	}
	if best == nil {
		return
	}
	stream := Stream{
		From: up(from), To: down(*best), Ends: [2]string{from.Node, best.Node},
		Ports: [2]Port{*c.port(from.Link, from.End), *c.port(best.Link, best.End)},
		Rate:  rate, Fills: fills, Saturates: c.left[down(*best)] == rate,
	}
	c.used[down(*best)] = true
	bounded := true
	for _, d := range c.path(from, *best) {
		c.left[d] -= rate
		link, _ := c.top.Link(d.Link)
		stream.Latency += link.Latency
		bounded = bounded && link.Latency > 0
	}
	if !bounded {
		stream.Latency = 0
	}
	c.list = append(c.list, stream)
}

// slowest is the slowest station that takes a stream of a rate.
func (c *streams) slowest(from vnet.Station, stations []vnet.Station, rate vnet.Rate) (best *vnet.Station) {
	for i, to := range stations {
		if c.suits(from, to, rate) && (best == nil || c.left[down(to)] < c.left[down(*best)]) {
			best = &stations[i]
		}
	}
	return best
}

// fastest is the station to which most can be sent, if that is the minimum of
// the sender's link.
func (c *streams) fastest(from vnet.Station, stations []vnet.Station) (best *vnet.Station, rate vnet.Rate) {
	if c.left[up(from)] == 0 {
		return nil, 0
	}
	for i, to := range stations {
		if !c.suits(from, to, 1) {
			continue
		}
		most := c.left[up(from)]
		for _, d := range c.path(from, to) {
			most = min(most, c.left[d])
		}
		if most > rate && most >= from.Link.Bandwidth[up(from).Dir].Min {
			best, rate = &stations[i], most
		}
	}
	return best, rate
}

// suits says whether a stream of a rate can end at a station. Of a node with
// several links in a segment only the one is used by which it is reached.
func (c *streams) suits(from, to vnet.Station, rate vnet.Rate) bool {
	s := c.segment[from.Link.Ends[1-from.End]]
	if from.Node == to.Node || c.used[down(to)] || c.segment[to.Link.Ends[1-to.End]] != s || !c.adjacent(s, from, to) {
		return false
	}
	if s.answers[from.Node] != from.Link.Name || s.answers[to.Node] != to.Link.Name {
		return false
	}
	// Best effort ends at best effort only: nothing else bounds it.
	return (rate == 0) == (c.left[down(to)] == 0) &&
		!slices.ContainsFunc(c.path(from, to), func(d DirectedLink) bool { return c.left[d] < rate || c.cut[linkEnd{d.Link, 0}] })
}

// path lists the links from a station to another.
func (c *streams) path(from, to vnet.Station) []DirectedLink {
	list := []DirectedLink{up(from)}
	for at := from.Link.Ends[1-from.End]; at != to.Node; {
		out := c.towards(at, to)
		list = append(list, DirectedLink{out.Name, vnet.Direction(endAt(out, at))})
		if out.Name == to.Link.Name {
			break
		}
		at = far(out, at)
	}
	return list
}
