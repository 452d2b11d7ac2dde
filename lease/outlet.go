package lease

import (
	"sublet/embed/rate"
	"sublet/vnet"
)

// Outlet is a way out, exit or place to join, as a link of the substrate from its host
// to what is outside.
type Outlet struct {
	Link     string // as the calendar calls it, such as nat:campus
	Host     vnet.HostID
	Capacity vnet.Rate
}

// Outlets lists those of a substrate.
func Outlets(sub vnet.Substrate) (list []Outlet) {
	for _, n := range sub.NAT {
		list = append(list, Outlet{rate.NATPrefix + n.Name, n.Host, n.Capacity})
	}
	for _, x := range sub.Exits {
		list = append(list, Outlet{rate.ExitPrefix + x.Name, x.Host, x.Capacity})
	}
	for _, j := range sub.Joins {
		list = append(list, Outlet{rate.JoinPrefix + j.Name, j.Host, j.Capacity})
	}
	return list
}

// OutletsOf are the links of ways by the routers, switches and nodes that take them.
func OutletsOf(t vnet.Topology) map[string]string {
	of := make(map[string]string)
	for _, n := range t.Nodes {
		if n.Join != "" {
			of[n.Name] = rate.JoinPrefix + n.Join
		}
	}
	for _, r := range t.Routers {
		if r.NAT != "" {
			of[r.Name] = rate.NATPrefix + r.NAT
		}
	}
	for _, s := range t.Switches {
		if s.Access != "" {
			of[s.Name] = rate.ExitPrefix + s.Access
		}
	}
	return of
}
