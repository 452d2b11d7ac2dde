package file

import (
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// cidr is a prefix of either version of IP.
type cidr netip.Prefix

func (c *cidr) UnmarshalText(text []byte) error {
	p, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is no prefix such as 10.0.0.0/24", text)
	}
	*c = cidr(p.Masked())
	return nil
}

func (c cidr) MarshalText() ([]byte, error) { return []byte(netip.Prefix(c).String()), nil }

// prefix is what is stated, or none.
func (c *cidr) prefix() netip.Prefix {
	if c == nil {
		return netip.Prefix{}
	}
	return netip.Prefix(*c)
}

func cidrForm(p netip.Prefix) *cidr {
	if !p.IsValid() {
		return nil
	}
	return (*cidr)(&p)
}

// sharing converts lookup, table and slices of the switch written at path.
func (f vswitch) sharing(path string, s *vnet.VirtualSwitch) (err error) {
	s.Lend, s.Lookup, s.Table = int(f.Lend), f.Lookup, rowsOf(f.Table)
	for i, x := range f.Slices {
		to := vnet.SwitchSlice{
			Name: string(x.Name), Share: int(x.Share), Lend: int(x.Lend), Scheduler: x.Scheduler, Manager: x.Manager,
			Lookup: x.Lookup, Table: rowsOf(x.Table),
			Claim: vnet.SwitchClaim{VLAN: x.Claim.VLAN, DSCP: x.Claim.DSCP, Dst: x.Claim.Dst.prefix(), MAC: x.Claim.MAC},
		}
		if to.Buffer, err = x.Buffer.stated(fmt.Sprintf("%s.slices[%d].buffer", path, i)); err != nil {
			return err
		}
		s.Slices = append(s.Slices, to)
	}
	return nil
}

func rowsOf(table []switchRow) (rows []vnet.SwitchRow) {
	for _, r := range table {
		rows = append(rows, vnet.SwitchRow{
			MAC: r.MAC, Src: r.Src.prefix(), Dst: r.Dst.prefix(), VLAN: r.VLAN, DSCP: r.DSCP, Protocol: r.Proto,
			SrcPort: r.SrcPort, DstPort: r.DstPort, To: words(r.To),
		})
	}
	return rows
}

func tableForm(rows []vnet.SwitchRow) (table []switchRow) {
	for _, r := range rows {
		table = append(table, switchRow{r.MAC, cidrForm(r.Src), cidrForm(r.Dst), r.VLAN, r.DSCP, r.Protocol, r.SrcPort, r.DstPort, names(r.To)})
	}
	return table
}

func slicesForm(all []vnet.SwitchSlice) (list []slice) {
	for _, x := range all {
		list = append(list, slice{
			Name: name(x.Name), Share: percent(x.Share), Lend: percent(x.Lend), Buffer: unlessZero[size](x.Buffer), Scheduler: x.Scheduler,
			Manager: x.Manager, Lookup: x.Lookup, Table: tableForm(x.Table),
			Claim: claim{x.Claim.VLAN, x.Claim.DSCP, cidrForm(x.Claim.Dst), x.Claim.MAC},
		})
	}
	return list
}
