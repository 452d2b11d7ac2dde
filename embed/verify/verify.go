// Package verify checks embeddings: it says what is wrong with a mapping. It is
// the judge of the tests of embed, and no program contains it. It shares no
// code with the search, apart from the definition of the fabric's fixed paths.
package verify

import (
	"fmt"
	"math"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// Mapping says what is wrong with a mapping: nil when it keeps every rule of
// package embed beside what cal holds.
func Mapping(sub vnet.Substrate, cal *calendar.Calendar, request vnet.Request, window vnet.Window, mapping vnet.Mapping) error {
	c := checker{sub: sub, request: request, mapping: mapping}
	union := request.Union()
	for i := range union.Links {
		union.Links[i].Latency = 0 // binds only in stages that run
	}
	if err := c.links(union.Links); err != nil {
		return err
	}
	for _, n := range union.Placed() {
		if err := c.node(vnet.VirtualNode{Name: n.Name}); err != nil {
			return err
		}
	}
	if err := c.colocation(union); err != nil {
		return err
	}
	for stage := -1; stage < len(request.Stages); stage++ {
		w := request.MayRun(stage, window)
		if !w.End.IsZero() && !w.Start.Before(w.End) {
			continue
		}
		if err := c.stage(request.At(stage), cal, w); err != nil {
			return fmt.Errorf("stage %d: %w", stage, err)
		}
	}
	return nil
}

type checker struct {
	sub     vnet.Substrate
	request vnet.Request
	mapping vnet.Mapping
}

// colocation checks that nodes that want to be apart are.
func (c checker) colocation(union vnet.Topology) error {
	taken := map[vnet.HostID]string{}
	for _, n := range union.All() {
		at := c.mapping.Nodes[n.Name]
		if other, is := taken[at]; is && c.request.Apart() {
			return fmt.Errorf("check mapping: nodes %s and %s are both at %s", other, n.Name, at)
		}
		taken[at] = n.Name
	}
	return nil
}

// stage checks everything in one stage's part of the window.
func (c checker) stage(top vnet.Topology, cal *calendar.Calendar, w vnet.Window) error {
	for _, n := range top.Placed() {
		if err := c.node(n); err != nil {
			return err
		}
	}
	if err := c.links(top.Links); err != nil {
		return err
	}
	for key, taken := range c.taken(top) {
		if left := cal.Residual(key, Capacity(c.sub, key), w); left < taken {
			return fmt.Errorf("check mapping: %d of %s are taken, and %d are left", taken, key, left)
		}
	}
	return nil
}

// links checks every link.
func (c checker) links(links []vnet.VirtualLink) error {
	for _, l := range links {
		if err := c.link(l); err != nil {
			return fmt.Errorf("check mapping: link %s: %w", l.Name, err)
		}
	}
	return nil
}

// node checks a node's site and host.
func (c checker) node(n vnet.VirtualNode) error {
	at := c.mapping.Nodes[n.Name]
	host, ok := c.sub.HostOf(string(at))
	switch {
	case !ok:
		return fmt.Errorf("check mapping: node %s: %q is no host", n.Name, at)
	case n.Host != "" && n.Host != at:
		return fmt.Errorf("check mapping: node %s is at %s, not at %s", n.Name, at, n.Host)
	case n.Site != "" && n.Site != host.Site:
		return fmt.Errorf("check mapping: node %s is at site %q, not at %q", n.Name, host.Site, n.Site)
	}
	return nil
}

// link checks how a link is carried: how many paths, their shares, each of
// them, and how much they differ in latency.
func (c checker) link(l vnet.VirtualLink) error {
	path, one := c.mapping.Links[l.Name]
	split, several := c.mapping.Splits[l.Name]
	switch {
	case one == several:
		return fmt.Errorf("has to be carried by one path or by several")
	case one:
		_, err := c.path(l, path)
		return err
	case len(split) < 2 || len(split) > l.Paths:
		return fmt.Errorf("is split over %d paths, not 2 to %d", len(split), l.Paths)
	}
	return c.split(l, split)
}

// split checks the several paths of a link.
func (c checker) split(l vnet.VirtualLink, split []vnet.PathShare) error {
	units, seen := 0, map[string]bool{}
	fastest, slowest := time.Duration(math.MaxInt64), time.Duration(0)
	for _, share := range split {
		latency, err := c.path(l, share.Path)
		if err != nil {
			return err
		}
		if share.Units < 1 || seen[fmt.Sprint(share.Path)] || len(share.Path) == 0 {
			return fmt.Errorf("path %v has %d units, stands twice or stays in a host", share.Path, share.Units)
		}
		seen[fmt.Sprint(share.Path)] = true
		units += share.Units
		fastest, slowest = min(fastest, latency), max(slowest, latency)
	}
	if units != vnet.ShareUnits {
		return fmt.Errorf("its shares add up to %d of %d", units, vnet.ShareUnits)
	}
	if spread := slowest - fastest; spread > l.MaySpread() {
		return fmt.Errorf("its paths differ in latency by %s, more than %s", spread, l.MaySpread())
	}
	return nil
}

// path checks one path of a link: its ends, its shape and its latency, which
// it returns.
func (c checker) path(l vnet.VirtualLink, path vnet.Path) (time.Duration, error) {
	from, to := c.mapping.Nodes[l.Ends[0]], c.mapping.Nodes[l.Ends[1]]
	hops, err := c.sub.Walk(from, path)
	if err != nil {
		return 0, err
	}
	if (len(hops) == 0) != (from == to) || len(hops) > 0 && hops[len(hops)-1].To() != string(to) {
		return 0, fmt.Errorf("path %v does not lead from %s to %s", path, from, to)
	}
	latency, used := time.Duration(0), map[string]bool{}
	if len(hops) == 0 {
		at, _ := c.sub.HostOf(string(from))
		latency = at.Inside
	}
	for _, hop := range hops {
		if used[hop.Link.Name] {
			return 0, fmt.Errorf("path %v takes %s twice", path, hop.Link.Name)
		}
		used[hop.Link.Name] = true
		latency += hop.Link.Latency
	}
	if l.Latency > 0 && latency > l.Latency {
		return 0, fmt.Errorf("path %v has a latency of %s, above %s", path, latency, l.Latency)
	}
	return latency, c.fabric(hops)
}

// taken adds up what a topology takes, by the calendar's key.
func (c checker) taken(top vnet.Topology) map[string]int64 {
	taken := map[string]int64{}
	for _, n := range top.Placed() {
		host := string(c.mapping.Nodes[n.Name])
		taken["cpu:"+host] += int64(n.CPU)
		taken["memory:"+host] += int64(n.Memory)
		taken["guests:"+host] = max(taken["guests:"+host], 1)
		if n.Exclusive {
			taken["guests:"+host] = wholeHost
		}
	}
	for _, l := range top.Links {
		for _, end := range l.Ends {
			if c.sub.Forwards != 0 {
				taken["machine"] += int64(l.Bandwidth[0].Min + l.Bandwidth[1].Min)
			}
			taken["carrying:"+string(c.mapping.Nodes[end])] += int64(l.Bandwidth[0].Min + l.Bandwidth[1].Min)
		}
		from := c.mapping.Nodes[l.Ends[0]]
		for _, share := range c.mapping.Paths(l.Name) {
			hops, _ := c.sub.Walk(from, share.Path) // link has walked it
			for dir, b := range l.Bandwidth {
				part := (int64(b.Min)*int64(share.Units) + vnet.ShareUnits - 1) / vnet.ShareUnits
				if len(hops) == 0 {
					taken["host:"+string(from)+string("><"[dir])] += part
				}
				for _, hop := range hops {
					taken[hop.Link.Name+string("><"[dir^int(hop.Dir)])] += part
				}
			}
		}
	}
	for key, amount := range taken {
		if amount == 0 {
			delete(taken, key) // nothing always fits, whatever is over-booked
		}
	}
	return taken
}

// wholeHost is a host's capacity of guests, all of which a network with an
// exclusive node takes.
const wholeHost = 1 << 30

// forwarding is what the processors of a host were found to forward, counted at
// both ends of each link; without a measurement it has no bound.
func forwarding(h vnet.SubstrateNode) int64 {
	if h.Measured == 0 {
		return math.MaxInt64 / 2
	}
	return 2 * int64(h.Measured)
}

// Capacity is what leases may book in all of a calendar's key.
func Capacity(sub vnet.Substrate, key string) int64 {
	if key == "machine" {
		return 2 * int64(sub.Forwards)
	}
	for _, h := range sub.Hosts {
		switch key {
		case "cpu:" + string(h.Name):
			return int64(h.CPU)
		case "memory:" + string(h.Name):
			return int64(h.Memory)
		case "guests:" + string(h.Name):
			return wholeHost
		case "carrying:" + string(h.Name):
			return forwarding(h)
		case "host:" + string(h.Name) + ">", "host:" + string(h.Name) + "<":
			return int64(h.Carries())
		}
	}
	l, _ := sub.LinkOf(key[:len(key)-1])
	return int64(l.Leasable())
}
