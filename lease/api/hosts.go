package api

import (
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/report"
	"sublet/vnet"
)

// Host is a substrate node as it is now.
type Host struct {
	Name     vnet.HostID `json:"name"`
	Site     string      `json:"site,omitempty"`
	Agent    AgentState  `json:"agent"`
	Seen     time.Time   `json:"seen,omitzero"` // last sign of life
	CPU      vnet.CPU    `json:"cpu_milli"`
	CPUFree  vnet.CPU    `json:"cpu_free_milli"`
	Memory   vnet.Bytes  `json:"memory_bytes"`
	MemFree  vnet.Bytes  `json:"memory_free_bytes"`
	Nodes    int         `json:"nodes"`    // the caller's virtual nodes on it; all for the operator
	Revision uint64      `json:"revision"` // of the plan it shall have; 0 for tenants, as the next three
	Applied  uint64      `json:"applied"`  // of the plan it has
	Errors   int         `json:"errors"`   // things its agent could not do
	Drift    uint64      `json:"drift"`    // repairs since its agent started
	// Carries is what admission counts on between two of its nodes, per direction;
	// of its measurement, if there is one.
	Carries vnet.Rate `json:"carries_bps"`
	vnet.Measurement
	Down  bool     `json:"down,omitempty"`
	Lacks []string `json:"lacks,omitempty"` // what its ports need and its agent does not see
	// Problems are what its agent cannot read or do to the host as a whole, each
	// once; the operator sees them.
	Problems []string `json:"problems,omitempty"`
	// Held is what its agent keeps it at instead of the server's plan, until
	// the operator adopts it; nil: it follows.
	Held *report.Held `json:"held,omitempty"`
}

// AgentState is a host's agent's.
type AgentState string

// States of an agent: unknown ones have not been heard of since the server
// started.
const (
	AgentUp      AgentState = "up"
	AgentSilent  AgentState = "silent"
	AgentUnknown AgentState = "unknown"
)

// silentAfter is three heartbeats of an agent.
const silentAfter = 15 * time.Second

