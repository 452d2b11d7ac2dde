package vnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// NAT is a way out that the operator offers: routers that take it
// (VirtualNode.NAT) reach the networks behind an interface of a host, each from
// an address of its own.
type NAT struct {
	Name      string     `json:"name"`
	Host      HostID     `json:"host"`
	Interface string     `json:"interface"` // of the host
	Pool      AddrRange  `json:"pool"`      // an address for each router
	Via       netip.Addr `json:"via"`       // next hop, on the interface
	Capacity  Rate       `json:"capacity_bps"`
	// Publish are the ports that tenants may publish; zero: none.
	Publish PortRange `json:"publish,omitzero"`
	// Refuse are networks that nobody reaches, besides the host's own addresses,
	// the pool and what is link-local or loopback.
	Refuse []netip.Prefix `json:"refuse,omitempty"`
}

// AnyNAT is what a router says that takes whichever way out has room. Admission
// puts its name there.
const AnyNAT = "any"

// TakeWays gives routers that take any way out, and nodes that join anywhere, what
// those of the same name have in another request.
func (r *Request) TakeWays(from Request) {
	has, joins := make(map[string]string), make(map[string]string)
	for _, n := range from.Union().All() {
		has[n.Name], joins[n.Name] = n.NAT, n.Join
	}
	r.takeJoins(func(node string) string { return joins[node] })
	r.eachRouter(func(n *VirtualNode) {
		if n.NAT == AnyNAT && has[n.Name] != "" {
			n.NAT = has[n.Name]
		}
	})
}

// TakeWay gives all routers that take any way out one of that name; false: there
// are none.
func (r *Request) TakeWay(name string) (any bool) {
	r.eachRouter(func(n *VirtualNode) {
		if n.NAT == AnyNAT {
			n.NAT, any = name, true
		}
	})
	return any
}

// eachRouter changes the routers of a request, whose lists are copied first.
func (r *Request) eachRouter(change func(*VirtualNode)) {
	r.Stages = slices.Clone(r.Stages)
	for _, top := range r.topologies() {
		top.Routers = slices.Clone(top.Routers)
		for i := range top.Routers {
			change(&top.Routers[i])
		}
	}
}

// Bounds of ways out.
const (
	MaxNAT     = 256
	MaxPool    = 256 // addresses
	MaxRefuse  = 64  // prefixes
	MaxPublish = 32  // ports of a router
)

// AddrRange is addresses from First to Last, written as 192.0.2.10-192.0.2.20,
// or as one address.
type AddrRange struct{ First, Last netip.Addr }

// UnmarshalText reads what MarshalText writes.
func (r *AddrRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	var err, too error
	r.First, err = netip.ParseAddr(first)
	r.Last, too = netip.ParseAddr(last)
	if err != nil || too != nil {
		return fmt.Errorf("%q is no range of addresses: write one such as 192.0.2.10-192.0.2.20", text)
	}
	return nil
}

// MarshalText writes the range.
func (r AddrRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r AddrRange) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// RangeOf is the addresses of an IPv4 network.
func RangeOf(p netip.Prefix) AddrRange {
	first := p.Masked().Addr().As4()
	last := binary.BigEndian.Uint32(first[:]) | (1<<(32-p.Bits()) - 1)
	return AddrRange{netip.AddrFrom4(first), netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, last)))}
}

// Contains says whether an address lies in the range.
func (r AddrRange) Contains(a netip.Addr) bool { return !a.Less(r.First) && !r.Last.Less(a) }

// All lists the addresses, up to MaxPool.
func (r AddrRange) All() (list []netip.Addr) {
	for a := r.First; r.Contains(a) && len(list) < MaxPool; a = a.Next() {
		list = append(list, a)
	}
	return list
}

// PortRange is ports from First to Last, written as 8000-8999, or as one port.
type PortRange struct{ First, Last uint16 }

// UnmarshalText reads what MarshalText writes.
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	low, ok := parsePort(first)
	high, too := parsePort(last)
	if !ok || !too || high < low {
		return fmt.Errorf("%q is no range of ports: write one such as 8000-8999", text)
	}
	*r = PortRange{low, high}
	return nil
}

