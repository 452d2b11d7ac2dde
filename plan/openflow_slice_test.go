package plan

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

// Rows are written as ovs-ofctl writes matches.
func TestMatchesOfSlices(t *testing.T) {
	ten := uint8(10)
	four, six, any := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("0.0.0.0/0")
	for want, row := range map[string]vnet.SwitchRow{
		"":                                   {},
		"dl_vlan=7,dl_dst=02:00:00:00:00:0a": {VLAN: 7, MAC: "02:00:00:00:00:0A"},
		"tcp,nw_src=10.0.0.0/8,tp_dst=80":    {Src: four, Protocol: "tcp", DstPort: 80},
		"udp6,ipv6_dst=fd00::/8,nw_tos=40,tp_src=53": {Dst: six, Protocol: "udp", SrcPort: 53, DSCP: &ten},
		"ip,nw_tos=40":           {Src: any, DSCP: &ten},
		"icmp6":                  {Protocol: "icmp6"},
		"icmp,nw_dst=10.0.0.0/8": {Dst: four, Protocol: "icmp"},
		"ipv6,ipv6_src=fd00::/8": {Src: six},
	} {
		if got := matchText(row); got != want {
			t.Errorf("%+v: %q, want %q", row, got, want)
		}
	}
}
