package embed

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sublet/embed/calendar"
)

// totals compares what a whole network needs with what all hosts that could
// give it have left together: where that does not suffice there is no place,
// whatever a search would try.
type totals struct {
	diagnosis
	sites        []string // that the request names, behind ""
	nodes, hosts [][]int  // by node or host: its sites
	listed       []bool   // by node: found has it
	found        Infeasible
}

func (e *Embedder) totals(p *problem, left *residuals, cal *calendar.Calendar) *totals {
	t := &totals{
		diagnosis: diagnosis{search: &search{instance: instance{problem: p, graph: e.graph}, state: state{residual: left}}, cal: cal, sub: e.sub},
		listed:    make([]bool, len(p.nodes)),
	}
	t.group()
	return t
}

// onHosts explains what the nodes need more of than all hosts that could take
// them have left; nil: nothing.
func (t *totals) onHosts() error {
	if t.problem.apart {
		t.eachItsHost()
	}
	for span := range t.problem.spans {
		for _, kind := range summed {
			t.inSpan(kind, span)
		}
	}
	return t.reasons()
}

// reasons are those found; nil: there are none.
func (t *totals) reasons() error {
	if t.found.Reasons == nil {
		return nil
	}
	return &t.found
}

// group sorts nodes and hosts by site; group 0 is everywhere, and has all.
func (t *totals) group() {
	index := map[string]int{"": 0}
	t.sites = []string{""}
	for v := range t.problem.nodes {
		groups := []int{0}
		for _, want := range t.problem.nodes[v].wants {
			if _, known := index[want.Site]; !known {
				index[want.Site] = len(t.sites)
				t.sites = append(t.sites, want.Site)
			}
			if g := index[want.Site]; !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
		t.nodes = append(t.nodes, groups)
	}
	for _, h := range t.sub.Hosts {
		groups := []int{0}
		if g := index[h.Site]; g > 0 {
			groups = append(groups, g)
		}
		t.hosts = append(t.hosts, groups)
	}
}

// eachItsHost compares the nodes that want a host each with the hosts that
// other networks leave free.
func (t *totals) eachItsHost() {
	nodes, hosts := make([]int, len(t.sites)), make([]int, len(t.sites))
	for _, groups := range t.nodes {
		for _, g := range groups {
			nodes[g]++
		}
	}
	for h, groups := range t.hosts {
		for _, g := range groups {
			if t.admits(h) {
				hosts[g]++
			}
		}
	}
	for g, site := range t.sites {
		if nodes[g] > hosts[g] && hosts[g] > 0 {
			t.note(g, fmt.Sprintf("colocate: forbidden asks for a host for each of %s%s, and there %s for it", count(nodes[g], "node"), atSite(site), are(hosts[g], "host")))
		}
	}
}

// admits says whether other networks let one more onto a host at any time.
func (t *totals) admits(host int) bool {
	at := int(t.residual.of(host, guests)) * t.residual.spans
	return slices.Max(t.residual.amounts[at:at+t.residual.spans]) > 0
}

// inSpan compares what nodes need in a span with what is left on the hosts
// of their site, and on all.
func (t *totals) inSpan(kind resource, span int) {
	need, free, offered := make([]int64, len(t.sites)), make([]int64, len(t.sites)), make([]int64, len(t.sites))
	for v, groups := range t.nodes {
		for _, g := range groups {
			need[g] += t.problem.nodes[v].need(kind)[span]
		}
	}
	for h, groups := range t.hosts {
		i, room := t.residual.of(h, kind), t.residual.amounts[int(t.residual.of(h, guests))*t.residual.spans+span]
		for _, g := range groups {
			offered[g] = plus(offered[g], t.residual.capacity(i))
			if room > 0 {
				free[g] = plus(free[g], max(0, t.residual.amounts[int(i)*t.residual.spans+span]))
			}
		}
	}
	for g := range t.sites {
		if need[g] > free[g] && offered[g] > 0 {
			t.note(g, t.lacking(g, kind, span, need[g], free[g], offered[g]))
		}
	}
}

// onMachine compares what the links need with what is left of the machine that
// all hosts are; nil: it suffices.
func (t *totals) onMachine() error {
	if t.sub.Forwards == 0 {
		return nil
	}
	for span := range t.problem.spans {
		need, i := int64(0), t.residual.machine()
		for _, n := range t.problem.nodes {
			need += n.need(carrying)[span]
		}
		if free := t.residual.amounts[int(i)*t.residual.spans+span]; need > free {
			t.note(0, t.lacking(0, carrying, span, need/2, free/2, t.residual.capacity(i)/2)+": all hosts are one machine")
		}
	}
	return t.reasons()
}

// lacking says that hosts do not have enough together, ever or in a window.
func (t *totals) lacking(site int, kind resource, span int, need, free, offered int64) string {
	who, have := "the network needs", "all hosts together"
	if site > 0 {
		who, have = fmt.Sprintf("the nodes at site %s need", t.sites[site]), "its hosts together"
	}
	what := fmt.Sprintf("%s %s%s, and %s", who, t.amount(kind, need), of[kind], have)
	if need > offered {
		return fmt.Sprintf("%s offer %s to leases", what, t.amount(kind, offered))
	}
	return fmt.Sprintf("%s have %s free %s", what, t.amount(kind, free), t.during(span))
}

// during names the window of a span.
func (t *totals) during(span int) string {
	if len(t.problem.spans) == 1 {
		return "in this window"
	}
	return "from " + t.problem.spans[span].window.Start.UTC().Format(time.RFC3339) + " on"
}

// mostTotals is how many reasons are given: more would only repeat them.
const mostTotals = 4

// note adds a reason that concerns the nodes at a site.
func (t *totals) note(site int, reason string) {
	if len(t.found.Reasons) >= mostTotals {
		return
	}
	t.found.Reasons = append(t.found.Reasons, reason)
	for v, groups := range t.nodes {
		if !t.listed[v] && slices.Contains(groups, site) {
			t.listed[v] = true
			t.found.Nodes = append(t.found.Nodes, t.problem.nodes[v].name)
		}
	}
}

// plus adds amounts that may be without a bound.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

func atSite(site string) string {
	if site == "" {
		return ""
	}
	return " at site " + site
}

// count says how many there are of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// are says that there are so many.
func are(n int, what string) string {
	if n == 1 {
		return "is 1 " + what
	}
	return fmt.Sprintf("are %d %ss", n, what)
}