// MarshalText writes the range.
func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Contains says whether a port lies in the range.
func (r PortRange) Contains(port uint16) bool {
	return r.First != 0 && r.First <= port && port <= r.Last
}

func parsePort(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0
}

// Publish is a port outside that leads to a port of a node, written as
// 8080:web:80 or 5353:dns:53/udp. Without a suffix it is TCP.
type Publish struct {
	Outside uint16
	Node    string
	Port    uint16
	UDP     bool
}

// UnmarshalText reads what MarshalText writes.
func (p *Publish) UnmarshalText(text []byte) error {
	s, udp := strings.CutSuffix(string(text), "/udp")
	if !udp {
		s = strings.TrimSuffix(s, "/tcp")
	}
	parts := strings.Split(s, ":")
	if len(parts) == 3 {
		outside, ok := parsePort(parts[0])
		port, too := parsePort(parts[2])
		if ok && too && namePattern().MatchString(parts[1]) {
			*p = Publish{outside, parts[1], port, udp}
			return nil
		}
	}
	return fmt.Errorf("%q publishes no port: write OUTSIDE:NODE:PORT such as 8080:web:80, with /udp behind it for UDP", text)
}

// MarshalText writes it.
func (p Publish) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Publish) String() string {
	s := fmt.Sprintf("%d:%s:%d", p.Outside, p.Node, p.Port)
	if p.UDP {
		s += "/udp"
	}
	return s
}

// NATOf finds a way out by name.
func (s Substrate) NATOf(name string) (NAT, bool) {
	i := slices.IndexFunc(s.NAT, func(n NAT) bool { return n.Name == name })
	if i < 0 {
		return NAT{}, false
	}
	return s.NAT[i], true
}

// checkNAT checks the ways out.
func (s Substrate) checkNAT() error {
	if len(s.NAT) > MaxNAT {
		return fieldf("nat", "%d ways out are more than %d: leave some out", len(s.NAT), MaxNAT)
	}
	for i, n := range s.NAT {
		path := at("nat", i)
		if err := n.check(path); err != nil {
			return err
		}
		if _, ok := s.HostOf(string(n.Host)); !ok {
			return fieldf(path+".host", "there is no host %q: state where the interface is", n.Host)
		}
		for j, other := range s.NAT[:i] {
			if other.Name == n.Name {
				return fieldf(path+".name", "there is a way out %q already: choose another name", n.Name)
			}
			if other.Pool.Contains(n.Pool.First) || n.Pool.Contains(other.Pool.First) {
				return fieldf(path+".pool", "%s is in the pool of %s, too: addresses are of one way out", n.Pool, at("nat", j))
			}
		}
	}
	return nil
}

// check checks a way out by itself.
func (n NAT) check(path string) error {
	if err := checkName(path+".name", n.Name); err != nil {
		return err
	}
	if n.Name == AnyNAT {
		return fieldf(path+".name", "%q stands for whichever way out has room: choose another name", n.Name)
	}
	if !interfacePattern().MatchString(n.Interface) {
		return fieldf(path+".interface", "%q is not a device name: use at most 15 letters, digits, '.', '_' and '-'", n.Interface)
	}
	if n.Capacity == 0 {
		return fieldf(path+".capacity", "is missing: state the rate per direction, such as 1Gbit")
	}
	if err := checkRate(path+".capacity", n.Capacity, false); err != nil {
		return err
	}
	for _, a := range []netip.Addr{n.Pool.First, n.Pool.Last} {
		if err := checkAddress(path+".pool", a); err != nil {
			return err
		}
	}
	if n.Pool.Last.Less(n.Pool.First) {
		return fieldf(path+".pool", "%s ends before it begins", n.Pool)
	}
	if all := n.Pool.All(); all[len(all)-1] != n.Pool.Last {
		return fieldf(path+".pool", "%s is more than %d addresses: state fewer", n.Pool, MaxPool)
	}
	if err := checkAddress(path+".via", n.Via); err != nil {
		return err
	}
	if n.Pool.Contains(n.Via) {
		return fieldf(path+".via", "%s is in the pool: state the router that leads on", n.Via)
	}
	return n.checkRefuse(path + ".refuse")
}

