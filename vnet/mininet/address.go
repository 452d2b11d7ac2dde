package mininet

import (
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// route is a default route that a node states.
type route struct {
	at    *yaml.Node
	where string
}

// addresses gives the first ends of nodes the addresses that the nodes state, if
// links state some too, as where routers join subnets, and if subnets are each of
// one segment then.
func (r *reader) addresses() {
	if slices.ContainsFunc(r.request.Links, func(l vnet.VirtualLink) bool { return !l.Addresses.IsZero() }) {
		links := r.request.Links
		r.request.Links = r.withPrefixes(links)
		whole := r.request
		whole.Links = slices.Clone(whole.Links)
		whole.Fill()
		if whole.Check() != nil {
			r.request.Links = links
		}
	}
	for _, to := range r.routes {
		words := strings.Fields(to.at.Value)
		i := slices.Index(words, "via")
		if i >= 0 && i+1 < len(words) && r.stated(words[i+1]) {
			r.note(to.at, false, to.where, "defaultRoute is computed: routes lead to all that can be reached")
		} else {
			r.note(to.at, true, to.where, "defaultRoute is left out")
		}
	}
}

// withPrefixes are links with the addresses of nodes whose first link states none.
func (r *reader) withPrefixes(links []vnet.VirtualLink) []vnet.VirtualLink {
	made := slices.Clone(links)
	first := make(map[string]bool)
	for i := range made {
		for end, node := range made[i].Ends {
			p, states := r.prefix[node]
			if states && !first[node] && len(made[i].Addresses[end]) == 0 && !r.takes(p.Addr()) {
				made[i].Addresses[end] = []netip.Prefix{p}
			}
			first[node] = true
		}
	}
	return made
}

// takes says whether a link states an address.
func (r *reader) takes(a netip.Addr) bool {
	return slices.ContainsFunc(r.request.Links, func(l vnet.VirtualLink) bool {
		return slices.ContainsFunc(slices.Concat(l.Addresses[0], l.Addresses[1]), func(p netip.Prefix) bool { return p.Addr() == a })
	})
}

// stated says whether a link or a node states an address.
func (r *reader) stated(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && (r.takes(a) || slices.ContainsFunc(r.request.All(), func(n vnet.VirtualNode) bool { return n.Address == a }))
}

func (r *reader) isSwitch(name string) bool {
	return slices.ContainsFunc(r.request.Switches, func(s vnet.VirtualSwitch) bool { return s.Name == name })
}
