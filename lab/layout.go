package lab

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"sublet/vnet"
)

// underlay is the benchmarking range of RFC 2544, which nobody routes: one
// pair of addresses per substrate link, and loopbacks (loopback.go).
var underlay = netip.MustParsePrefix("198.18.0.0/15")

// netnsDir is where iproute2 keeps named namespaces.
const netnsDir = "/run/netns"

// layout is every name and address of a lab, decided before anything is made.
type layout struct {
	name       string
	bare, ospf bool
	delays     bool           // where there is no netem, a process delays wires
	carried    []carried      // wires that it delays
	buffering  time.Duration  // 0: as usual
	substrate  vnet.Substrate // ports filled in
	ports      [][2]vnet.Port // by link: both ends, switches' too
	nodes      []string       // hosts, then switches
	outside    []outsidePort
}

func newLayout(name string, sub vnet.Substrate) (*layout, error) {
	if most := 1 << (31 - linkRange.Bits()); len(sub.Links) > most {
		return nil, fmt.Errorf("lab up: %d links, but addresses for %d", len(sub.Links), most)
	}
	l := &layout{name: name, substrate: sub, outside: outsidePorts(sub)}
	l.substrate.Links = slices.Clone(sub.Links)
	for _, h := range sub.Hosts {
		l.nodes = append(l.nodes, string(h.Name))
	}
	l.nodes = append(l.nodes, sub.Switches...)
	taken := map[string]map[string]bool{}
	for i, link := range sub.Links {
		l.ports = append(l.ports, [2]vnet.Port{})
		for end, node := range link.Ends {
			if taken[node] == nil {
				taken[node] = map[string]bool{}
			}
			port := vnet.Port{Interface: interfaceName(link, 1-end, taken[node]), Address: addressOf(i, end)}
			l.ports[i][end] = port
			if _, isHost := sub.HostOf(node); isHost {
				l.substrate.Links[i].Ports[end] = port
			}
		}
	}
	return l, nil
}

// PortAddress is the address of one end (0 or 1) of a substrate's link of that
// index in a lab.
func PortAddress(link, end int) netip.Addr { return addressOf(link, end) }

// addressOf is the address of one end (0 or 1) of the link of that index.
func addressOf(link, end int) netip.Addr {
	return nth(linkRange, 2*link+end)
}

// maxInterface is the longest name of a network device (IFNAMSIZ-1).
const maxInterface = 15

// interfaceName is "to-" and the peer; if that is too long, or the node has
// another link to that peer, it ends in a hash of the link's name.
func interfaceName(link vnet.SubstrateLink, peer int, taken map[string]bool) string {
	return shortName("to-"+link.Ends[peer], link.Name, taken)
}

// shortName is a name for a device; if that is too long, or taken, it ends in a
// hash of what it is of.
func shortName(name, of string, taken map[string]bool) string {
	if len(name) > maxInterface || taken[name] {
		hash := fmt.Sprintf("-%06x", hashOf(of)&0xffffff)
		name = name[:min(len(name), maxInterface-len(hash))] + hash
	}
	taken[name] = true
	return name
}

func hashOf(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// namespace is the name under /run/netns of a host or switch. Names of nodes
// hold no '.', so none is the wires'.
func (l *layout) namespace(node string) string { return l.name + "-" + node }

func (l *layout) wires() string { return l.name + ".wires" }

// namespaces lists all names, the wires' first; the outside, which forwards as
// switches do, is last.
func (l *layout) namespaces() []string {
	names := []string{l.wires()}
	for _, node := range l.nodes {
		names = append(names, l.namespace(node))
	}
	if len(l.outside) > 0 {
		names = append(names, outsideName(l.name))
	}
	return names
}

// wire names the device, inside the wires, of one end of a link.
func wire(link, end int) string { return fmt.Sprintf("w%d%c", link, 'a'+end) }
