package vxswitch

import (
	"net/netip"
	"slices"

	"sublet/datapath/vxswitch/live"
	"sublet/plan"
	"sublet/vnet"
)

// port is a real port. That of a switch with slices sends at the capacity that they
// divide, and what one of them leaves is the others'.
func (p *Part) port(sw plan.Switch, port plan.SwitchPort) live.PortConfig {
	c := live.PortConfig{Name: port.Key(), Packet: port.Interface, Namespace: p.host.Path(sw.Key())}
	if len(sw.Engine.Slices) > 0 {
		c.Rate, c.Shared = rateOf(port.Engine.Out), true
	}
	return c
}

// sliced are a switch and its slices. Each has its part of every output. Inputs are
// whoever's frames come in: their parts are booked and bind nobody.
func sliced(whole live.VirtualConfig, sw plan.Switch, ports []plan.SwitchPort) []live.VirtualConfig {
	list, left := []live.VirtualConfig{whole}, 100
	for _, x := range sw.Engine.Slices {
		v := whole
		v.Name, v.Buffer, v.Lend = whole.Name+"/"+x.Name, live.Size(x.Buffer), part(x.Lend)
		v.Scheduler, v.Manager, v.Lookup, v.Table = x.Scheduler, x.Manager, x.Lookup, rows(x.Lookup, x.Table, ports)
		v.Cross = nil
		v.Ports = shares(ports, x.Share)
		for i := range v.Ports {
			v.Ports[i].Claim = claim(x.Claim)
		}
		list, left = append(list, v), left-x.Share
	}
	if len(list) > 1 {
		own := shares(ports, left)
		for i := range own {
			own[i].Own = whole.Ports[i].Own
		}
		list[0].Ports = own
	}
	return list
}

func shares(ports []plan.SwitchPort, percent int) (list []live.VirtualPortConfig) {
	for _, p := range ports {
		rate := rateOf(p.Engine.Out) / 100 * live.Rate(percent)
		list = append(list, live.VirtualPortConfig{Port: p.Key(), In: rate, Out: rate, Open: true})
	}
	return list
}

func claim(c vnet.SwitchClaim) *live.ClaimWords {
	words := &live.ClaimWords{VLAN: int(c.VLAN), MAC: c.MAC}
	if c.DSCP != nil {
		n := int(*c.DSCP)
		words.DSCP = &n
	}
	if c.Dst.IsValid() {
		words.Prefix = c.Dst.String()
	}
	return words
}

// part is a percentage as the process takes it.
func part(percent int) live.Fraction { return live.Fraction(percent) / 100 }

// rows are a table's rows. A port that is not there is no way; a station behind it is
// left out.
func rows(lookup string, table []vnet.SwitchRow, ports []plan.SwitchPort) (list []live.RowConfig) {
	for _, r := range table {
		c := live.RowConfig{MAC: r.MAC, Src: prefix(r.Src), Dst: prefix(r.Dst), VLAN: r.VLAN, DSCP: r.DSCP, Proto: r.Protocol, SrcPort: r.SrcPort, DstPort: r.DstPort}
		for _, device := range r.To {
			i := slices.IndexFunc(ports, func(p plan.SwitchPort) bool { return p.Interface == device })
			if i >= 0 {
				c.To = append(c.To, ports[i].Key())
			}
		}
		if len(c.To) > 0 || lookup != vnet.LookupStatic {
			list = append(list, c)
		}
	}
	return list
}

func prefix(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}