func (n NAT) checkRefuse(path string) error {
	if len(n.Refuse) > MaxRefuse {
		return fieldf(path, "%d networks are more than %d: state larger ones", len(n.Refuse), MaxRefuse)
	}
	for i, p := range n.Refuse {
		if !p.IsValid() || !p.Addr().Is4() || p != p.Masked() {
			return fieldf(at(path, i), "%s is not an IPv4 network: state one such as 10.0.0.0/8", p)
		}
	}
	return nil
}

// checkNAT checks what a node says of its way out. That its ports lead to nodes
// that exist, Request.Check says.
func (n VirtualNode) checkNAT(path, kind string) error {
	switch {
	case n.NAT == "" && len(n.Publish) > 0:
		return fieldf(path+".publish", "needs a way out: state nat too")
	case n.NAT == "":
		return nil
	case kind != "router":
		return fieldf(path+".nat", "only routers have a way out: write the node under routers, and a link to it")
	case n.Protocol != ProtocolStatic:
		return fieldf(path+".protocol", "a router with a way out has static routes: leave it out")
	case n.Host != "" || n.Site != "" || n.Exclusive:
		return fieldf(path+".nat", "the way out says where the router is: leave out host, site and exclusive")
	case len(n.Stated()) > 0:
		return fieldf(path+"."+n.Stated()[0], "a router with a way out is the operator's, and runs nothing: leave it out, or write it at a node behind it")
	case len(n.Publish) > MaxPublish:
		return fieldf(path+".publish", "%d ports are more than %d: publish fewer", len(n.Publish), MaxPublish)
	}
	if err := checkName(path+".nat", n.NAT); err != nil {
		return err
	}
	for i, p := range n.Publish {
		if p.Outside == 0 || p.Port == 0 {
			return fieldf(at(path+".publish", i), "port 0 cannot be published: write 8080:web:80")
		}
		if slices.ContainsFunc(n.Publish[:i], func(q Publish) bool { return q.Outside == p.Outside && q.UDP == p.UDP }) {
			return fieldf(at(path+".publish", i), "port %d is published twice: choose another", p.Outside)
		}
	}
	return nil
}

// waysOut checks what routers with a way out, and switches with access to an exit,
// have to do with the rest: published ports lead to nodes of the network, and their
// links have a rate, since best effort outside the substrate could not be kept below
// what is guaranteed.
func (c *checker) waysOut(r Request) error {
	if err := oneDevice(r); err != nil {
		return err
	}
	out, known := make(map[string]bool), make(map[string]bool)
	for _, n := range r.Union().All() {
		out[n.Name], known[n.Name] = n.NAT != "" || n.Join != "", true
	}
	for _, s := range r.Union().Switches {
		out[s.Name] = s.Access != ""
	}
	for i, top := range r.topologies() {
		path := "routers"
		if i > 0 {
			path = at("stages", i-1) + ".add.routers"
		}
		for j, n := range top.Routers {
			for k, p := range n.Publish {
				if !known[p.Node] {
					return fieldf(at(at(path, j)+".publish", k), "there is no node %q: state whose port %d it is", p.Node, p.Port)
				}
			}
		}
	}
	for i, top := range r.allStages() {
		path := "switches"
		if i > 0 {
			path = at("stages", i-1)
		}
		if err := oneAccess(path, top); err != nil {
			return err
		}
		if err := c.oneLink(top); err != nil {
			return err
		}
		for _, l := range top.Links {
			if (out[l.Ends[0]] || out[l.Ends[1]]) && (l.Bandwidth[0].BestEffort() || l.Bandwidth[1].BestEffort()) {
				return fieldf(c.linkPath[l.Name], "link %q leads outside, and so needs a rate in both directions: state one such as rate: 50Mbit", l.Name)
			}
		}
	}
	return nil
}

// allStages lists the topologies of all stages, from the one at the start.
func (r Request) allStages() (list []Topology) {
	for i := -1; i < len(r.Stages); i++ {
		list = append(list, r.At(i))
	}
	return list
}
