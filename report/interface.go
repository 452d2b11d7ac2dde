package report

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Interface is one of a host's, as its agent sees it.
type Interface struct {
	Name      string       `json:"name"`
	MTU       int          `json:"mtu"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Queue     string       `json:"queue,omitempty"` // kind of a root queue that somebody else made
}

// MostInterfaces bounds how many a report names.
const MostInterfaces = 128

// Lacks says what a host's ports of substrate links need and the host does not
// have, sorted: with no lease on it yet, nothing else would show.
func Lacks(links []vnet.SubstrateLink, host vnet.HostID, have []Interface) []string {
	var lacks []string
	for _, l := range links {
		for end, port := range l.Ports {
			if l.Ends[end] == string(host) && port.Interface != "" {
				lacks = append(lacks, lacksOf(port, l.WireMTU(), have)...)
			}
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// lacksOf is what one port needs.
func lacksOf(port vnet.Port, mtu int, have []Interface) (lacks []string) {
	say := func(format string, values ...any) {
		lacks = append(lacks, port.Interface+": "+fmt.Sprintf(format, values...))
	}
	at := slices.IndexFunc(have, func(i Interface) bool { return i.Name == port.Interface })
	if at < 0 {
		say("no such interface")
		return lacks
	}
	i := have[at]
	if port.Address.IsValid() && !slices.Contains(i.Addresses, port.Address) {
		say("has no address %s", port.Address)
	}
	if i.MTU < mtu {
		say("MTU %d is less than the link's, %d", i.MTU, mtu)
	}
	if i.Queue != "" {
		say("has a %s queue that Sublet did not make: tc qdisc del dev %s root", i.Queue, i.Name)
	}
	return lacks
}
