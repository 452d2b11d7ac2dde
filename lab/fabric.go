package lab

import (
	"sublet/embed/graph"
	"sublet/vnet"
)

// forwarding gives, for every switch and every switch it can reach through
// switches, the index of the link it forwards by: the first of the path that
// embeddings count on. ways[target][at].
func forwarding(sub vnet.Substrate) (ways map[string]map[string]int, err error) {
	g, err := graph.New(sub)
	if err != nil {
		return nil, err
	}
	index := make(map[string]int, len(sub.Links))
	for i, l := range sub.Links {
		index[l.Name] = i
	}
	ways = make(map[string]map[string]int, len(sub.Switches))
	for _, target := range sub.Switches {
		ways[target] = make(map[string]int)
		for _, at := range sub.Switches {
			if path, ok := g.Fabric(at, target); ok && at != target {
				ways[target][at] = index[path[0]]
			}
		}
	}
	return ways, nil
}
