package vxlink

import (
	"cmp"
	"net/netip"
	"slices"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
)

// Interfaces lists the host's interfaces that are not Sublet's own: those with
// addresses first, by name, report.MostInterfaces at most.
func (p *Part) Interfaces() ([]report.Interface, error) {
	c, err := p.host.Dial("")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	addresses, err := c.Addresses(0)
	if err != nil {
		return nil, err
	}
	queues, err := c.Qdiscs()
	if err != nil {
		return nil, err
	}
	return interfacesOf(links, addresses, queues), nil
}

func interfacesOf(links []kernel.Link, addresses []kernel.Address, queues []kernel.Qdisc) []report.Interface {
	own := make(map[int][]netip.Addr)
	for _, a := range addresses {
		own[a.Index] = append(own[a.Index], a.Local)
	}
	foreign := make(map[int]string)
	for _, q := range queues {
		if q.Parent == kernel.TCRoot && q.Handle != 0 && !ours(q) {
			foreign[q.Index] = q.Kind
		}
	}
	var list []report.Interface
	for _, l := range links {
		if l.Name != "lo" && !(l.Kind == "veth" && plan.IsTrunk(l.Name)) {
			list = append(list, report.Interface{Name: l.Name, MTU: l.MTU, Addresses: own[l.Index], Queue: foreign[l.Index]})
		}
	}
	slices.SortFunc(list, func(a, b report.Interface) int {
		return cmp.Or(cmp.Compare(min(1, len(b.Addresses)), min(1, len(a.Addresses))), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), report.MostInterfaces)]
}
