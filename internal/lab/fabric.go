package lab

import (
	"slices"
	"time"

	"sublet/vnet"
)

// trail is a way through switches: the fabric takes the one with the fewest
// hops, then the least latency, then the alphabetically first link that is not
// on both. The order holds when both grow by the same link and does not depend
// on direction, so a part of a fixed way is a fixed way and hop-by-hop
// forwarding follows it. embed/graph decides by the same rule.
type trail struct {
	hops    int
	latency time.Duration
	links   []string // sorted
	last    int      // index of the link that was added last
}

func (t trail) before(u trail) bool {
	if t.hops != u.hops {
		return t.hops < u.hops
	}
	if t.latency != u.latency {
		return t.latency < u.latency
	}
	return slices.Compare(t.links, u.links) < 0
}

func (t trail) then(index int, l vnet.SubstrateLink) trail {
	links := append(slices.Clone(t.links), l.Name)
	slices.Sort(links)
	return trail{hops: t.hops + 1, latency: t.latency + l.Latency, links: links, last: index}
}

// towards gives, for every switch that can reach the switch target through
// switches, the index of the link it forwards by.
func towards(sub vnet.Substrate, target string) map[string]int {
	best := map[string]trail{target: {}}
	for level := []string{target}; len(level) > 0; {
		var next []string
		for _, at := range level {
			for index, link := range sub.Links {
				to, ok := across(link, at)
				if !ok || !slices.Contains(sub.Switches, to) {
					continue
				}
				known, reached := best[to]
				if t := best[at].then(index, link); !reached || t.before(known) {
					best[to] = t
				}
				if !reached {
					next = append(next, to)
				}
			}
		}
		level = next
	}
	delete(best, target)
	ways := make(map[string]int, len(best))
	for name, t := range best {
		ways[name] = t.last
	}
	return ways
}

// across is the other end of a link.
func across(l vnet.SubstrateLink, from string) (string, bool) {
	switch from {
	case l.Ends[0]:
		return l.Ends[1], true
	case l.Ends[1]:
		return l.Ends[0], true
	}
	return "", false
}
