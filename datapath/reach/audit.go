package reach

import (
	"maps"
	"slices"

	"sublet/plan"
)

// mostLookups bounds the routes that one audit asks for, at some 10 us each;
// to open a node counts as openCost of them. The next audit goes on behind them.
const (
	mostLookups = 2000
	openCost    = 10
)

// audit asks the nodes' kernels whether they have routes to whom they must
// reach. It sends nothing.
func (p *Part) audit() {
	spent := 0
	for _, w := range p.turn() {
		if spent >= mostLookups {
			p.mu.Lock()
			p.next = w.item.Key()
			p.mu.Unlock()
			return
		}
		spent += len(pairs(w.item)) + openCost*len(w.item.Pairs)
		p.learn(w, words(w.item, p.routeless(w.item), "%s has no route to %s"))
	}
}

// turn lists the watches that were built, from the one whose turn it is.
func (p *Part) turn() []*watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.Sorted(maps.Keys(p.watches))
	first, _ := slices.BinarySearch(keys, p.next)
	p.next = ""
	var list []*watch
	for _, key := range slices.Concat(keys[first:], keys[:first]) {
		if w := p.watches[key]; !w.fresh {
			list = append(list, w)
		}
	}
	return list
}

// learn notes who has no route; when the last one is back, whether it leads
// there is asked.
func (p *Part) learn(w *watch, lost string) {
	p.mu.Lock()
	before := w.lost
	w.lost = lost
	if before != "" && lost == "" && p.watches[w.item.Key()] == w {
		p.probe(w)
	}
	p.mu.Unlock()
	if before != lost {
		p.changed()
	}
}

// routeless lists the pairs without a route. Of a node that cannot be asked
// nothing is said: other parts tell.
func (p *Part) routeless(item plan.Reach) (list []pair) {
	for _, from := range item.Pairs {
		c, err := p.host.Dial(plan.Namespace(item.Lease, item.Nodes[from.From].Name))
		if err != nil {
			continue
		}
		c.Foreign = true
		for _, to := range from.To {
			if has, err := c.HasRoute(item.Nodes[to].Address); err == nil && !has {
				list = append(list, pair{from.From, to})
			}
		}
		c.Close()
	}
	return list
}
