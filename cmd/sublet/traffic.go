package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/report"
	"sublet/vnet"
)

// trafficView is what passed one direction of a virtual link since it was
// built: frames as on a wire, each segment of a large packet one.
type trafficView struct {
	Packets          uint64            `json:"packets"` // entered the link
	Bytes            uint64            `json:"bytes"`
	DeliveredPackets uint64            `json:"delivered_packets"` // left it
	DeliveredBytes   uint64            `json:"delivered_bytes"`
	Drops            map[string]uint64 `json:"drops"` // by cause

	arrives bool // the host of its far end said what arrived
	apart   bool // its ends began to count at different times, as one moved to another host
}

// traffic asks the hosts of a lease's nodes for its counters, by link and
// direction. Hosts that do not answer are left out: the rest is worth showing.
// They are asked twice: what was sent is read before what arrived, so that
// nothing seems lost that arrived in between.
func (a *app) traffic(ctx context.Context, l vnet.Lease) map[string][2]*trafficView {
	if !l.State.Up() {
		return nil
	}
	return views(a.counters(ctx, l), a.counters(ctx, l))
}

// counters are what the hosts of a lease's nodes counted.
func (a *app) counters(ctx context.Context, l vnet.Lease) (all []report.Traffic) {
	hosts := slices.Collect(maps.Values(l.Mapping.Nodes))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		list, err := a.client().Traffic(ctx, l.ID(), host)
		if err != nil {
			fmt.Fprintf(a.err, "no counters from %s: %v\n", host, err)
			continue
		}
		all = append(all, list...)
	}
	return all
}

// views puts counters together: what entered links as it was before, the rest
// as it is now.
func views(before, now []report.Traffic) map[string][2]*trafficView {
	links := make(map[string][2]*trafficView)
	for _, t := range now {
		both := links[t.Link]
		if both[t.Direction] == nil {
			both[t.Direction] = &trafficView{Drops: make(map[string]uint64)}
			links[t.Link] = both
		}
		both[t.Direction].add(t)
	}
	for _, both := range links {
		if both[0].surpassed() || both[1].surpassed() {
			for _, v := range both {
				if v != nil {
					v.apart = true
				}
			}
		}
	}
	for _, t := range before {
		if v := links[t.Link][t.Direction]; v != nil && t.First && !t.Last {
			v.Packets, v.Bytes = t.Packets, t.Bytes
			v.account()
		}
	}
	return links
}

// add takes in what one host says.
func (v *trafficView) add(t report.Traffic) {
	for cause, n := range t.Drops {
		v.Drops[cause] += n
	}
	v.arrives = v.arrives || t.Last
	if t.First {
		v.Packets, v.Bytes = t.Packets, t.Bytes
	}
	if t.Last { // there is one for each path of a link
		v.DeliveredPackets += t.Packets
		v.DeliveredBytes += t.Bytes
	}
	if t.First && t.Last { // both ends here: what was dropped there did not arrive
		lost := t.Drops["queue"] + t.Drops["impaired"] + t.Drops["late"]
		v.DeliveredPackets -= min(lost, t.Packets)
		v.DeliveredBytes -= min(lost*t.Bytes/max(t.Packets, 1), t.Bytes)
	}
}

// betweenHosts is the cause of what neither arrived nor was dropped by a host
// of the link's ends: it was sent before the far end was built, or lost on the
// substrate, or is on its way.
const betweenHosts = "between-hosts"

// account finds the cause of what is not accounted for, if both ends said what
// they counted.
func (v *trafficView) account() {
	known := v.DeliveredPackets
	for _, n := range v.Drops {
		known += n
	}
	if v.arrives && !v.apart && v.Packets > known {
		v.Drops[betweenHosts] = v.Packets - known
	}
}

// surpassed says that more left a link than entered it, by more than what both ends count
// while they are read: where frames enter they are counted since a later time.
func (v *trafficView) surpassed() bool {
	return v != nil && v.arrives && v.DeliveredPackets > v.Packets+v.Packets/20+100
}

// words are the columns of a table: entered, left and dropped.
func (v *trafficView) words() []string {
	if v == nil {
		return []string{"-", "-", "-"}
	}
	var drops []string
	for _, cause := range slices.Sorted(maps.Keys(v.Drops)) {
		drops = append(drops, fmt.Sprintf("%s %d", cause, v.Drops[cause]))
	}
	if v.apart {
		drops = append(drops, "its ends count since different times")
	}
	return []string{
		fmt.Sprintf("%d (%s)", v.Packets, vnet.Bytes(v.Bytes)), fmt.Sprintf("%d (%s)", v.DeliveredPackets, vnet.Bytes(v.DeliveredBytes)),
		orDash(strings.Join(drops, ", ")),
	}
}
