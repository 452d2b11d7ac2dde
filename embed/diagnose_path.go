package embed

import (
	"fmt"
	"math"
	"time"

	"sublet/embed/graph"
	"sublet/vnet"
)

// whyNoPath tells why a link finds no way from an end that is placed to any of
// some hosts.
func (d diagnosis) whyNoPath(l, placed int, hosts []int) []string {
	v := &d.problem.links[l]
	from := d.host[placed]
	var reasons []string
	for _, h := range hosts {
		if h == from {
			reasons = d.whyNotInside(l, from)
		}
	}
	if len(reasons) > 0 && len(hosts) == 1 {
		return reasons
	}
	any := func(graph.Arc) bool { return true }
	reach := d.graph.Reach(from, graph.Query{To: -1, Bound: v.bound, Allow: any})
	if to := nearest(reach, from, hosts); to >= 0 {
		return append(reasons, d.whyBlocked(l, placed, to, reach.Walk(to))...)
	}
	reach = d.graph.Reach(from, graph.Query{To: -1, Bound: math.MaxInt64, Allow: any})
	to := nearest(reach, from, hosts)
	if to < 0 {
		return append(reasons, fmt.Sprintf("no path from %s to %s", d.graph.Name(from), d.goal(l, placed, hosts)))
	}
	fastest := time.Duration(math.MaxInt64)
	for _, h := range hosts {
		if t, ok := reach.Fastest(h); ok && h != from {
			fastest = min(fastest, t)
		}
	}
	return append(reasons, fmt.Sprintf("no path from %s to %s within %s; the fastest takes %s", d.graph.Name(from), d.goal(l, placed, hosts), vnet.FormatDuration(v.bound), vnet.FormatDuration(fastest)))
}

// whyBlocked tells what keeps a link from a host to which a walk leads that would
// be fast enough: what is full of the walk, or of the shortest that relays can
// hold; or that there is no such walk, or none among those with room.
func (d diagnosis) whyBlocked(l, placed, to int, walk []graph.Arc) []string {
	from, q := d.host[placed], d.query(l, placed)
	q.To = to
	if !d.graph.Pinned(walk) {
		any := graph.Query{To: to, Bound: q.Bound, Allow: func(graph.Arc) bool { return true }}
		held, ok := d.graph.ReachPinned(from, any)
		if !ok {
			return []string{fmt.Sprintf("every path from %s to %s takes more than %d relays, for which packets have no room", d.graph.Name(from), d.graph.Name(to), vnet.MaxRelays)}
		}
		walk = held
	}
	reasons := d.saturated(l, placed, walk)
	reach := d.graph.Reach(from, q)
	if _, wide := reach.Hops(to); wide && !d.pinnable(reach, from, to, q) {
		reasons = append(reasons, fmt.Sprintf("the paths from %s to %s with room for %s take more than %d relays, for which packets have no room", d.graph.Name(from), d.graph.Name(to), d.problem.links[l].title, vnet.MaxRelays))
	}
	return reasons
}

// goal names where a link could lead.
func (d diagnosis) goal(l, placed int, hosts []int) string {
	if len(hosts) == 1 {
		return d.graph.Name(hosts[0])
	}
	far := d.problem.nodes[d.problem.links[l].far(placed)]
	return fmt.Sprintf("any host for node %s", far.name)
}

// nearest is the host with the fewest hops, other than from; -1: none is reached.
func nearest(reach *graph.Reach, from int, hosts []int) int {
	best, fewest := -1, math.MaxInt
	for _, h := range hosts {
		if hops, ok := reach.Hops(h); ok && h != from && hops < fewest {
			best, fewest = h, hops
		}
	}
	return best
}

// whyNotInside tells how a link does not fit inside a host.
func (d diagnosis) whyNotInside(l, host int) []string {
	v := &d.problem.links[l]
	var reasons []string
	if inside := d.residual.sub.Hosts[host].Inside; v.bound > 0 && inside > v.bound {
		reasons = append(reasons, fmt.Sprintf("a link inside host %s takes %s, and %s may take %s", d.graph.Name(host), vnet.FormatDuration(inside), v.title, vnet.FormatDuration(v.bound)))
	}
	for _, dir := range vnet.Directions {
		if i := d.residual.inside(host, dir); !d.residual.fits(i, v.min[dir]) {
			reasons = append(reasons, d.shortage(i, v.min[dir], v.title))
		}
	}
	return reasons
}

// saturated tells which arcs of a walk outward from an end do not carry a link.
func (d diagnosis) saturated(l, placed int, walk []graph.Arc) []string {
	v := &d.problem.links[l]
	out := v.outward(placed)
	var reasons []string
	for _, a := range walk {
		for _, dir := range vnet.Directions {
			if i := d.residual.arc(a ^ graph.Arc(dir)); !d.residual.fits(i, v.min[out^dir]) {
				reasons = append(reasons, d.shortage(i, v.min[out^dir], v.title))
			}
		}
	}
	return reasons
}
