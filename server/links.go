package server

import (
	"net/http"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

func (s *Server) getLinks(w http.ResponseWriter, _ *http.Request, c *call) error {
	var links []api.Link
	err := s.look(func(_ time.Time, b *lease.Book) error {
		links = linksNow(b.Substrate(), b.Leases(), c.MayTouch)
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

// outside is the far end of ways out, exits and places to join.
const outside = "outside"

// linksNow lists both directions of every link, way out, exit and place to join with what active leases have of them.
// Links and leases are counted of the tenants that may be shown.
func linksNow(sub vnet.Substrate, leases []vnet.Lease, shown func(vnet.TenantID) bool) []api.Link {
	links := make([]api.Link, 0, 2*len(sub.Links))
	index := make(map[crossing]*api.Link, cap(links))
	for _, l := range sub.Links {
		for _, d := range vnet.Directions {
			links = append(links, api.Link{Name: l.Name, From: l.Ends[d], To: l.Ends[d.Opposite()], Capacity: l.Capacity, Leasable: l.Leasable(), Down: !l.Works()})
		}
	}
	for _, w := range lease.Outlets(sub) {
		ends := [2]string{string(w.Host), outside}
		for _, d := range vnet.Directions {
			links = append(links, api.Link{Name: w.Link, From: ends[d], To: ends[d.Opposite()], Capacity: w.Capacity, Leasable: w.Capacity})
		}
	}
	for i := range links { // where they stay
		index[crossing{links[i].Name, vnet.Direction(i % 2)}] = &links[i]
	}
	for _, l := range active(leases) {
		addLease(sub, l, index, shown(l.Request.Tenant))
	}
	return links
}

// addLease adds a lease's links to what they cross. A path that the substrate
// has no more crosses nothing.
func addLease(sub vnet.Substrate, l vnet.Lease, index map[crossing]*api.Link, shown bool) {
	crossed := make(map[*api.Link]bool)
	ways := lease.OutletsOf(l.Topology())
	for _, v := range l.Topology().Links {
		for _, d := range vnet.Directions {
			for _, at := range []*api.Link{index[crossing{ways[v.Ends[d.Opposite()]], vnet.Forward}], index[crossing{ways[v.Ends[d]], vnet.Reverse}]} {
				if at == nil {
					continue
				}
				book(at, v.Bandwidth[d], l.Rates[v.Name][d])
				if shown {
					count(at, v.Bandwidth[d])
					crossed[at] = true
				}
			}
		}
		for _, share := range l.Mapping.Paths(v.Name) {
			hops, _ := sub.Walk(l.Mapping.Nodes[v.Ends[0]], share.Path)
			for _, hop := range hops {
				for _, d := range vnet.Directions {
					at := index[crossing{hop.Link.Name, hop.Dir ^ d}]
					book(at, share.Bandwidth(v.Bandwidth[d]), share.Of(l.Rates[v.Name][d]))
					if shown {
						count(at, v.Bandwidth[d])
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

func book(l *api.Link, b vnet.Bandwidth, allocated vnet.Rate) {
	if !b.BestEffort() {
		l.Booked += b.Min
		l.Allocated += allocated
	}
}

func count(l *api.Link, b vnet.Bandwidth) {
	l.Links++
	if b.BestEffort() {
		l.BestEffort++
	}
}
