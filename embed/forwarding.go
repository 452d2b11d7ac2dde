package embed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/embed/rate"
	"sublet/vnet"
)

// OpenFlow switches have entries, and meters or queues, and some carry little in software.
// A search does not count these: what it finds is looked at, and found anew
// without the switches that have too little left.

// What a switch has, by the beginning of its key in the calendar.
const (
	entriesPrefix  = "entries:"
	metersPrefix   = "meters:"
	queuesPrefix   = "queues:" // of a port, by rate
	slowPathPrefix = "slow-path:"
)

// ofSwitch names an amount of a switch in the calendar.
func ofSwitch(prefix, name string) string { return rate.Element{Link: prefix + name}.String() }

// SwitchLoad is an amount of an OpenFlow switch that leases take.
type SwitchLoad struct {
	Link, Switch string // Link names it as those of links are
	Has          int64
}

// SwitchLoads lists what OpenFlow switches have for leases.
func SwitchLoads(sub vnet.Substrate) (list []SwitchLoad) {
	for _, o := range sub.OpenFlow {
		list = append(list, SwitchLoad{entriesPrefix + o.Name, o.Name, int64(o.Entries - vnet.EntriesOfSwitch)})
		if len(o.Queues) == 0 {
			list = append(list, SwitchLoad{metersPrefix + o.Name, o.Name, int64(o.Meters - vnet.EntriesOfSwitch)})
		}
		list = append(list, queueLoads(o)...)
		if bound := o.SlowPath.Carries(); bound > 0 {
			list = append(list, SwitchLoad{slowPathPrefix + o.Name, o.Name, int64(bound)})
		}
	}
	return list
}

// addSwitches adds what OpenFlow switches have to capacities by key.
func addSwitches(capacities map[string]int64, sub vnet.Substrate) {
	for _, l := range SwitchLoads(sub) {
		capacities[rate.Element{Link: l.Link}.String()] = l.Has
	}
}

// needsOfSwitches adds up what the links of a topology take of OpenFlow switches, by
// key.
func (e *Embedder) needsOfSwitches(t vnet.Topology, m vnet.Mapping) (map[string]int64, error) {
	needs := make(map[string]int64)
	for _, l := range t.Links {
		_, carriers, err := route(e.graph, m, l.Name, l.Ends)
		if err != nil {
			return nil, err
		}
		for _, way := range carriers {
			for i, a := range way.walk {
				o, speaks := e.whole.OpenFlowOf(e.graph.Name(e.graph.Head(a)))
				if !speaks {
					continue
				}
				needs[ofSwitch(entriesPrefix, o.Name)] += vnet.EntriesOfTunnel
				if len(o.Queues) == 0 {
					needs[ofSwitch(metersPrefix, o.Name)] += vnet.EntriesOfTunnel
				} else {
					e.needQueues(needs, o, l, way.share, [2]graph.Arc{way.walk[i+1], a})
				}
				if both := way.share.Of(l.Bandwidth[0].Min) + way.share.Of(l.Bandwidth[1].Min); both > 0 && o.SlowPath.Slows() {
					needs[ofSwitch(slowPathPrefix, o.Name)] += int64(both)
				}
			}
		}
	}
	return needs, nil
}

// bookSwitches lists what a mapping takes of OpenFlow switches, in a fixed order.
func (e *Embedder) bookSwitches(spans []span, m vnet.Mapping) (list []calendar.Booking, err error) {
	if len(e.whole.OpenFlow) == 0 {
		return nil, nil
	}
	for _, s := range spans {
		needs, err := e.needsOfSwitches(s.topology, m)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(needs)) {
			list = append(list, calendar.Booking{Key: key, Amount: needs[key], Window: s.window})
		}
	}
	return mostOfEach(list), nil
}

// crowded is the first switch that has too little left for a mapping, and why; "":
// there is none.
func (e *Embedder) crowded(cal *calendar.Calendar, spans []span, m vnet.Mapping) (name, why string, err error) {
	for _, s := range spans {
		needs, err := e.needsOfSwitches(s.topology, m)
		if err != nil {
			return "", "", err
		}
		if name, why := e.lacksQueue(needs); name != "" {
			return name, why, nil
		}
		for _, l := range SwitchLoads(e.whole) {
			key := rate.Element{Link: l.Link}.String()
			if free := cal.Residual(key, l.Has, s.window); needs[key] > free {
				return l.Switch, l.lacks(max(0, free), needs[key]), nil
			}
		}
	}
	return "", "", nil
}

func (l SwitchLoad) lacks(free, need int64) string {
	switch l.Link {
	case entriesPrefix + l.Switch:
		return fmt.Sprintf("switch %s has %d of %d entries free in this window, and the network needs %d", l.Switch, free, l.Has, need)
	case metersPrefix + l.Switch:
		return fmt.Sprintf("switch %s has %d of %d meters free in this window, and the network needs %d", l.Switch, free, l.Has, need)
	}
	if at, isQueue := strings.CutPrefix(l.Link, queuesPrefix+l.Switch+"/"); isQueue {
		port, rate, _ := strings.Cut(at, "/")
		return fmt.Sprintf("switch %s has %d of %d queues of %s at link %s free in this window, and the network needs %d", l.Switch, free, l.Has, rate, port, need)
	}
	return fmt.Sprintf("switch %s has %s of %s free on its slow path in this window, and the network needs %s", l.Switch, vnet.Rate(free), vnet.Rate(l.Has), vnet.Rate(need))
}

// aroundCrowded is a mapping whose OpenFlow switches have what it takes of them: the
// one that was found, or one without a switch that lacks something. The error is
// *Infeasible.
func (e *Embedder) aroundCrowded(cal *calendar.Calendar, request vnet.Request, window vnet.Window, opt Options, m vnet.Mapping) (vnet.Mapping, error) {
	if len(e.whole.OpenFlow) == 0 {
		return m, nil
	}
	name, why, err := e.crowded(cal, spansFrom(request, window, opt.From), m)
	if err != nil || name == "" {
		return m, err
	}
	refusal := &Infeasible{Reasons: []string{why}}
	without, err := NewPart(withoutSwitch(e.sub, name), e.whole)
	if err != nil {
		return vnet.Mapping{}, err
	}
	other, err := without.embed(cal, request, window, opt)
	if err != nil {
		return vnet.Mapping{}, refusal
	}
	if other, err = without.aroundCrowded(cal, request, window, opt, other); err != nil || !e.followsFabric(other, request) {
		return vnet.Mapping{}, refusal
	}
	return other, nil
}

// withoutSwitch is a substrate without the links of a switch.
func withoutSwitch(sub vnet.Substrate, name string) vnet.Substrate {
	sub.Links = slices.DeleteFunc(slices.Clone(sub.Links), func(l vnet.SubstrateLink) bool { return slices.Contains(l.Ends[:], name) })
	return sub
}

// followsFabric says whether every path goes the way that switches forward by
// themselves.
func (e *Embedder) followsFabric(m vnet.Mapping, request vnet.Request) bool {
	if e.whole.Steered() {
		return true // as their entries say
	}
	for _, l := range request.Union().Links {
		for _, share := range m.Paths(l.Name) {
			if !slices.Equal(e.fabricPath(m.Nodes[l.Ends[0]], share.Path), share.Path) {
				return false
			}
		}
	}
	return true
}
