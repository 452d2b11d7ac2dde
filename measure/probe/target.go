package probe

import (
	"net/netip"
	"time"

	"sublet/vnet"
)

// Target is one direction of a virtual link, to be measured.
type Target struct {
	Link         string
	From, To     string // nodes
	FromIf, ToIf string // their interfaces on this link
	FromAddr     netip.Addr
	ToAddr       netip.Addr
	MTU          int
	Min, Max     vnet.Rate          // promised; Max 0: best effort
	Alloc        vnet.Rate          // allocated
	Open         bool               // no maximum was stated: Alloc is all the substrate has
	Flow         vnet.Rate          // of that, what one flow gets on the least of several paths; 0: all
	Latency      time.Duration      // bound on the way's; 0: none
	Impair       [2]vnet.Impairment // asked for in this direction, and in the other
	Port         uint16             // at which TCP and UDP are received; 0: any
	Frames       uint8              // protocol of frames that are counted beside the program that has Port; 0: sockets
	DSCP         uint8              // of what is sent
	VLAN         uint16             // tag of frames that are sent; 0: none
	Translated   bool               // a NAT on the way: what arrives is not from FromAddr
}

// Targets lists both directions of every link between nodes of the lease's
// running stage, but those of chains.
// The interface names and the MTU, which are the plan's, come from ends: it
// gives the interface of a link's end i (0 or 1).
func Targets(l vnet.Lease, mtu int, ends func(link vnet.VirtualLink, i int) string) []Target {
	var targets []Target
	top := l.Topology()
	for _, link := range top.Links {
		if atSwitch(top, link) || link.Down || link.Chain != "" {
			continue // nobody there can send by it, or nothing arrives
		}
		for _, d := range vnet.Directions {
			o := d.Opposite()
			alloc, asked := l.Rates[link.Name][d], link.Bandwidth[d]
			open := asked.Max == vnet.Unbounded
			if open {
				asked.Max = alloc
			}
			paths := l.Mapping.Paths(link.Name)
			flow := leastPart(paths, alloc)
			if link.KeepsOrder() {
				flow = 0 // gets all of them
			}
			targets = append(targets, Target{
				Link: link.Name, From: link.Ends[d], To: link.Ends[o],
				FromIf: ends(link, int(d)), ToIf: ends(link, int(o)),
				FromAddr: l.At(link, int(d)), ToAddr: l.At(link, int(o)),
				Latency: link.Latency, MTU: mtu, Min: asked.Min, Max: asked.Max, Alloc: alloc, Open: open,
				Impair: [2]vnet.Impairment{link.Impair[d], link.Impair[o]},
				Flow:   flow,
			})
		}
	}
	return targets
}

// leastPart is what the least of several paths has of a rate; 0: there is one.
func leastPart(paths []vnet.PathShare, r vnet.Rate) vnet.Rate {
	if len(paths) < 2 {
		return 0
	}
	least := r
	for _, p := range paths {
		least = min(least, p.Of(r).WholeBytesDown())
	}
	return least
}

func atSwitch(t vnet.Topology, l vnet.VirtualLink) bool {
	_, a := t.Switch(l.Ends[0])
	_, b := t.Switch(l.Ends[1])
	return a || b
}

// opposite finds the other direction of target i, or -1.
func opposite(targets []Target, i int) int {
	t := targets[i]
	for j, o := range targets {
		if j != i && o.Link == t.Link && o.From == t.To && o.To == t.From && o.FromIf == t.ToIf {
			return j
		}
	}
	return -1
}
