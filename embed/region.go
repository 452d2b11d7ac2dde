package embed

import (
	"net/netip"
	"slices"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/graph"
	"sublet/vnet"
)

// On a large substrate a network goes into a region: a few hundred hosts that
// lie together, with the switches among them. What an embedding costs then
// depends on the region and not on the substrate, and its paths are short. A
// request that no region tried takes is looked at on the whole substrate.
const (
	regionFrom  = 500 // hosts and switches, above which regions are used
	regionHosts = 256
	regionStep  = 64 // hosts between the centres of two regions, which overlap
	regionTries = 4
)

// region is a part of a substrate with an embedder of its own.
type region struct {
	embedder *Embedder
	hosts    map[vnet.HostID]string // its site, by name of the host
}

// regional embeds a request into one of the regions that could take it: those
// around the first host it names, else some chosen by its name, so that
// networks spread; with the objective of energy the first ones, so that they
// do not. False: none takes it.
func (e *Embedder) regional(cal *calendar.Calendar, request vnet.Request, window vnet.Window, opt Options) (vnet.Mapping, bool) {
	if e.isRegion || len(e.sub.Hosts)+len(e.sub.Switches) <= regionFrom {
		return vnet.Mapping{}, false
	}
	for _, centre := range e.regionCentres(request, opt) {
		r := e.region(centre)
		if r == nil || !r.suits(request) {
			continue
		}
		m, err := r.embedder.embed(cal, request, window, opt)
		if err != nil {
			continue
		}
		if m = e.alignWithFabric(m, request); e.valid(cal, request, window, m, opt.From) {
			return m, true
		}
	}
	return vnet.Mapping{}, false
}

// regionCentres are the hosts around which regions are tried.
func (e *Embedder) regionCentres(request vnet.Request, opt Options) []int {
	for _, n := range request.Union().All() {
		if h, ok := e.graph.Host(n.Host); ok {
			return []int{h}
		}
		if n.Site == "" {
			continue
		}
		if h := slices.IndexFunc(e.sub.Hosts, func(h vnet.SubstrateNode) bool { return h.Site == n.Site }); h >= 0 {
			return []int{h}
		}
	}
	count := (len(e.sub.Hosts) + regionStep - 1) / regionStep
	if request.Objective == vnet.Energy {
		return []int{0, regionStep % len(e.sub.Hosts)}
	}
	mixed := opt.Seed
	for _, c := range []byte(string(request.Tenant) + "/" + string(request.Network)) {
		mixed = (mixed ^ uint64(c)) * 0x100000001b3 // FNV-1a
	}
	var centres []int
	for range regionTries {
		mixed = mixed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
		centres = append(centres, int(mixed>>33)%count*regionStep)
	}
	return centres
}

// region makes the region around a host, once; nil: it is as good as the whole.
func (e *Embedder) region(centre int) *region {
	if r, ok := e.regions[centre]; ok {
		return r
	}
	if e.regions == nil {
		e.regions = make(map[int]*region)
	}
	sub := e.around(centre)
	embedder, err := NewPart(sub, e.whole)
	if err != nil {
		return nil // the whole substrate was well formed, so this cannot be
	}
	embedder.isRegion = true // with its switches it may be large enough for regions itself
	r := &region{embedder: embedder, hosts: make(map[vnet.HostID]string, len(sub.Hosts))}
	for _, h := range sub.Hosts {
		r.hosts[h.Name] = h.Site
	}
	e.regions[centre] = r
	return r
}

// around is the part of the substrate that is nearest to a host, in hops. The
// nearest hosts come first, so that of equal ones they are taken.
func (e *Embedder) around(centre int) vnet.Substrate {
	part := vnet.Substrate{Hosts: []vnet.SubstrateNode{e.sub.Hosts[centre]}}
	within := map[int]bool{centre: true}
	for queue := []int{centre}; len(queue) > 0 && len(part.Hosts) < regionHosts; queue = queue[1:] {
		for _, a := range e.graph.Leaving(queue[0]) {
			to := e.graph.Head(a)
			if within[to] || len(part.Hosts) == regionHosts {
				continue
			}
			within[to] = true
			if to < len(e.sub.Hosts) {
				part.Hosts = append(part.Hosts, e.sub.Hosts[to])
			}
			queue = append(queue, to)
		}
	}
	e.prune(within)
	for i, name := range e.sub.Switches {
		if within[len(e.sub.Hosts)+i] {
			part.Switches = append(part.Switches, name)
			if o, speaks := e.sub.OpenFlowOf(name); speaks && e.sub.Steered() {
				part.OpenFlow = append(part.OpenFlow, o)
			}
			if address, relays := e.sub.Relays[name]; relays {
				if part.Relays == nil {
					part.Relays = make(map[string]netip.Addr)
				}
				part.Relays[name] = address
			}
		}
	}
	for i, l := range e.sub.Links {
		a := graph.ArcOf(i, vnet.Forward)
		if within[e.graph.Head(a)] && within[e.graph.Head(a.Opposite())] {
			part.Links = append(part.Links, l)
		}
	}
	return part
}

// prune leaves out switches that lead nowhere within.
func (e *Embedder) prune(within map[int]bool) {
	for again := true; again; {
		again = false
		for at := range within {
			inside := 0
			for _, a := range e.graph.Leaving(at) {
				if within[e.graph.Head(a)] {
					inside++
				}
			}
			if at >= len(e.sub.Hosts) && inside < 2 {
				delete(within, at)
				again = true
			}
		}
	}
}

