package vxdl

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"sublet/vnet"
)

func (w *writer) link(l vnet.VirtualLink) {
	w.inside("vLink", func() {
		w.leaf("id", l.Name)
		w.label(vnet.VirtualNode{Labels: l.Labels}, "model", labelModel)
		for _, key := range slices.Sorted(maps.Keys(l.Labels)) {
			if key != labelModel {
				w.tag(key, l.Labels[key])
			}
		}
		w.leaf("source", l.Ends[0])
		w.leaf("destination", l.Ends[1])
		w.bandwidth(l)
		w.latency(l.Latency)
	})
	if !l.Addresses.IsZero() {
		w.lose("link "+l.Name, "the addresses of its ends are not written: VXDL has none")
	}
	if l.Interfaces != ([2]string{}) {
		w.lose("link "+l.Name, "the names of its interfaces are not written: VXDL has none")
	}
	if l.MayPaths() > 1 {
		w.lose("link "+l.Name, "its %d paths are not written: VXDL 2.0 has one path for a link", l.Paths)
	}
	if l.Impair != ([2]vnet.Impairment{}) {
		w.lose("link "+l.Name, "its impairment is not written: VXDL 2.0 has none")
	}
	if l.Area != 0 || l.Cost != 0 {
		w.lose("link "+l.Name, "its area and cost are not written: VXDL 2.0 has none")
	}
	if l.Class != "" {
		w.lose("link "+l.Name, "its class is not written: VXDL has no words for classes of traffic")
	}
	if l.Down {
		w.lose("link "+l.Name, "that it is down is not written: VXDL 2.0 has no such word")
	}
}

// latency writes a bound in the largest unit that keeps it exact.
func (w *writer) latency(d time.Duration) {
	if d == 0 {
		return
	}
	number, unit := int64(d), "ns"
	for _, larger := range []string{"us", "ms", "s"} {
		if number%1000 != 0 {
			break
		}
		number, unit = number/1000, larger
	}
	w.inside("latency", func() {
		w.leaf("unit", unit)
		w.inside("interval", func() { w.leaf("max", strconv.FormatInt(number, 10)) })
	})
}

// bandwidth writes both directions, unless the link is best effort for life.
func (w *writer) bandwidth(l vnet.VirtualLink) {
	changes := w.changes(l.Name)
	if l.BestEffort() && len(changes) == 0 {
		return
	}
	w.inside("bandwidth", func() {
		for d, name := range [2]string{"forward", "reverse"} {
			w.inside(name, func() { w.course(vnet.Direction(d), l.Bandwidth[d], changes) })
		}
	})
}

// change of a link's rates when a stage begins.
type change struct {
	stage string
	both  [2]vnet.Bandwidth
}

func (w *writer) changes(link string) []change {
	var changes []change
	for _, s := range w.request.Stages {
		if both, ok := s.Links[link]; ok && !s.OnCommand {
			changes = append(changes, change{s.Name, both})
		}
	}
	return changes
}

// course writes one direction over time, all values in one unit.
func (w *writer) course(d vnet.Direction, start vnet.Bandwidth, changes []change) {
	values := []vnet.Bandwidth{start}
	for _, c := range changes {
		values = append(values, c.both[d])
	}
	unit, factor := unitOf(values)
	w.optional("unit", unit)
	w.amount(start, factor)
	for i, c := range changes {
		w.leaf("event", c.stage)
		w.amount(values[i+1], factor)
	}
}

// unitOf is the largest unit in which all rates are whole; none are needed
// when nothing is asked for.
func unitOf(values []vnet.Bandwidth) (string, vnet.Rate) {
	rates := 0
	unit, factor := "Gbps", vnet.Gbit
	for _, b := range values {
		if b.BestEffort() {
			continue
		}
		rates++
		for _, r := range []vnet.Rate{b.Min, b.Max} {
			for r != vnet.Unbounded && r%factor != 0 {
				factor /= 1000
			}
		}
	}
	switch factor {
	case vnet.Mbit:
		unit = "Mbps"
	case vnet.Kbit:
		unit = "Kbps"
	case vnet.BitPerSecond:
		unit = "bps"
	}
	if rates == 0 {
		unit = ""
	}
	return unit, factor
}

// amount writes one bandwidth; an empty interval is best effort.
func (w *writer) amount(b vnet.Bandwidth, factor vnet.Rate) {
	number := func(r vnet.Rate) string { return strconv.FormatInt(int64(r/factor), 10) }
	switch {
	case b.BestEffort():
		w.empty("interval")
	case b.Min == b.Max:
		w.leaf("simple", number(b.Max))
	default:
		w.inside("interval", func() {
			if b.Min > 0 || b.Max == vnet.Unbounded {
				w.leaf("min", number(b.Min))
			}
			if b.Max != vnet.Unbounded {
				w.leaf("max", number(b.Max))
			}
		})
	}
}
