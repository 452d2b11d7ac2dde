package topology

import (
	"fmt"

	"sublet/internal/splitmix"
	"sublet/vnet"
)

// Jellyfish is a random regular graph of switches (Singla et al., NSDI 2012)
// with servers spread evenly over them; ports that no server takes join
// switches. It is built as in the paper: free ports of switches that are not
// neighbours yet are joined at random; when none are left, what has free
// ports is put into random links. At most one port of the network stays
// free. A switch and its servers are a site.
func Jellyfish(switches, ports, servers int, seed uint64) (vnet.Substrate, error) {
	switch {
	case switches < 2 || switches > vnet.MaxHosts:
		return vnet.Substrate{}, fmt.Errorf("%d is not a number of switches from 2 to %d", switches, vnet.MaxHosts)
	case servers < 1 || servers > vnet.MaxHosts-switches:
		return vnet.Substrate{}, fmt.Errorf("%d is not a number of servers from 1 to %d", servers, vnet.MaxHosts-switches)
	case ports < 1 || ports > 1024:
		return vnet.Substrate{}, fmt.Errorf("%d is not a number of ports from 1 to 1024", ports)
	case (servers+switches-1)/switches >= ports:
		return vnet.Substrate{}, fmt.Errorf("%d servers leave no port to join %d switches of %d ports", servers, switches, ports)
	}
	sub := hosts(servers, "")
	free := make([]int, switches)
	for i := range switches {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i+1))
		free[i] = ports
	}
	for i := range sub.Hosts {
		at := i % switches
		free[at]--
		sub.Hosts[i].Site = "rack" + fmt.Sprint(at+1)
		join(&sub, "", host(i+1), sub.Switches[at], vnet.Gbit)
	}
	ends := 0
	for i := range free {
		free[i] = min(free[i], switches-1)
		ends += free[i]
	}
	if n := ends/2 + servers; n > vnet.MaxWires {
		return vnet.Substrate{}, fmt.Errorf("%d links are more than %d: take fewer ports", n, vnet.MaxWires)
	}
	w := &weaver{free: free, joined: make(map[[2]int]int, ends/2), random: random{splitmix.Source(seed)}}
	w.weave()
	for _, l := range w.links {
		join(&sub, "", sub.Switches[l[0]], sub.Switches[l[1]], vnet.Gbit)
	}
	return sub, nil
}

// weaver joins switches at random.
type weaver struct {
	random
	free   []int          // ports, by switch
	open   []int          // switches with free ports
	links  [][2]int       // smaller switch first
	joined map[[2]int]int // the index in links
}

// tries is how often two switches are drawn before all pairs are looked at:
// failing so often means that hardly any pair is left.
const tries = 64

func (w *weaver) weave() {
	for i, ports := range w.free {
		if ports > 0 {
			w.open = append(w.open, i)
		}
	}
	for w.draw() {
	}
	w.rest()
	for w.insert() {
	}
}

// draw joins two switches with free ports that are not neighbours, at random.
func (w *weaver) draw() bool {
	for range tries {
		if len(w.open) < 2 {
			return false
		}
		a, b := w.open[w.below(len(w.open))], w.open[w.below(len(w.open))]
		if w.apart(a, b) {
			w.join(a, b)
			return true
		}
	}
	return false
}

// rest joins all that draw could still join, in a random order of switches.
func (w *weaver) rest() {
	order := append([]int(nil), w.open...)
	for i := range order {
		j := i + w.below(len(order)-i)
		order[i], order[j] = order[j], order[i]
	}
	for i, a := range order {
		for _, b := range order[i+1:] {
			if w.free[a] > 0 && w.free[b] > 0 && w.apart(a, b) {
				w.join(a, b)
			}
		}
	}
}

func (w *weaver) apart(a, b int) bool {
	_, neighbours := w.joined[[2]int{min(a, b), max(a, b)}]
	return a != b && !neighbours
}

// insert puts a switch with two free ports, or two switches with one each that
// are neighbours already, into a random link that touches neither them nor
// their neighbours; false: there is no such switch or link.
func (w *weaver) insert() bool {
	for _, pair := range w.left() {
		first := 0
		if len(w.links) > 0 {
			first = w.below(len(w.links))
		}
		for i := range w.links {
			l := w.links[(first+i)%len(w.links)]
			for _, ends := range [2][2]int{l, {l[1], l[0]}} {
				if w.apart(pair[0], ends[0]) && w.apart(pair[1], ends[1]) {
					w.cut(l)
					w.join(pair[0], ends[0])
					w.join(pair[1], ends[1])
					return true
				}
			}
		}
	}
	return false
}

// left pairs up free ports: two of one switch, then one each of two.
func (w *weaver) left() [][2]int {
	var pairs [][2]int
	for _, at := range w.open {
		if w.free[at] > 1 {
			pairs = append(pairs, [2]int{at, at})
		}
	}
	for i := 1; i < len(w.open); i++ {
		pairs = append(pairs, [2]int{w.open[0], w.open[i]})
	}
	return pairs
}

func (w *weaver) join(a, b int) {
	l := [2]int{min(a, b), max(a, b)}
	w.joined[l] = len(w.links)
	w.links = append(w.links, l)
	w.take(a, 1)
	w.take(b, 1)
}

// cut removes a link; the last one takes its place.
func (w *weaver) cut(l [2]int) {
	i, last := w.joined[l], w.links[len(w.links)-1]
	w.links[i], w.joined[last] = last, i
	w.links = w.links[:len(w.links)-1]
	delete(w.joined, l)
	w.take(l[0], -1)
	w.take(l[1], -1)
}

// take uses ports of a switch; it leaves the open ones with its last port and
// comes back with its first.
func (w *weaver) take(at, ports int) {
	was := w.free[at]
	w.free[at] -= ports
	switch {
	case was > 0 && w.free[at] == 0:
		for i, o := range w.open {
			if o == at {
				w.open = append(w.open[:i], w.open[i+1:]...)
				return
			}
		}
	case was == 0 && w.free[at] > 0:
		w.open = append(w.open, at)
	}
}
