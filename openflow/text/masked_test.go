package text

import (
	"testing"

	"sublet/openflow/of13"
)

func TestMaskedFields(t *testing.T) {
	for words, want := range map[string]of13.Field{
		"ip,nw_src=10.1.2.3/8":                       of13.WithMask(of13.IPv4Src, of13.U128{Lo: 10 << 24}, of13.U128{Lo: 0xff << 24}),
		"ip,nw_dst=10.0.0.1/255.0.0.255":             of13.WithMask(of13.IPv4Dst, of13.U128{Lo: 10<<24 | 1}, of13.U128{Lo: 0xff0000ff}),
		"ipv6,ipv6_src=2001:db8::1/32":               of13.WithMask(of13.IPv6Src, of13.U128{Hi: 0x20010db8 << 32}, of13.U128{Hi: 0xffffffff << 32}),
		"dl_dst=01:00:00:00:00:00/01:00:00:00:00:00": of13.WithMask(of13.EthDst, of13.U128{Lo: 1 << 40}, of13.U128{Lo: 1 << 40}),
		"dl_vlan=10":           of13.Exact(of13.VLANVID, 0x100a),
		"ip,nw_src=10.0.0.0/0": of13.WithMask(of13.IPv4Src, of13.U128{}, of13.U128{}),
	} {
		list, err := Masked(words)
		if err != nil || list[len(list)-1] != want {
			t.Errorf("%s: %+v, %v, want %+v", words, list, err, want)
		}
	}
	for _, words := range []string{"ip,nw_src=10.0.0.0/33", "ip,nw_src=10.0.0.0/x", "in_port=1/1", "tcp,tp_dst=80/0xff", "ip,nw_src=/8", "ipv6,ipv6_src=::/129"} {
		if list, err := Masked(words); err == nil {
			t.Errorf("%s is %+v", words, list)
		}
	}
	if _, err := Fields("ip,nw_src=10.0.0.0/8"); err == nil {
		t.Error("a packet has a mask")
	}
}
