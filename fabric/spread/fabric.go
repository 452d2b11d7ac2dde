package spread

import (
	"fmt"

	"sublet/fabric"
	"sublet/vnet"
)

// Fabric is a substrate of switches with hosts at its edge, each at one switch.
type Fabric struct {
	switches *fabric.Fabric
	at       []int         // switch of each host
	capacity []float64     // by directed link, in units of the slowest host link
	access   []int         // link of each host
	prices   fabric.Prices // of links; nil: not made yet
	Groups   Groups
}

// NewFabric reads a substrate. Hosts must have one link each, to a switch.
func NewFabric(sub vnet.Substrate) (*Fabric, error) {
	number := make(map[string]int, len(sub.Switches))
	for i, name := range sub.Switches {
		number[name] = i
	}
	hosts := make(map[string]int, len(sub.Hosts))
	for i, h := range sub.Hosts {
		hosts[string(h.Name)] = i
	}
	f := &Fabric{switches: fabric.NewFabric(len(sub.Switches)), at: make([]int, len(sub.Hosts)), access: make([]int, len(sub.Hosts))}
	for i := range f.at {
		f.at[i] = -1
	}
	for i, l := range sub.Links {
		f.capacity = append(f.capacity, float64(l.Capacity), float64(l.Capacity))
		if err := f.join(i, l, number, hosts); err != nil {
			return nil, err
		}
	}
	return f, f.finish(sub)
}

func (f *Fabric) join(i int, l vnet.SubstrateLink, number, hosts map[string]int) error {
	a, aSwitch := number[l.Ends[0]]
	b, bSwitch := number[l.Ends[1]]
	if aSwitch && bSwitch {
		return f.switches.Join(a, b, 1, i)
	}
	host, at := l.Ends[0], b
	if aSwitch {
		host, at = l.Ends[1], a
	}
	h, isHost := hosts[host]
	if !isHost || !aSwitch && !bSwitch || f.at[h] >= 0 {
		return fmt.Errorf("link %s: each host needs exactly one link, to a switch: --servers makes hosts switches", l.Name)
	}
	f.at[h], f.access[h] = at, i
	return nil
}

// finish makes capacities relative and groups hosts by switch and site.
func (f *Fabric) finish(sub vnet.Substrate) error {
	unit := 0.0
	sites := make(map[string]int)
	for i, h := range sub.Hosts {
		if f.at[i] < 0 {
			return fmt.Errorf("host %s: it has no link", h.Name)
		}
		if c := f.capacity[2*f.access[i]]; unit == 0 || c < unit {
			unit = c
		}
		if _, known := sites[h.Site]; !known {
			sites[h.Site] = len(sites)
		}
		f.Groups.Edge, f.Groups.Pod = append(f.Groups.Edge, f.at[i]), append(f.Groups.Pod, sites[h.Site])
	}
	for i := range f.capacity {
		f.capacity[i] /= unit
	}
	return f.connected(sub)
}

// HostsAt counts hosts by switch.
func (f *Fabric) HostsAt() []int {
	hosts := make([]int, f.switches.Len())
	for _, at := range f.at {
		hosts[at]++
	}
	return hosts
}

// connected checks that every host reaches every other.
func (f *Fabric) connected(sub vnet.Substrate) error {
	for i, at := range f.at {
		if _, ok := f.switches.Distance(at, f.at[0]); !ok {
			return fmt.Errorf("no path leads from host %s to host %s: join their switches, or leave one of them out", sub.Hosts[i].Name, sub.Hosts[0].Name)
		}
	}
	return nil
}

// Hosts is how many there are.
func (f *Fabric) Hosts() int { return len(f.at) }

// Access is the index of a host's link in the substrate.
func (f *Fabric) Access(host int) int { return f.access[host] }

// Switches is the fabric between them.
func (f *Fabric) Switches() *fabric.Fabric { return f.switches }

// route is the directed links from host to host, 2*link for the direction
// from the end with the smaller number and 2*link+1 for the other.
func (f *Fabric) route(from, to int, p fabric.Path) []int {
	route := []int{2 * f.access[from]}
	for i, link := range p.Links {
		dir := 0
		if p.Nodes[i] > p.Nodes[i+1] {
			dir = 1
		}
		route = append(route, 2*link+dir)
	}
	return append(route, 2*f.access[to]+1)
}

// paths between two hosts' switches: the k shortest, or all shortest if k is 0.
func (f *Fabric) paths(from, to, k int) []fabric.Path {
	a, b := f.at[from], f.at[to]
	if a == b {
		return []fabric.Path{{Nodes: []int{a}}}
	}
	if k > 0 {
		return f.switches.Shortest(a, b, k)
	}
	return f.equal(fabric.Path{Nodes: []int{a}}, b)
}

// maxEqual bounds how many equally short paths are listed.
const maxEqual = 4096

// equal lists all shortest paths to a switch that begin with p.
func (f *Fabric) equal(p fabric.Path, to int) []fabric.Path {
	at := p.Nodes[len(p.Nodes)-1]
	if at == to {
		return []fabric.Path{p}
	}
	var all []fabric.Path
	for _, a := range f.switches.Next(at, to) {
		longer := fabric.Path{Nodes: append(p.Nodes[:len(p.Nodes):len(p.Nodes)], a.To), Links: append(p.Links[:len(p.Links):len(p.Links)], a.Link), Cost: p.Cost + a.Cost}
		if all = append(all, f.equal(longer, to)...); len(all) >= maxEqual {
			break
		}
	}
	return all
}
