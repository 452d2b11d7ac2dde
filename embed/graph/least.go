package graph

import (
	"math"
	"slices"
)

// Unreached is the cost to a host that a search did not come to.
const Unreached = math.MaxInt64

// Least holds walks of least cost from one host to all others. It is working
// space too: the next Grow forgets them.
type Least struct {
	graph  *Graph
	prices Prices
	cost   []int64 // by host
	last   []Arc   // by host: the arc that reaches it
	first  []Arc   // by host: the arc by which the host before is left
	heap   []uint64
	inner  []int64 // by switch, of the fabric being crossed

	reached []int32 // hosts with a cost

	round, missing int
	sought         []int // by host: the round in which it was sought
}

// NewLeast makes the working space of a search.
func (g *Graph) NewLeast() *Least {
	t := &Least{
		graph: g, cost: make([]int64, g.hosts), last: make([]Arc, g.hosts), first: make([]Arc, g.hosts),
		inner: make([]int64, len(g.trees)), sought: make([]int, g.hosts), round: 1,
	}
	for h := range t.cost {
		t.cost[h] = Unreached
	}
	return t
}

// Seek names a host that the next Grow is to reach; once all of them are
// reached it ends. If none is named it goes everywhere.
func (t *Least) Seek(host int) {
	if a := t.graph.stub[host]; a >= 0 {
		host = t.graph.head[a^1]
	}
	if t.sought[host] != t.round {
		t.sought[host] = t.round
		t.missing++
	}
}

// Grow finds walks of least cost from a host to all others, or to those that
// were sought. Hosts dearer than limit may be left out. Of equal walks it
// takes the same every time. Where switches are, walks are simple ones: those
// that need to relay through a host entered by the dearer of its links are not
// found (Reach does).
func (t *Least) Grow(from int, limit int64, p *Prices) {
	p.Prepare()
	t.prices = *p
	t.graph.steps += 20
	for _, h := range t.reached {
		t.cost[h] = Unreached
	}
	t.reached = append(t.reached[:0], int32(from))
	t.cost[from], t.last[from], t.first[from] = 0, -1, -1
	t.heap = append(t.heap[:0], uint64(from))
	if t.missing == 0 {
		t.missing = math.MaxInt
	}
	for len(t.heap) > 0 {
		key := t.pop()
		host := int(key & hostMask)
		cost := int64(key >> hostBits)
		if cost > t.cost[host] {
			continue
		}
		if t.sought[host] == t.round {
			t.missing--
		}
		if t.missing == 0 || cost+p.Floor > limit {
			break
		}
		t.expand(host, cost, p)
	}
	t.missing = 0
	t.round++
}

// Cost to a host; Unreached where no walk leads.
func (t *Least) Cost(host int) int64 {
	if a := t.graph.stub[host]; a >= 0 {
		t.visit(a)
	}
	return t.cost[host]
}

// Reached lists the hosts that walks lead to, the first one too.
func (t *Least) Reached() []int32 {
	for _, h := range t.reached[:len(t.reached):len(t.reached)] {
		for _, a := range t.graph.stubs[h] {
			t.visit(a)
		}
	}
	return t.reached
}

// visit goes over the only arc to a host that leads nowhere else.
func (t *Least) visit(a Arc) {
	from, to := t.graph.head[a^1], t.graph.head[a]
	if t.cost[from] == Unreached || t.cost[to] != Unreached {
		return
	}
	if price := t.prices.of(a); price >= 0 {
		t.cost[to], t.last[to], t.first[to] = t.cost[from]+price, a, a
		t.reached = append(t.reached, int32(to))
	}
}

// expand walks on from a host, past direct links and through the fabric.
func (t *Least) expand(host int, cost int64, p *Prices) {
	g := t.graph
	g.steps += 4 + len(g.onward[host])
	back := t.last[host] ^ 1
	for _, a := range g.onward[host] {
		next := g.head[a]
		if next >= g.hosts {
			if price := p.of(a); price >= 0 && a != back {
				t.cross(next, cost+price, a, p)
			}
			continue
		}
		if cost+int64(p.Price[a]) >= t.cost[next] {
			continue
		}
		if price := p.of(a); price >= 0 {
			t.relax(next, cost+price, a, a)
		}
	}
}

// cross goes through the fabric from the switch at which it is entered.
func (t *Least) cross(entry int, cost int64, first Arc, p *Prices) {
	g := t.graph
	tree := g.treeOf(entry)
	t.inner[entry-g.hosts] = cost
	t.leave(entry, cost, first, p)
	for _, a := range tree.order {
		from, to := g.head[a^1]-g.hosts, g.head[a]-g.hosts
		t.inner[to] = Unreached
		if t.inner[from] == Unreached {
			continue
		}
		if price := p.of(a); price >= 0 {
			t.inner[to] = t.inner[from] + price
			t.leave(to+g.hosts, t.inner[to], first, p)
		}
	}
	g.steps += len(tree.order)
}

// leave goes from a switch to its hosts.
func (t *Least) leave(at int, cost int64, first Arc, p *Prices) {
	g := t.graph
	for _, a := range g.access[at-g.hosts] {
		if a == first.Opposite() {
			continue
		}
		if price := p.of(a); price >= 0 {
			t.relax(g.head[a], cost+price, a, first)
		}
	}
	g.steps += len(g.access[at-g.hosts])
}

// relax notes a cheaper walk to a host. Behind a host with one link is nothing.
func (t *Least) relax(host int, cost int64, last, first Arc) {
	if cost >= t.cost[host] {
		return
	}
	if t.cost[host] == Unreached {
		t.reached = append(t.reached, int32(host))
	}
	t.cost[host], t.last[host], t.first[host] = cost, last, first
	if len(t.graph.leaving[host]) > 1 {
		t.push(uint64(cost)<<hostBits | uint64(host))
	}
}

// Walk is the walk to a host that is reached; false: it is not, or the walk
// would take a link twice.
func (t *Least) Walk(to int) ([]Arc, bool) {
	if t.Cost(to) == Unreached {
		return nil, false
	}
	walk := []Arc{}
	for host := to; t.last[host] >= 0; {
		walk = append(walk, t.last[host])
		walk = t.fabric(walk, t.first[host], t.last[host])
		host = t.graph.head[t.first[host].Opposite()]
	}
	slices.Reverse(walk)
	if len(t.graph.trees) > 0 && twice(walk) {
		return nil, false
	}
	return walk, true
}

// fabric appends, from its end, the walk from an arc that enters the fabric to
// the one that leaves it.
func (t *Least) fabric(walk []Arc, first, last Arc) []Arc {
	if first == last {
		return walk
	}
	g := t.graph
	entry := g.head[first]
	tree := g.treeOf(entry)
	for at := g.head[last.Opposite()]; at != entry; {
		a := tree.parent[at-g.hosts]
		walk = append(walk, a)
		at = g.head[a.Opposite()]
	}
	return append(walk, first)
}

// twice says whether a walk takes a link twice. Walks are short.
func twice(walk []Arc) bool {
	for i, a := range walk {
		for _, b := range walk[:i] {
			if a.Link() == b.Link() {
				return true
			}
		}
	}
	return false
}
