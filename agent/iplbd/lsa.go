package iplbd

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
)

// Router is what one router says of itself: its router LSA (RFC 2328, A.4.2).
type Router struct {
	ID    netip.Addr
	Links []RouterLink
	Stubs []netip.Prefix
}

// RouterLink is a point-to-point link to a neighbour.
type RouterLink struct {
	Neighbour netip.Addr
	Address   netip.Addr // of this router's end
	Cost      int
}

// header says which instance of an LSA there is.
type header struct{ sequence, checksum string }

// maxAge is that of an LSA that is being flushed (RFC 2328, B).
const maxAge = 3600

// parseSummary reads "show ip ospf database json" of FRR: who asks, and the
// instances of router LSAs by router.
func parseSummary(text []byte) (self netip.Addr, instances map[netip.Addr]header, err error) {
	var answer struct {
		RouterID netip.Addr `json:"routerId"`
		Areas    map[string]struct {
			Routers []struct {
				ID       netip.Addr `json:"lsId"`
				Age      int        `json:"lsaAge"`
				Sequence string     `json:"sequenceNumber"`
				Checksum string     `json:"checksum"`
			} `json:"routerLinkStates"`
		} `json:"areas"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return self, nil, fmt.Errorf("link-state database: %w", err)
	}
	if len(answer.Areas) > 1 {
		return self, nil, fmt.Errorf("link-state database: %d areas: a fabric is one", len(answer.Areas))
	}
	instances = make(map[netip.Addr]header)
	for _, area := range answer.Areas {
		for _, r := range area.Routers {
			if r.Age < maxAge && r.ID.Is4() {
				instances[r.ID] = header{r.Sequence, r.Checksum}
			}
		}
	}
	return answer.RouterID, instances, nil
}

// parseRouters reads "show ip ospf database router [ID] json" of FRR.
func parseRouters(text []byte) (map[netip.Addr]Router, error) {
	var answer struct {
		States struct {
			Areas map[string][]jsonLSA `json:"areas"`
		} `json:"routerLinkStates"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("router LSAs: %w", err)
	}
	routers := make(map[netip.Addr]Router)
	for _, area := range answer.States.Areas {
		for _, lsa := range area {
			if lsa.Age < maxAge && lsa.ID.Is4() {
				routers[lsa.ID] = lsa.router()
			}
		}
	}
	return routers, nil
}

// jsonLSA is a router LSA as FRR prints it.
type jsonLSA struct {
	ID    netip.Addr          `json:"linkStateId"`
	Age   int                 `json:"lsaAge"`
	Links map[string]jsonLink `json:"routerLinks"`
}

// jsonLink has texts where an address may be missing or broken.
type jsonLink struct {
	Type      string `json:"linkType"`
	Neighbour string `json:"neighborRouterId"`
	Address   string `json:"routerInterfaceAddress"`
	Network   string `json:"networkAddress"`
	Mask      string `json:"networkMask"`
	Cost      int    `json:"tos0Metric"`
}

func (l jsonLSA) router() Router {
	r := Router{ID: l.ID}
	for i := range len(l.Links) {
		link := l.Links["link"+strconv.Itoa(i)]
		switch link.Type {
		case "another Router (point-to-point)":
			neighbour, errN := netip.ParseAddr(link.Neighbour)
			address, errA := netip.ParseAddr(link.Address)
			if errN == nil && errA == nil && neighbour.Is4() && address.Is4() && link.Cost > 0 && link.Cost <= maxCost {
				r.Links = append(r.Links, RouterLink{neighbour, address, link.Cost})
			}
		case "Stub Network":
			if p, ok := prefixOf(link.Network, link.Mask); ok {
				r.Stubs = append(r.Stubs, p)
			}
		}
	}
	return r
}

// maxCost is that of a link; stub routers state it for all of theirs (RFC 6987).
const maxCost = 1<<16 - 1

// prefixOf joins an address and a mask; false: the mask has holes.
func prefixOf(network, mask string) (netip.Prefix, bool) {
	a, errA := netip.ParseAddr(network)
	m, errM := netip.ParseAddr(mask)
	if errA != nil || errM != nil || !a.Is4() || !m.Is4() {
		return netip.Prefix{}, false
	}
	b := m.As4()
	word := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	bits := 0
	for word&(1<<31) != 0 {
		word <<= 1
		bits++
	}
	return netip.PrefixFrom(a, bits).Masked(), word == 0
}
