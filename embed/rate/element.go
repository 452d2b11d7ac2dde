package rate

import (
	"errors"
	"fmt"
	"strings"

	"sublet/vnet"
)

// Element is one direction of a substrate link, or of a host's own carrying
// between two nodes it hosts. Its Dir is the substrate link's direction (Ends[0]
// to Ends[1] is Forward); inside a host it is the virtual link's direction.
type Element struct {
	Link string // a substrate link's name or, inside a host, "host:" and its name
	Dir  vnet.Direction
}

// hostPrefix cannot begin a link's name: names hold no ':' (vnet.CheckName).
const hostPrefix = "host:"

// Inside is the element that carries a virtual link whose ends share a host.
func Inside(host vnet.HostID, dir vnet.Direction) Element {
	return Element{hostPrefix + string(host), dir}
}

// Host names the host whose inside the element is.
func (e Element) Host() (vnet.HostID, bool) {
	name, ok := strings.CutPrefix(e.Link, hostPrefix)
	return vnet.HostID(name), ok
}

// String gives the name and '>' for Forward, '<' for Reverse.
func (e Element) String() string { return e.Link + string("><"[e.Dir]) }

// Capacities lists what leases may take of each element of a substrate.
func Capacities(sub vnet.Substrate) map[Element]vnet.Rate {
	capacities := make(map[Element]vnet.Rate, 2*(len(sub.Links)+len(sub.Hosts)))
	for _, dir := range vnet.Directions {
		for _, l := range sub.Links {
			capacities[Element{l.Name, dir}] = l.Leasable()
		}
		for _, h := range sub.Hosts {
			capacities[Inside(h.Name, dir)] = h.Carries()
		}
	}
	return capacities
}

// Demand is what one direction of a virtual link asks of the elements it runs over.
type Demand struct {
	Bandwidth vnet.Bandwidth
	Elements  []Element
}

// All allocates every element among the demands that run over it, and returns
// for each demand, in order, the smallest of its elements' rates. An error is
// *Infeasible, or says which demand runs over an element that is not there.
func All(sub vnet.Substrate, demands []Demand) ([]vnet.Rate, error) {
	return Within(Capacities(sub), demands)
}

// Within is All with the substrate's Capacities, for who asks often.
func Within(capacities map[Element]vnet.Rate, demands []Demand) ([]vnet.Rate, error) {
	users := make(map[Element][]int)
	var order []Element
	rates := make([]vnet.Rate, len(demands))
	for i, d := range demands {
		rates[i] = vnet.Unbounded
		for _, e := range d.Elements {
			if _, ok := capacities[e]; !ok {
				return nil, fmt.Errorf("allocate rates: the substrate has no element %s", e)
			}
			if users[e] == nil {
				order = append(order, e)
			}
			users[e] = append(users[e], i)
		}
		if len(d.Elements) == 0 {
			return nil, errors.New("allocate rates: a demand runs over no element")
		}
	}
	for _, e := range order {
		if err := share(e, capacities[e], users[e], demands, rates); err != nil {
			return nil, err
		}
	}
	return rates, nil
}

// share allocates one element and lowers its users' rates to it.
func share(e Element, capacity vnet.Rate, users []int, demands []Demand, rates []vnet.Rate) error {
	asked := make([]vnet.Bandwidth, len(users))
	for i, user := range users {
		asked[i] = demands[user].Bandwidth
	}
	given, err := Allocate(capacity, asked)
	var infeasible *Infeasible
	if errors.As(err, &infeasible) {
		infeasible.Element = e
		return infeasible
	}
	for i, user := range users {
		rates[user] = min(rates[user], given[i])
	}
	return nil
}
