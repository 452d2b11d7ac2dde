package embed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// node is a virtual node or router with what it asks for in each span.
type node struct {
	name    string
	wants   []vnet.VirtualNode // one for each site and host that a span states; all of them bind
	needs   []int64            // what it takes of a host: by kind and span, as residuals
	guests  []int64            // by span: WholeHost where it wants the host for itself, 1 where it exists
	links   []int              // indexes of the links that end here
	traffic float64            // the sum of the weights of its links
}

// link is a virtual link with its guaranteed minima in each span.
type link struct {
	name      string
	title     string // for people
	ends      [2]int
	min       [2][]int64 // by Direction and span; 0 where it does not exist
	bound     time.Duration
	paths     int           // most paths it may be split over; at least 1
	spread    time.Duration // bound on the difference in latency of its paths
	symmetric bool          // its minima are the same in both directions
	weight    float64       // bit/s that each hop of its path costs
}

// problem is a request in numbers: every stage's nodes and links at once.
type problem struct {
	spans []span
	nodes []node
	links []link
	index map[string]int // number of a node, by name
	apart bool           // no two nodes on one host, in whatever stage
}

// problemOf reads a request; an error says which part contradicts another.
func problemOf(request vnet.Request, window vnet.Window) (*problem, error) {
	p := &problem{spans: spansOf(request, window), index: map[string]int{}, apart: request.Apart()}
	if len(p.spans) == 0 {
		return nil, fmt.Errorf("embed %s: its window has no duration", request.Network)
	}
	union := request.Union()
	for _, n := range union.Placed() {
		if err := p.addNode(n); err != nil {
			return nil, fmt.Errorf("embed %s: %w", request.Network, err)
		}
	}
	links := make(map[string]int, len(union.Links))
	for _, l := range union.Links {
		if _, twice := links[l.Name]; twice {
			return nil, fmt.Errorf("embed %s: two links are called %s", request.Network, l.Name)
		}
		links[l.Name] = len(p.links)
		if err := p.addLink(l); err != nil {
			return nil, fmt.Errorf("embed %s: %w", request.Network, err)
		}
	}
	for i, s := range p.spans {
		p.demandNodes(i, s.topology.Placed())
		if err := p.demandLinks(i, s.topology.Links, links); err != nil {
			return nil, fmt.Errorf("embed %s: %w", request.Network, err)
		}
	}
	p.setWeights()
	return p, nil
}

// size is what it takes to read the request, in units of work.
func (p *problem) size() int { return (len(p.nodes) + len(p.links)) * (8 + 4*len(p.spans)) }

// addNode enters a node of the union.
func (p *problem) addNode(n vnet.VirtualNode) error {
	if _, twice := p.index[n.Name]; twice {
		return fmt.Errorf("two nodes are called %s", n.Name)
	}
	p.index[n.Name] = len(p.nodes)
	p.nodes = append(p.nodes, node{name: n.Name, needs: make([]int64, int(perHost)*len(p.spans)), guests: make([]int64, len(p.spans))})
	return nil
}

// need is what a node asks of one kind, by span; 0 where it does not exist.
func (n *node) need(kind resource) []int64 {
	spans := len(n.guests)
	return n.needs[int(kind)*spans:][:spans]
}

// addLink enters a link of the union.
func (p *problem) addLink(l vnet.VirtualLink) error {
	a, known := p.index[l.Ends[0]]
	b, too := p.index[l.Ends[1]]
	if !known || !too || a == b {
		return fmt.Errorf("link %s joins %q and %q, which are not two nodes of the network", l.Name, l.Ends[0], l.Ends[1])
	}
	added := link{name: l.Name, title: l.Title(), ends: [2]int{a, b}, paths: l.MayPaths(), spread: l.MaySpread()}
	for _, dir := range vnet.Directions {
		added.min[dir] = make([]int64, len(p.spans))
		p.nodes[added.ends[dir]].links = append(p.nodes[added.ends[dir]].links, len(p.links))
	}
	p.links = append(p.links, added)
	return nil
}

// demandNodes enters what a span's nodes ask for.
func (p *problem) demandNodes(span int, nodes []vnet.VirtualNode) {
	for _, want := range nodes {
		n := &p.nodes[p.index[want.Name]]
		n.need(cpu)[span], n.need(memory)[span], n.guests[span] = int64(want.CPU), int64(want.Memory), 1
		if want.Exclusive {
			n.guests[span] = WholeHost
		}
		if len(n.wants) == 0 || want.Site != n.wants[0].Site || want.Host != n.wants[0].Host {
			n.wants = append(n.wants, want)
		}
	}
}

// demandLinks enters what a span's links ask for.
func (p *problem) demandLinks(span int, links []vnet.VirtualLink, index map[string]int) error {
	for _, want := range links {
		l := &p.links[index[want.Name]]
		if p.index[want.Ends[0]] != l.ends[0] || p.index[want.Ends[1]] != l.ends[1] {
			return fmt.Errorf("link %s has other ends in a later stage", want.Name)
		}
		for _, dir := range vnet.Directions {
			l.min[dir][span] = int64(want.Bandwidth[dir].Min)
			for _, end := range l.ends {
				p.nodes[end].need(carrying)[span] += l.min[dir][span]
			}
		}
		if want.Latency > 0 && (l.bound == 0 || want.Latency < l.bound) {
			l.bound = want.Latency
		}
	}
	return nil
}

// setWeights sets what each hop of a link costs: its minima, the largest of any
// span. A link without any still costs 1 bit/s a hop, so its path is short.
func (p *problem) setWeights() {
	for i := range p.links {
		l := &p.links[i]
		l.weight = 1
		l.symmetric = slices.Equal(l.min[0], l.min[1])
		for _, dir := range vnet.Directions {
			most := int64(0)
			for _, m := range l.min[dir] {
				most = max(most, m)
			}
			l.weight += float64(most)
		}
		for _, end := range l.ends {
			p.nodes[end].traffic += l.weight
		}
	}
	for v := range p.nodes {
		slices.SortStableFunc(p.nodes[v].links, func(a, b int) int { return cmp.Compare(p.links[b].weight, p.links[a].weight) })
	}
}

// far is the end of a link that is not node.
func (l link) far(node int) int {
	if l.ends[0] == node {
		return l.ends[1]
	}
	return l.ends[0]
}
