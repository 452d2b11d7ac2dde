package emulate

import (
	"errors"
	"slices"

	"sublet/fabric/spread"
)

// target is what a damage hits: the link between switches that most shortest
// paths of senders cross, one end of which has no hosts if there are such; or
// all links of its end that has fewer.
func (f *Fabric) target(damage string, targets []int) (links []int, element string, err error) {
	hosts, crossed := f.hostsAt(), f.crossed(targets)
	around := func(i int) int { return hosts[f.sub.Links[i].Ends[0]] + hosts[f.sub.Links[i].Ends[1]] }
	best := -1
	for i, l := range f.sub.Links {
		if !slices.Contains(f.sub.Switches, l.Ends[0]) || !slices.Contains(f.sub.Switches, l.Ends[1]) || crossed[i] == 0 {
			continue
		}
		if best < 0 || around(i) < around(best) || around(i) == around(best) && crossed[i] > crossed[best]+1e-9 {
			best = i
		}
	}
	if best < 0 {
		return nil, "", errors.New("nobody sends over a link between switches: choose another pattern")
	}
	if damage != "switch" {
		return []int{best}, f.sub.Links[best].Name, nil
	}
	middle := f.sub.Links[best].Ends[1]
	if other := f.sub.Links[best].Ends[0]; hosts[other] < hosts[middle] {
		middle = other
	}
	for i, l := range f.sub.Links {
		if slices.Contains(l.Ends[:], middle) {
			links = append(links, i)
		}
	}
	return links, middle, nil
}

// hostsAt counts them by switch.
func (f *Fabric) hostsAt() map[string]int {
	hosts := make(map[string]int)
	for at, n := range f.model.HostsAt() {
		hosts[f.sub.Switches[at]] = n
	}
	return hosts
}

// crossed says how many senders' packets a link has if each deals them equally
// to its shortest paths.
func (f *Fabric) crossed(targets []int) map[int]float64 {
	ecmp, _ := spread.ParseMethod("ecmp")
	crossed := make(map[int]float64)
	for from, to := range targets {
		paths := f.model.Paths(from, to, ecmp)
		for _, p := range paths {
			for _, l := range p.Links {
				crossed[l] += 1 / float64(len(paths))
			}
		}
	}
	return crossed
}
