package live

import (
	"fmt"
	"net/netip"
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
)

// RowConfig is a row of a switch's table. What it does not state matches everything.
type RowConfig struct {
	MAC     string   `yaml:"mac,omitempty" json:"mac,omitempty"` // destination
	Src     string   `yaml:"src,omitempty" json:"src,omitempty"` // prefixes
	Dst     string   `yaml:"dst,omitempty" json:"dst,omitempty"`
	VLAN    uint16   `yaml:"vlan,omitempty" json:"vlan,omitempty"`
	DSCP    *uint8   `yaml:"dscp,omitempty" json:"dscp,omitempty"`
	Proto   string   `yaml:"proto,omitempty" json:"proto,omitempty"` // tcp, udp, icmp, icmp6
	SrcPort uint16   `yaml:"src_port,omitempty" json:"src_port,omitempty"`
	DstPort uint16   `yaml:"dst_port,omitempty" json:"dst_port,omitempty"`
	To      []string `yaml:"to,omitempty" json:"to,omitempty"` // ports by name; none: dropped
}

// forwarder is a switch's second lookup.
func (w *VirtualConfig) forwarder(where string, known []lookup.Station) (vxswitch.Forwarder, error) {
	n := len(w.Ports)
	switch w.Lookup {
	case vnet.LookupLearning:
		if len(w.Table) > 0 {
			return nil, fail(where+".table", "learning reads none: state lookup: static, prefix or classifier")
		}
		return w.learning(known), nil
	case vnet.LookupStatic:
		more, err := w.staticRows(where)
		return lookup.NewStatic(n, append(known, more...)), err
	case vnet.LookupPrefix:
		prefixes, err := w.prefixes(where)
		return lookup.NewPrefix(n, known, prefixes), err
	case vnet.LookupClassifier:
		rules, err := w.rules(where)
		return lookup.NewClassifier(rules, w.learning(known)), err
	}
	return nil, fail(where+".lookup", "%q: there are learning, static, prefix and classifier", w.Lookup)
}

func (w *VirtualConfig) learning(known []lookup.Station) *lookup.Learning {
	l := lookup.NewLearning(len(w.Ports), time.Duration(w.Ageing), w.MACs)
	l.Plan(known)
	return l
}

// staticRows are a table's stations.
func (w *VirtualConfig) staticRows(where string) (list []lookup.Station, err error) {
	for i, r := range w.Table {
		at := fmt.Sprintf("%s.table[%d]", where, i)
		rule, err := w.rule(at, r)
		if err != nil {
			return nil, err
		}
		port := rule.To.Next(0)
		if rule.MAC == nil || rule.MAC.Multicast() || len(r.To) != 1 {
			return nil, fail(at, "a row of static is the mac of a station and one port")
		}
		list = append(list, lookup.Station{MAC: *rule.MAC, Port: port})
	}
	return list, nil
}

// prefixes are a table's prefixes.
func (w *VirtualConfig) prefixes(where string) (map[netip.Prefix]vxswitch.PortSet, error) {
	prefixes := make(map[netip.Prefix]vxswitch.PortSet, len(w.Table))
	for i, r := range w.Table {
		at := fmt.Sprintf("%s.table[%d]", where, i)
		rule, err := w.rule(at, r)
		if err != nil {
			return nil, err
		}
		if !rule.Dst.IsValid() {
			return nil, fail(at+".dst", "a row of prefix states one")
		}
		prefixes[rule.Dst] = rule.To
	}
	return prefixes, nil
}

// rules are a table's rows in their order.
func (w *VirtualConfig) rules(where string) (list []lookup.Rule, err error) {
	for i, r := range w.Table {
		rule, err := w.rule(fmt.Sprintf("%s.table[%d]", where, i), r)
		if err != nil {
			return nil, err
		}
		list = append(list, rule)
	}
	return list, nil
}

// rule is a row as the engine takes it.
func (w *VirtualConfig) rule(at string, r RowConfig) (rule lookup.Rule, err error) {
	rule = lookup.Rule{VLAN: r.VLAN, DSCP: r.DSCP, SrcPort: r.SrcPort, DstPort: r.DstPort}
	if r.MAC != "" {
		mac, err := parseMAC(r.MAC)
		if err != nil {
			return rule, fail(at+".mac", "%v", err)
		}
		rule.MAC = &mac
	}
	if rule.Src, err = prefixOf(at+".src", r.Src); err != nil {
		return rule, err
	}
	if rule.Dst, err = prefixOf(at+".dst", r.Dst); err != nil {
		return rule, err
	}
	var known bool
	if rule.Proto, known = vnet.RowProtocols[r.Proto]; r.Proto != "" && !known {
		return rule, fail(at+".proto", "%q: there are icmp, icmp6, tcp and udp", r.Proto)
	}
	for _, name := range r.To {
		port := w.portNamed(name)
		if port < 0 || name == "" {
			return rule, fail(at+".to", "%q: name ports of the switch", name)
		}
		rule.To.Add(port)
	}
	return rule, nil
}

func prefixOf(at, text string) (p netip.Prefix, err error) {
	if text == "" {
		return p, nil
	}
	if p, err = netip.ParsePrefix(text); err != nil {
		return p, fail(at, "%q is no prefix such as 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}
