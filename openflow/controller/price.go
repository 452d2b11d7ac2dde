package controller

import (
	"cmp"
	"container/heap"
	"maps"
)

// Hop is the price of a link of which nothing else is said.
const Hop = 10

// Outlet is a port of a switch, by which packets leave it over a link.
type Outlet struct {
	DatapathID uint64
	Port       uint32
}

// SetPrices has paths lead over the cheapest links, by what a way over each costs, at
// least 1, in place of the fewest. It may be called from any thread.
func (n *Network) SetPrices(prices map[Outlet]uint32) { n.offered.Store(&prices) }

// takePrices makes paths anew when links cost something else.
func (n *Network) takePrices() {
	if p := n.offered.Load(); p != nil && !maps.Equal(*p, n.prices) {
		n.prices = *p
		n.version++
	}
}

func (n *Network) price(at place) uint64 {
	return uint64(cmp.Or(n.prices[Outlet{at.dpid, at.port}], Hop))
}

// reached is a switch from which a way leads, at a cost.
type reached struct {
	dpid uint64
	cost uint64
	turn int // of two that cost as much, the one found first goes first
}

type frontier []reached

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(f[i].cost, f[j].cost), cmp.Compare(f[i].turn, f[j].turn)) < 0
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(reached)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// cheapest is the ways to a switch that cost least (Dijkstra): of two that cost as much,
// the one by the switch and port with the lower numbers.
func (n *Network) cheapest(dpid uint64) tree {
	t, cost, turn := tree{dpid: 0}, map[uint64]uint64{dpid: 0}, 0
	for open := (&frontier{{dpid: dpid}}); open.Len() > 0; {
		at := heap.Pop(open).(reached)
		m := n.switches[at.dpid]
		if m == nil || at.cost > cost[at.dpid] {
			continue
		}
		for _, number := range m.sortedPorts() {
			other, ok := n.peer(place{at.dpid, number}, m.ports[number])
			if !ok {
				continue
			}
			sum := at.cost + n.price(other)
			if before, known := cost[other.dpid]; known && before <= sum {
				continue
			}
			turn++
			cost[other.dpid], t[other.dpid] = sum, other.port
			heap.Push(open, reached{other.dpid, sum, turn})
		}
	}
	return t
}
