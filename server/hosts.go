package server

import (
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// silentAfter is three heartbeats of an agent.
const silentAfter = 15 * time.Second

func (s *Server) getHosts(w http.ResponseWriter, _ *http.Request, c *call) error {
	var hosts []api.Host
	err := s.look(func(now time.Time, b *lease.Book) error {
		hosts = hostsNow(b.Substrate(), b.Leases(), c.MayTouch)
		plans, links := b.Plans(), linksOf(b.Substrate())
		for i := range hosts {
			h := &hosts[i]
			h.Revision = plans[h.Name].Revision
			heard(h, now, s.agents[h.Name])
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
	err := s.changeBy(causeOf(c, "host "+string(host)+" was measured"), func(now time.Time, b *lease.Book) error {
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
func heard(h *api.Host, now time.Time, a agentState) {
	h.Held = a.report.Held
	h.Seen, h.Applied, h.Drift, h.Errors = a.seen, a.report.Revision, a.report.Drift, len(a.report.Errors)
	switch {
	case a.seen.IsZero(), a.report.Host == "": // who asks for a plan before its first report cannot be reached
		h.Agent = api.AgentUnknown
	case now.Sub(a.seen) > silentAfter:
		h.Agent = api.AgentSilent
	default:
		h.Agent = api.AgentUp
	}
}

// hostsNow lists hosts with what active leases leave free of them. Nodes are
// counted of the tenants that may be shown.
func hostsNow(sub vnet.Substrate, leases []vnet.Lease, shown func(vnet.TenantID) bool) []api.Host {
	hosts := make([]api.Host, len(sub.Hosts))
	byName := make(map[vnet.HostID]*api.Host, len(hosts))
	for i, n := range sub.Hosts {
		hosts[i] = api.Host{Name: n.Name, Site: n.Site, CPU: n.CPU, CPUFree: n.CPU, Memory: n.Memory, MemFree: n.Memory, Down: n.Down, Drained: n.Drained, Carries: n.Carries(), Measurement: n.Measurement}
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
