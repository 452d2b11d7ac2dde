package plan

import (
	"slices"

	"sublet/internal/heap"
	"sublet/vnet"
)

// classMetric is added to the metrics of links that carry a class of traffic, so that
// what is on the link goes by others that lead there.
const classMetric = 1 << 15

// classes are a router's ways for classes of traffic that have links of their own.
func (n *network) classes(name string) (list []RouteClass) {
	protocol, isRouter := n.routers[name]
	if !isRouter || protocol == vnet.ProtocolNone {
		return nil
	}
	var usual []Route
	for _, class := range n.lease.Request.Classes {
		if !slices.ContainsFunc(n.top.Links, func(l vnet.VirtualLink) bool { return l.Class == class.Name }) {
			continue
		}
		if usual == nil {
			usual, _ = n.table(name, n.firstHops(name), true)
		}
		routes, _ := n.table(name, n.classHops(name, class.Name), true)
		// Without a protocol, who has the same ways for all needs no others.
		if slices.Equal(routes, usual) && !speaksAny(protocol) || len(routes) == 0 {
			continue
		}
		slices.SortFunc(routes, func(a, b Route) int { return ComparePrefixes(a.Prefix, b.Prefix) })
		c := RouteClass{Routes: routes}
		for _, set := range class.Sets() {
			c.Match = append(c.Match, chainMatch(set))
		}
		list = append(list, c)
	}
	return list
}

// classHops is firstHops for packets of a class: of all ways that with the fewest links
// that carry others, then that with the fewest links of the class.
func (n *network) classHops(from, class string) map[string]nodeInterface {
	all := n.top.All()
	number := make(map[string]int, len(all))
	for i, node := range all {
		number[node.Name] = i
	}
	first := make(map[string]nodeInterface)
	crossed, done := make(map[*segment]bool), make([]bool, len(all))
	near := heap.New(len(all))
	near.Set(number[from], heap.Key{})
	for i := near.Top(); i != heap.None; i = near.Top() {
		at, so := all[i].Name, near.Key(i)
		near.Remove(i)
		done[i] = true
		if _, forwards := n.routers[at]; at != from && !forwards {
			continue
		}
		for _, port := range n.ports[at] {
			key, of := so, n.linkClass[port.near.link]
			switch of {
			case class:
				key.Second++
			case "":
				key.First++
			default:
				continue
			}
			for _, next := range n.across(port, crossed) {
				j := number[next.peer]
				if have := near.Key(j); done[j] || near.Has(j) && (have.First < key.First || have.First == key.First && have.Second <= key.Second) {
					continue
				}
				near.Set(j, key)
				if at != from {
					next = first[at]
				}
				first[all[j].Name] = next
			}
		}
	}
	return first
}
