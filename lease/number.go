package lease

import (
	"errors"
	"fmt"
	"net/netip"

	"sublet/plan"
	"sublet/vnet"
)

// vnis are the tunnel identifiers in use.
type vnis map[vnet.VNI]bool

// Tunnel identifiers begin above those that other software on a host hands
// out (Flannel 1, Docker from 4096) and have 24 bits (RFC 7348).
const (
	firstVNI vnet.VNI = 1 << 20
	lastVNI  vnet.VNI = 1<<24 - 1
)

func (v vnis) take(byLink map[string][]vnet.VNI) {
	for _, list := range byLink {
		for _, vni := range list {
			v[vni] = true
		}
	}
}

func (v vnis) free(byLink map[string][]vnet.VNI) {
	for _, list := range byLink {
		for _, vni := range list {
			delete(v, vni)
		}
	}
}

// number gives each tunnel of a mapping the lowest identifier that is not in
// use, and takes it: one per stretch between hosts that run agents.
func (v vnis) number(sub vnet.Substrate, links []vnet.VirtualLink, m vnet.Mapping) (map[string][]vnet.VNI, error) {
	byLink := make(map[string][]vnet.VNI)
	next := firstVNI
	for _, link := range links {
		cuts, err := plan.Stretches(sub, m.Nodes[link.Ends[0]], m.Links[link.Name])
		if err != nil {
			v.free(byLink)
			return nil, err
		}
		for range cuts {
			for v[next] {
				next++
			}
			if next > lastVNI {
				v.free(byLink)
				return nil, errors.New("all tunnel identifiers are in use")
			}
			v[next] = true
			byLink[link.Name] = append(byLink[link.Name], next)
		}
	}
	return byLink, nil
}

// addresses gives every node its stated address or, in order of appearance,
// the next of 10.0.0.0/8 that no node states. Last bytes 0 and 255 are left
// out: tools take them for networks and broadcasts.
func addresses(nodes []vnet.VirtualNode) map[string]netip.Addr {
	given := make(map[string]netip.Addr, len(nodes))
	taken := make(map[netip.Addr]bool, len(nodes))
	for _, n := range nodes {
		if n.Address.IsValid() {
			taken[n.Address] = true
		}
	}
	next := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	for _, n := range nodes {
		if n.Address.IsValid() {
			given[n.Name] = n.Address
			continue
		}
		for last := next.As4()[3]; taken[next] || last == 0 || last == 255; last = next.As4()[3] {
			next = next.Next()
		}
		given[n.Name], next = next, next.Next()
	}
	return given
}

// sameTunnels says what keeps a link's path from being cut into as many
// tunnels as it has identifiers for.
func sameTunnels(sub vnet.Substrate, l vnet.Lease, name string, tunnels int) error {
	link, _ := l.Request.Union().Link(name)
	cuts, err := plan.Stretches(sub, l.Mapping.Nodes[link.Ends[0]], l.Mapping.Links[name])
	if err == nil && len(cuts) != tunnels {
		err = fmt.Errorf("link %s would have %d tunnels instead of %d", name, len(cuts), tunnels)
	}
	return err
}