// suits says whether every host and site that a request names is there.
func (r *region) suits(request vnet.Request) bool {
	for _, n := range request.Union().All() {
		if n.Host != "" {
			if _, ok := r.hosts[n.Host]; !ok {
				return false
			}
		}
		if n.Site == "" {
			continue
		}
		found := false
		for _, site := range r.hosts {
			found = found || site == n.Site
		}
		if !found {
			return false
		}
	}
	return true
}

// alignWithFabric replaces, in the paths of an embedding into a region, the part
// inside the fabric by the path that the whole fabric takes, which may leave the
// region.
func (e *Embedder) alignWithFabric(m vnet.Mapping, request vnet.Request) vnet.Mapping {
	if len(e.sub.Switches) == 0 || len(e.sub.Relays) > 0 || e.sub.Steered() {
		return m
	}
	for _, l := range request.Union().Links {
		from := m.Nodes[l.Ends[0]]
		if path, ok := m.Links[l.Name]; ok {
			m.Links[l.Name] = e.fabricPath(from, path)
		}
		for i, share := range m.Splits[l.Name] {
			m.Splits[l.Name][i].Path = e.fabricPath(from, share.Path)
		}
	}
	return m
}

// fabricPath is a path with its part inside the fabric as the fabric forwards.
func (e *Embedder) fabricPath(from vnet.HostID, path vnet.Path) vnet.Path {
	at, ok := e.graph.Host(from)
	if !ok {
		return path
	}
	var straight vnet.Path
	for i := 0; i < len(path); i++ {
		straight = append(straight, path[i])
		if at, ok = e.graph.Beyond(at, path[i]); !ok {
			return path
		}
		if at < len(e.sub.Hosts) {
			continue
		}
		entry := at
		for i+1 < len(path) {
			next, ok := e.graph.Beyond(at, path[i+1])
			if !ok {
				return path
			}
			if next < len(e.sub.Hosts) {
				break
			}
			at, i = next, i+1
		}
		inner, ok := e.graph.Fabric(e.graph.Name(entry), e.graph.Name(at))
		if !ok {
			return path
		}
		straight = append(straight, inner...)
	}
	if straight == nil {
		return vnet.Path{}
	}
	return straight
}

// valid says whether an embedding fits and keeps every bound on the whole
// substrate.
func (e *Embedder) valid(cal *calendar.Calendar, request vnet.Request, window vnet.Window, m vnet.Mapping, from time.Time) bool {
	bookings, err := e.bookInside(request, window, m)
	if err != nil {
		return false
	}
	capacities := e.Capacities()
	for _, k := range bookings {
		if w, ahead := k.Window.Since(from); ahead && cal.Residual(k.Key, capacities[k.Key], w) < k.Amount {
			return false
		}
	}
	if len(e.sub.Switches) == 0 {
		return true // alignWithFabric changed nothing
	}
	for stage := -1; stage < len(request.Stages); stage++ {
		for _, l := range request.At(stage).Links {
			if !e.keepsBounds(l, m) {
				return false
			}
		}
	}
	return true
}

// keepsBounds says whether a link's paths keep its bounds, and take no link twice.
func (e *Embedder) keepsBounds(l vnet.VirtualLink, m vnet.Mapping) bool {
	from, _ := e.graph.Host(m.Nodes[l.Ends[0]])
	to, _ := e.graph.Host(m.Nodes[l.Ends[1]])
	fastest, slowest := time.Duration(-1), time.Duration(0)
	for _, share := range m.Paths(l.Name) {
		walk, err := e.graph.Walk(from, to, share.Path)
		if err != nil {
			return false
		}
		latency := e.latency(from, walk)
		for i, a := range walk {
			if slices.ContainsFunc(walk[:i], func(b graph.Arc) bool { return b.Link() == a.Link() }) {
				return false
			}
		}
		if fastest < 0 || latency < fastest {
			fastest = latency
		}
		slowest = max(slowest, latency)
	}
	return (l.Latency == 0 || slowest <= l.Latency) && slowest-max(fastest, 0) <= l.MaySpread()
}

// latency of a walk that begins at a host; of the empty one, inside it.
func (e *Embedder) latency(from int, walk []graph.Arc) (sum time.Duration) {
	if len(walk) == 0 {
		return e.sub.Hosts[from].Inside
	}
	for _, a := range walk {
		sum += e.graph.Latency(a)
	}
	return sum
}

// Latency is that of the slowest path that carries a link; vnet.MaxLatency
// when there is none.
func (e *Embedder) Latency(l vnet.VirtualLink, m vnet.Mapping) (slowest time.Duration) {
	from, _ := e.graph.Host(m.Nodes[l.Ends[0]])
	to, _ := e.graph.Host(m.Nodes[l.Ends[1]])
	for _, share := range m.Paths(l.Name) {
		walk, err := e.graph.Walk(from, to, share.Path)
		if err != nil {
			return vnet.MaxLatency
		}
		slowest = max(slowest, e.latency(from, walk))
	}
	return slowest
}

// Capacities lists what leases may book of each element of the substrate, by
// the keys and in the units of Bookings. The caller must not change it.
func (e *Embedder) Capacities() map[string]int64 {
	if e.byKey == nil {
		e.byKey = e.inventory().byKey()
		addOutside(e.byKey, e.sub)
		addSwitches(e.byKey, e.sub)
	}
	return e.byKey
}
