package vxrouter

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Classes of traffic have rules of one priority each after classRules, before the main
// table's 32766, and tables numbered from classTables on.
const (
	classRules  = 15500
	classTables = 15500
	mostSets    = 2 // of packets in a class: those that match, and their answers
)

// rulesOf are the rules of classes: of both families, where no address says which.
func rulesOf(classes []plan.RouteClass) (list []kernel.Rule) {
	for i, c := range classes {
		for j, m := range c.Match {
			for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
				if is4 := family == unix.AF_INET; m.Src.IsValid() && m.Src.Addr().Is4() != is4 || m.Dst.IsValid() && m.Dst.Addr().Is4() != is4 {
					continue
				}
				list = append(list, kernel.Rule{
					Family: family, Priority: uint32(classRules + i*mostSets + j), Table: uint32(classTables + i),
					Src: m.Src, Dst: m.Dst, IPProtocol: protocolNumber(m.Protocol, family), SrcPorts: m.SrcPorts, DstPorts: m.DstPorts,
				})
			}
		}
	}
	return list
}

// protocolNumber is that of IANA's list.
func protocolNumber(p vnet.IPProtocol, family uint8) uint8 {
	switch {
	case p == vnet.ProtocolTCP:
		return unix.IPPROTO_TCP
	case p == vnet.ProtocolUDP:
		return unix.IPPROTO_UDP
	case p == vnet.ProtocolICMP && family == unix.AF_INET6:
		return unix.IPPROTO_ICMPV6
	case p == vnet.ProtocolICMP:
		return unix.IPPROTO_ICMP
	}
	return 0
}

func protocolName(number uint8) vnet.IPProtocol {
	switch number {
	case unix.IPPROTO_TCP:
		return vnet.ProtocolTCP
	case unix.IPPROTO_UDP:
		return vnet.ProtocolUDP
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		return vnet.ProtocolICMP
	}
	return ""
}

// classesOf reads back what setClasses made. Where rules are not what it makes of
// these classes, the first has no sets: no plan has such a class.
func classesOf(rules []kernel.Rule, tables map[uint32][]plan.Route) (classes []plan.RouteClass) {
	for i := 0; ; i++ {
		c := plan.RouteClass{Routes: tables[uint32(classTables+i)]}
		for _, r := range rules {
			if j := int(r.Priority) - classRules - i*mostSets; r.Table == uint32(classTables+i) && j == len(c.Match) && j < mostSets {
				c.Match = append(c.Match, plan.ChainMatch{Protocol: protocolName(r.IPProtocol), Src: r.Src, Dst: r.Dst, SrcPorts: r.SrcPorts, DstPorts: r.DstPorts})
			}
		}
		if len(c.Routes) == 0 && len(c.Match) == 0 {
			break
		}
		classes = append(classes, c)
	}
	if len(classes) > 0 && !sameRules(rules, rulesOf(classes)) {
		classes[0].Match = nil
	} else if len(classes) == 0 && len(rules) > 0 {
		classes = []plan.RouteClass{{}}
	}
	return classes
}

func sameRules(a, b []kernel.Rule) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(r kernel.Rule) bool { return !slices.Contains(b, r) })
}

// tablesOf are a router's routes, by table.
func tablesOf(r plan.VxRouter) map[uint32][]plan.Route {
	tables := make(map[uint32][]plan.Route)
	if len(r.Routes) > 0 {
		tables[0] = r.Routes
	}
	for i, c := range r.Classes {
		tables[uint32(classTables+i)] = c.Routes
	}
	return tables
}

// setRules makes the rules of classes what they shall be.
func setRules(c *kernel.Conn, want []plan.RouteClass) error {
	have, err := c.Rules(Protocol)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	rules := rulesOf(want)
	var adds, deletes []*kernel.Message
	for _, r := range have {
		if !slices.Contains(rules, r) {
			deletes = append(deletes, kernel.DeleteRule(r, Protocol))
		}
	}
	for _, r := range rules {
		if !slices.Contains(have, r) {
			adds = append(adds, kernel.AddRule(r, Protocol))
		}
	}
	if err := c.Batch(deletes); err != nil && !kernel.NotFound(err) {
		return fmt.Errorf("delete %d rules: %w", len(deletes), err)
	}
	if err := c.Batch(adds); err != nil {
		return fmt.Errorf("add %d rules: %w", len(adds), err)
	}
	return nil
}
