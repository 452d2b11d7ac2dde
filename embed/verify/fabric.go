package verify

import (
	"fmt"
	"slices"

	"sublet/embed/graph"
	"sublet/fabric"
	"sublet/vnet"
)

// fabric checks that between hosts a path follows the fabric's fixed paths,
// where senders cannot choose others.
func (c checker) fabric(hops []vnet.Hop) error {
	if err := pinned(c.sub, hops); err != nil || len(c.sub.Relays) > 0 {
		return err
	}
	if c.sub.Steered() {
		return loopless(hops)
	}
	g, err := graph.New(c.sub)
	if err != nil {
		return err
	}
	for i := 0; i < len(hops); i++ {
		entry, inner := hops[i].To(), vnet.Path{}
		if _, host := c.sub.HostOf(entry); host {
			continue
		}
		last := entry
		for i++; i < len(hops); i++ {
			if _, host := c.sub.HostOf(hops[i].To()); host {
				break
			}
			inner, last = append(inner, hops[i].Link.Name), hops[i].To()
		}
		if fixed, ok := g.Fabric(entry, last); !ok || fmt.Sprint(fixed) != fmt.Sprint(inner) {
			return fmt.Errorf("goes from switch %s to %s over %v, not the fabric's %v", entry, last, inner, fixed)
		}
	}
	return nil
}

// pinned checks that relay lists can hold a path on a substrate: without a
// loop any can be held, if it takes no more relays than a list has room for.
func pinned(sub vnet.Substrate, hops []vnet.Hop) error {
	if len(sub.Relays) == 0 {
		return nil
	}
	if err := loopless(hops); err != nil {
		return err
	}
	graph, path := fabric.FabricOf(sub), fabric.Path{}
	for _, hop := range hops {
		at := slices.Index(sub.Switches, hop.To())
		if at >= 0 && len(path.Nodes) > 0 {
			link := slices.IndexFunc(sub.Links, func(l vnet.SubstrateLink) bool { return l.Name == hop.Link.Name })
			path.Links = append(path.Links, link)
		}
		if at >= 0 {
			path.Nodes = append(path.Nodes, at)
			continue
		}
		if n := len(graph.Pin(path)); n > vnet.MaxRelays {
			return fmt.Errorf("up to %s it takes %d relays, and a packet has room for %d", hop.To(), n, vnet.MaxRelays)
		}
		path = fabric.Path{}
	}
	return nil
}

// loopless checks that no node is passed twice.
func loopless(hops []vnet.Hop) error {
	passed := make(map[string]bool)
	for _, hop := range hops {
		if passed[hop.From()] {
			return fmt.Errorf("passes %s twice", hop.From())
		}
		passed[hop.From()] = true
	}
	return nil
}
