package reach

import (
	"maps"
	"slices"
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// mostLookups bounds the routes and settings that one audit asks for, at some
// 10 us each; to open a node counts as openCost of them. The next audit goes on
// behind them.
const (
	mostLookups = 2000
	openCost    = 10
)

// audit asks the nodes' kernels whether they have routes to whom they must
// reach, and forward where they must. It sends nothing.
func (p *Part) audit() {
	spent := 0
	for _, w := range p.turn() {
		if spent >= mostLookups {
			p.mu.Lock()
			p.next = w.item.Key()
			p.mu.Unlock()
			return
		}
		spent += lookups(w.item)
		p.learn(w, p.lacking(w.item))
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

// lookups is what it costs to ask for all of an item.
func lookups(item plan.Reach) int {
	n := openCost * len(item.Pairs)
	for _, from := range item.Pairs {
		n += len(from.To) + len(from.To6) + 2*len(from.Forwards)
	}
	return n
}

// learn notes what the nodes lack; when the last of it is back, whether that
// suffices is asked.
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

// lacking says which routers do not forward and which pairs have no route. Of a
// node that cannot be asked nothing is said: other parts tell.
func (p *Part) lacking(item plan.Reach) string {
	var still []string
	var routeless []pair
	for _, from := range item.Pairs {
		c, err := p.host.Dial(plan.Namespace(item.Lease, item.Nodes[from.From].Name))
		if err != nil {
			continue
		}
		c.Foreign = true
		if off := switchedOff(c, from.Forwards); off != "" {
			still = append(still, item.Nodes[from.From].Name+" does not forward ("+off+" is 0)")
		}
		for _, to := range slices.Concat(from.To, from.To6) {
			if has, err := c.HasRoute(item.Nodes[to].Address); err == nil && !has {
				routeless = append(routeless, pair{from.From, to})
			}
		}
		c.Close()
	}
	texts := []string{few(still, "routers"), words(item, routeless, "%s has no route to %s")}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}

// switchedOff is the setting that keeps a router from forwarding what comes in
// by one of some interfaces, or "". IPv4 forwards by the setting of the
// interface; net.ipv4.ip_forward sets those of all. An interface that is not
// there is no reason.
func switchedOff(c *kernel.Conn, interfaces []string) string {
	for _, name := range interfaces {
		l, err := c.LinkByName(name)
		if err != nil {
			continue
		}
		if on, err := c.Forwards(l.Index); on || err != nil {
			continue
		}
		if all, err := c.Forwards(kernel.AllDevices); err == nil && !all {
			return "net.ipv4.ip_forward"
		}
		return "net.ipv4.conf." + name + ".forwarding"
	}
	return ""
}
