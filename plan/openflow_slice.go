package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sublet/vnet"
)

// flowSlice is a slice as the process of its switch is told of it.
func (n *network) flowSlice(vswitch string, x vnet.FlowSlice, inBand bool) OpenFlowSlice {
	s := OpenFlowSlice{
		Name: x.Name, Controllers: n.controllers(vswitch, x.Controllers, inBand), Default: x.Default, Match: matchText(x.Match),
		Tables: x.Tables, Entries: x.Entries, Groups: x.Groups, Meters: x.Meters,
	}
	for _, link := range x.Links {
		s.Ports = append(s.Ports, n.portsOf(vswitch, link)...)
	}
	slices.Sort(s.Ports)
	return s
}

// portsOf are the numbers of the ports where a link ends at a switch.
func (n *network) portsOf(vswitch, link string) (ports []int) {
	for _, l := range n.whole.Links {
		for end, name := range l.Ends {
			var device int
			if _, err := fmt.Sscanf(n.device[linkEnd{l.Name, end}], "eth%d", &device); l.Name == link && name == vswitch && err == nil {
				ports = append(ports, device+1)
			}
		}
	}
	return ports
}

// matchText writes a row as ovs-ofctl writes matches.
func matchText(r vnet.SwitchRow) string {
	var words []string
	add := func(format string, value any) { words = append(words, fmt.Sprintf(format, value)) }
	six := r.Src.IsValid() && !r.Src.Addr().Is4() || r.Dst.IsValid() && !r.Dst.Addr().Is4()
	if r.VLAN != 0 {
		add("dl_vlan=%d", r.VLAN)
	}
	if r.MAC != "" {
		add("dl_dst=%s", strings.ToLower(r.MAC))
	}
	if word := protocolWord(r, six); word != "" {
		words = append(words, word)
	}
	address := map[bool]string{false: "nw", true: "ipv6"}[six]
	for _, end := range []struct {
		name string
		at   netip.Prefix
	}{{"src", r.Src}, {"dst", r.Dst}} {
		if end.at.IsValid() && end.at.Bits() > 0 {
			words = append(words, fmt.Sprintf("%s_%s=%s", address, end.name, end.at))
		}
	}
	if r.DSCP != nil {
		add("nw_tos=%d", int(*r.DSCP)<<2)
	}
	if r.SrcPort != 0 {
		add("tp_src=%d", r.SrcPort)
	}
	if r.DstPort != 0 {
		add("tp_dst=%d", r.DstPort)
	}
	return strings.Join(words, ",")
}

// protocolWord is that of the headers which a row's fields are in.
func protocolWord(r vnet.SwitchRow, six bool) string {
	switch {
	case r.Protocol == "icmp" || r.Protocol == "icmp6":
		return r.Protocol
	case r.Protocol != "" && six:
		return r.Protocol + "6"
	case r.Protocol != "":
		return r.Protocol
	case six:
		return "ipv6"
	case r.Src.IsValid() || r.Dst.IsValid():
		return "ip"
	}
	return ""
}

func (x OpenFlowSlice) String() string {
	of := "default"
	if !x.Default {
		of = strings.TrimSpace(fmt.Sprintf("ports %v %s", x.Ports, x.Match))
	}
	return fmt.Sprintf("slice %s (%s controllers %s tables %d entries %d groups %d meters %d)", x.Name, of, strings.Join(x.Controllers, ","), x.Tables, x.Entries, x.Groups, x.Meters)
}
