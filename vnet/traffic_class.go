package vnet

import (
	"net/netip"
	"slices"
)

// TrafficClass is a set of packets, and of those that answer them, for which routers
// have ways of their own: the links that name the class (VirtualLink.Class) carry it
// and no other packets.
type TrafficClass struct {
	Name  string  `json:"name"`
	Match Packets `json:"match"`
}

// MaxClasses is how many a network may have: each is a routing table of a router.
const MaxClasses = 8

// Sets are the packets of the class: those that match, and their answers.
func (c TrafficClass) Sets() []Packets {
	if back := c.Match.Answers(); back != c.Match {
		return []Packets{c.Match, back}
	}
	return []Packets{c.Match}
}

// Answers is the set of packets that answer those of the set.
func (f Packets) Answers() Packets {
	f.Src, f.Dst, f.SrcPort, f.DstPort = f.Dst, f.Src, f.DstPort, f.SrcPort
	return f
}

// classes checks the classes of a request and the links that are theirs.
func (c *checker) trafficClasses(r Request) error {
	if len(r.Classes) > MaxClasses {
		return fieldf("classes", "%d classes are more than %d: join some", len(r.Classes), MaxClasses)
	}
	names := make([]string, len(r.Classes))
	for i, class := range r.Classes {
		path := at("classes", i)
		if err := checkName(path+".name", class.Name); err != nil {
			return err
		}
		if slices.Contains(names[:i], class.Name) {
			return fieldf(path+".name", "there is a class %q already: choose another name", class.Name)
		}
		names[i] = class.Name
		if err := class.Match.checkRoutable(path + ".match"); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(c.links) {
		if err := c.classOf(c.linkPath[name]+".class", c.links[name], names); err != nil {
			return err
		}
	}
	return nil
}

// checkRoutable wants a set of packets that routing rules of the kernel can tell.
func (f Packets) checkRoutable(path string) error {
	switch {
	case f.DSCP != nil || f.VLAN != nil:
		return fieldf(path, "routers tell classes by addresses, protocols and ports: leave out dscp and vlan")
	case f == Packets{}:
		return fieldf(path, "is all packets: state proto, src, dst or ports")
	}
	for _, p := range []netip.Prefix{f.Src, f.Dst} {
		if p.IsValid() && p.Bits() == 0 {
			return fieldf(path, "%s is every address: leave it out", p)
		}
	}
	return f.check(path)
}

// classOf checks the class that a link names.
func (c *checker) classOf(path string, l VirtualLink, names []string) error {
	if l.Class == "" {
		return nil
	}
	if !slices.Contains(names, l.Class) {
		return fieldf(path, "there is no class %q: state it under classes", l.Class)
	}
	for _, end := range l.Ends {
		switch {
		case c.kinds[end] != "router":
			return fieldf(path, "%s %q does not route by class: a link of a class joins two routers", c.kinds[end], end)
		case c.nodes[end].Protocol == ProtocolNone:
			return fieldf(path, "router %q leaves its table to you (protocol none): leave it out, and set rules in the router", end)
		}
	}
	return nil
}