func (s *Server) getHosts(w http.ResponseWriter, _ *http.Request, c *call) error {
	var hosts []Host
	err := s.look(func(now time.Time, b *lease.Book) error {
		hosts = hostsNow(b.Substrate(), b.Leases(), c.mayTouch)
		plans, links := b.Plans(), linksOf(b.Substrate())
		for i := range hosts {
			h := &hosts[i]
			h.Revision = plans[h.Name].Revision
			h.heard(now, s.agents[h.Name])
			if !c.Operator { // what others' leases change there
				h.Revision, h.Applied, h.Errors, h.Drift = 0, 0, 0, 0
			}
			if seen := s.agents[h.Name].report.Interfaces; len(seen) > 0 && c.Operator {
				h.Lacks = report.Lacks(links[h.Name], h.Name, seen)
			}
			if c.Operator {
				h.Problems = problemsOf(s.agents[h.Name].report.Errors)
			}
			if !c.Operator && c.Host != h.Name {
				h.Machine = ""
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, hosts)
}

// problemsOf lists what concerns a host as a whole, each text once.
func problemsOf(errors report.Errors) (texts []string) {
	for _, e := range errors {
		if e.OfHost() && !slices.Contains(texts, e.Text) {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// linksOf lists the links that end at each host.
func linksOf(sub vnet.Substrate) map[vnet.HostID][]vnet.SubstrateLink {
	links := make(map[vnet.HostID][]vnet.SubstrateLink)
	for _, l := range sub.Links {
		for _, end := range l.Ends {
			links[vnet.HostID(end)] = append(links[vnet.HostID(end)], l)
		}
	}
	return links
}

// putMeasured gives admission what a host can carry.
func (s *Server) putMeasured(w http.ResponseWriter, r *http.Request, c *call) error {
	var m vnet.Measurement
	if err := s.decode(w, r, c, &m); err != nil {
		return err
	}
	host := vnet.HostID(r.PathValue("host"))
	err := s.change(func(now time.Time, b *lease.Book) error {
		if _, ok := b.Substrate().HostOf(string(host)); !ok {
			return noSuchHost(host)
		}
		if m.MeasuredAt.IsZero() || m.MeasuredAt.After(now) {
			m.MeasuredAt = now
		}
		m.MeasuredAt = m.MeasuredAt.UTC().Truncate(time.Second)
		return b.Measured(now, host, m)
	})
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// heard adds what is known of the host's agent.
func (h *Host) heard(now time.Time, a agentState) {
	h.Held = a.report.Held
	h.Seen, h.Applied, h.Drift, h.Errors = a.seen, a.report.Revision, a.report.Drift, len(a.report.Errors)
	switch {
	case a.seen.IsZero():
		h.Agent = AgentUnknown
	case now.Sub(a.seen) > silentAfter:
		h.Agent = AgentSilent
	default:
		h.Agent = AgentUp
	}
}

// hostsNow lists hosts with what active leases leave free of them. Nodes are
// counted of the tenants that may be shown.
func hostsNow(sub vnet.Substrate, leases []vnet.Lease, shown func(vnet.TenantID) bool) []Host {
	hosts := make([]Host, len(sub.Hosts))
	byName := make(map[vnet.HostID]*Host, len(hosts))
	for i, n := range sub.Hosts {
		hosts[i] = Host{Name: n.Name, Site: n.Site, CPU: n.CPU, CPUFree: n.CPU, Memory: n.Memory, MemFree: n.Memory, Down: n.Down, Carries: n.Carries(), Measurement: n.Measurement}
		byName[n.Name] = &hosts[i]
	}
	for _, l := range active(leases) {
		for _, n := range l.Topology().Placed() {
			if h := byName[l.Mapping.Nodes[n.Name]]; h != nil {
				if shown(l.Request.Tenant) {
					h.Nodes++
				}
				h.CPUFree -= n.CPU
				h.MemFree -= n.Memory
			}
		}
	}
	return hosts
}

// active are the leases that are to be on their hosts now.
func active(leases []vnet.Lease) []vnet.Lease {
	return slices.DeleteFunc(slices.Clone(leases), func(l vnet.Lease) bool {
		return l.State == vnet.Booked || l.State == vnet.Ended
	})
}

// Link is one direction of a substrate link as it is now. Rates count
// tenants' frames. Whose leases they are is nobody's business.
type Link struct {
	Name       string    `json:"name"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Capacity   vnet.Rate `json:"capacity_bps"`
	Leasable   vnet.Rate `json:"leasable_bps"`
	Booked     vnet.Rate `json:"booked_bps"` // sum of guaranteed minima
	Allocated  vnet.Rate `json:"alloc_bps"`  // sum of allocated rates
	Links      int       `json:"links"`      // the caller's virtual links that cross it; all for the operator, as below
	BestEffort int       `json:"best_effort"`
	Leases     int       `json:"leases"`
	Down       bool      `json:"down,omitempty"`
}

func (s *Server) getLinks(w http.ResponseWriter, _ *http.Request, c *call) error {
	var links []Link
	err := s.look(func(_ time.Time, b *lease.Book) error {
		links = linksNow(b.Substrate(), b.Leases(), c.mayTouch)
		return nil
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, links)
}

// crossing is one direction of a substrate link.
type crossing struct {
	link string
	dir  vnet.Direction
}

// linksNow lists both directions of every link with what active leases have of them.
// Links and leases are counted of the tenants that may be shown.
func linksNow(sub vnet.Substrate, leases []vnet.Lease, shown func(vnet.TenantID) bool) []Link {
	links := make([]Link, 0, 2*len(sub.Links))
	index := make(map[crossing]*Link, cap(links))
	for _, l := range sub.Links {
		for _, d := range vnet.Directions {
			links = append(links, Link{Name: l.Name, From: l.Ends[d], To: l.Ends[d.Opposite()], Capacity: l.Capacity, Leasable: l.Leasable(), Down: !l.Works()})
			index[crossing{l.Name, d}] = &links[len(links)-1]
		}
	}
	for _, l := range active(leases) {
		addLease(sub, l, index, shown(l.Request.Tenant))
	}
	return links
}

// addLease adds a lease's links to what they cross. A path that the substrate
// has no more crosses nothing.
func addLease(sub vnet.Substrate, l vnet.Lease, index map[crossing]*Link, shown bool) {
	crossed := make(map[*Link]bool)
	for _, v := range l.Topology().Links {
		for _, share := range l.Mapping.Paths(v.Name) {
			hops, _ := sub.Walk(l.Mapping.Nodes[v.Ends[0]], share.Path)
			for _, hop := range hops {
				for _, d := range vnet.Directions {
					at := index[crossing{hop.Link.Name, hop.Dir ^ d}]
					at.add(share.Bandwidth(v.Bandwidth[d]), share.Of(l.Rates[v.Name][d]))
					if shown {
						at.count(v.Bandwidth[d])
						crossed[at] = true
					}
				}
			}
		}
	}
	for at := range crossed {
		at.Leases++
	}
}

func (l *Link) add(b vnet.Bandwidth, allocated vnet.Rate) {
	if !b.BestEffort() {
		l.Booked += b.Min
		l.Allocated += allocated
	}
}

func (l *Link) count(b vnet.Bandwidth) {
	l.Links++
	if b.BestEffort() {
		l.BestEffort++
	}
}

// getSubstrate shows the graph; only the operator sees how hosts reach one another.
func (s *Server) getSubstrate(w http.ResponseWriter, _ *http.Request, c *call) error {
	var sub vnet.Substrate
	err := s.look(func(_ time.Time, b *lease.Book) error {
		sub = b.Substrate()
		return nil
	})
	if err != nil {
		return err
	}
	if !c.Operator {
		sub.Hosts, sub.Links = slices.Clone(sub.Hosts), slices.Clone(sub.Links)
		for i := range sub.Hosts {
			sub.Hosts[i].Machine = ""
		}
		for i := range sub.Links {
			sub.Links[i].Ports = [2]vnet.Port{}
		}
	}
	return answer(w, http.StatusOK, sub)
}
