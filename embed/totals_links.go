package embed

import (
	"fmt"
	"slices"

	"sublet/embed/graph"
	"sublet/vnet"
)

// onLinks explains what virtual links need more of than the substrate's links
// have left; nil: nothing.
func (t *totals) onLinks() error {
	for span := range t.problem.spans {
		t.outside(span)
	}
	return t.reasons()
}

// outside compares what virtual links take outside of hosts, at the least, with
// what the substrate's links have left in a span: each of them with the widest
// and, together, with those that leave the hosts of a site, or all hosts.
func (t *totals) outside(span int) {
	widest, need, named := t.widest(span), make([]int64, len(t.sites)), make([]string, len(t.sites))
	for l := range t.problem.links {
		v := &t.problem.links[l]
		for _, dir := range vnet.Directions {
			for _, site := range t.exits(v, dir) {
				need[site] = plus(need[site], v.min[dir][span])
				named[site] = v.name
			}
		}
		if most := max(v.min[vnet.Forward][span], v.min[vnet.Reverse][span]); v.paths == 1 && t.crosses(v) && most > widest {
			t.exceeds(v.name, fmt.Sprintf("%s needs %s, and no link of the substrate has more than %s free %s",
				v.title, vnet.Rate(most), vnet.Rate(widest), t.during(span)))
		}
	}
	for site, free := range t.leaving(span) {
		if need[site] > free && t.found.Reasons == nil {
			t.exceeds(named[site], t.narrow(site, span, need[site], free))
		}
	}
}

// narrow says that the links that leave hosts do not have enough together.
func (t *totals) narrow(site, span int, need, free int64) string {
	if site == 0 {
		return fmt.Sprintf("the virtual links between hosts need %s together, both directions added up, and the links of all hosts have %s free %s",
			vnet.Rate(need), vnet.Rate(free), t.during(span))
	}
	return fmt.Sprintf("the virtual links from site %s to others need %s together, and the links that leave its hosts have %s free %s",
		t.sites[site], vnet.Rate(need), vnet.Rate(free), t.during(span))
}

// exits lists the sites whose hosts a link leaves in a direction, wherever its
// ends are placed; 0 among them: it leaves a host.
func (t *totals) exits(v *link, dir vnet.Direction) []int {
	var exits []int
	if t.crosses(v) {
		exits = append(exits, 0)
	}
	from, to := t.nodes[v.ends[dir]], t.nodes[v.ends[dir.Opposite()]]
	for _, site := range from[1:] {
		if len(to) > 1 && !slices.Contains(to, site) {
			exits = append(exits, site)
		}
	}
	return exits
}

// crosses says whether the ends of a link must be on different hosts.
func (t *totals) crosses(v *link) bool {
	if t.problem.apart {
		return true
	}
	for _, a := range t.problem.nodes[v.ends[0]].wants {
		for _, b := range t.problem.nodes[v.ends[1]].wants {
			if a.Host != "" && b.Host != "" && a.Host != b.Host || a.Site != "" && b.Site != "" && a.Site != b.Site {
				return true
			}
		}
	}
	return false
}

// widest is the most that an arc has left in a span.
func (t *totals) widest(span int) (most int64) {
	for i := range t.sub.Links {
		for _, dir := range vnet.Directions {
			most = max(most, t.free(graph.ArcOf(i, dir), span))
		}
	}
	return most
}

// leaving adds up what arcs have left in a span that leave the hosts of each site.
func (t *totals) leaving(span int) []int64 {
	sums := make([]int64, len(t.sites))
	for h, sites := range t.hosts {
		for _, a := range t.graph.Leaving(h) {
			head := t.graph.Head(a)
			for _, site := range sites {
				if site == 0 || head >= len(t.hosts) || !slices.Contains(t.hosts[head], site) {
					sums[site] = plus(sums[site], t.free(a, span))
				}
			}
		}
	}
	return sums
}

// free is what an arc has left in a span.
func (t *totals) free(a graph.Arc, span int) int64 {
	return max(0, t.residual.amounts[int(t.residual.arc(a))*t.residual.spans+span])
}

// exceeds adds a reason that concerns a link.
func (t *totals) exceeds(link, reason string) {
	if len(t.found.Reasons) < mostTotals {
		t.found.add(&t.found.Links, link, reason)
	}
}
