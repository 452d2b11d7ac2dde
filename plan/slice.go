package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sublet/vnet"
)

// Slice is a part of a switch of type vxswitch on the same ports. Rows of tables name
// ports by their interfaces.
type Slice struct {
	Name      string           `json:"name"`
	Claim     vnet.SwitchClaim `json:"claim"`
	Share     int              `json:"share_percent"` // of each output's capacity
	Lend      int              `json:"lend_percent,omitempty"`
	Buffer    vnet.Bytes       `json:"buffer_bytes"` // of each crosspoint
	Scheduler string           `json:"scheduler"`
	Manager   string           `json:"manager"`
	Lookup    string           `json:"lookup,omitempty"` // "": learning
	Table     []vnet.SwitchRow `json:"table,omitempty"`
}

func (x Slice) String() string {
	return fmt.Sprintf("slice %s (%s) share %d%% buffer %s %s %s%s", x.Name, x.Claim, x.Share, x.Buffer, x.Scheduler, x.Manager, sharing(x.Lend, x.Lookup, x.Table))
}

// sharing is what a switch and a slice say likewise.
func sharing(lend int, lookup string, table []vnet.SwitchRow) (text string) {
	if lend > 0 {
		text += fmt.Sprintf(" lend %d%%", lend)
	}
	if lookup != "" {
		text += " " + lookup
	}
	for _, r := range table {
		text += " [" + row(r) + "]"
	}
	return text
}

func row(r vnet.SwitchRow) string {
	var words []string
	say := func(stated bool, name string, value any) {
		if stated {
			words = append(words, fmt.Sprintf("%s=%v", name, value))
		}
	}
	say(r.MAC != "", "mac", r.MAC)
	say(r.Src.IsValid(), "src", r.Src)
	say(r.Dst.IsValid(), "dst", r.Dst)
	say(r.VLAN != 0, "vlan", r.VLAN)
	if r.DSCP != nil {
		say(true, "dscp", *r.DSCP)
	}
	say(r.Protocol != "", "proto", r.Protocol)
	say(r.SrcPort != 0, "src_port", r.SrcPort)
	say(r.DstPort != 0, "dst_port", r.DstPort)
	return strings.Join(append(words, "to "+cmp.Or(strings.Join(r.To, ","), "nowhere")), " ")
}

// slices are those of a switch.
func (n *network) slices(s vnet.VirtualSwitch, e *Engine) (list []Slice) {
	for _, x := range s.Slices {
		list = append(list, Slice{
			Name: x.Name, Claim: x.Claim, Share: x.Share, Lend: x.Lend, Buffer: x.BufferOf(s), Scheduler: cmp.Or(x.Scheduler, e.Scheduler),
			Manager: cmp.Or(x.Manager, e.Manager), Lookup: x.Lookup, Table: n.switchTable(s, x.Table),
		})
	}
	return list
}

// switchTable is a table with interfaces in place of links. Links of another stage are left
// out.
func (n *network) switchTable(s vnet.VirtualSwitch, rows []vnet.SwitchRow) (list []vnet.SwitchRow) {
	for _, r := range rows {
		links := r.To
		r.To = nil
		for _, link := range links {
			if device, ok := n.interfaceOf(link, s.Name); ok {
				r.To = append(r.To, device)
			}
		}
		list = append(list, r)
	}
	return list
}

// meetSlices keeps what both have, with the smaller buffers of both.
func (e Engine) meetSlices(o Engine) (list []Slice) {
	for _, x := range e.Slices {
		i := slices.IndexFunc(o.Slices, func(y Slice) bool { return y.Name == x.Name })
		if i >= 0 {
			x.Buffer = min(x.Buffer, o.Slices[i].Buffer)
			list = append(list, x)
		}
	}
	return list
}
