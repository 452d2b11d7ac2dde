package overlay

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

// Protocols have the writers that are made for them, by their names in the object.
func TestProtocolsHaveTheirWriters(t *testing.T) {
	ip4, ip6 := [2]string{"192.0.2.1", "192.0.2.2"}, [2]string{"2001:db8::1", "2001:db8::2"}
	for _, c := range []struct {
		protocol vnet.Encapsulation
		ends     [2]string
		writer   string
	}{
		{vnet.VXLAN, ip4, "50-udp34"}, {vnet.Geneve, ip4, "50-udp34"}, {vnet.VXLAN, ip6, "70-udp54"}, {vnet.NSH, ip4, "74-udp34"},
		{vnet.GRETAP, ip4, "38"}, {vnet.NVGRE, ip4, "42-flow41"}, {vnet.IPIP, ip4, "34-word22"}, {vnet.GRE, ip4, "38-word36"},
		{vnet.GUE, ip4, "46-udp34-word42"}, {vnet.LISP, ip6, "70-udp54"}, {vnet.GUE, ip6, "any"},
	} {
		p, err := protocolOf(c.protocol)
		if err != nil {
			t.Fatal(err)
		}
		a := addressing{local: netip.MustParseAddr(c.ends[0]), remote: netip.MustParseAddr(c.ends[1])}
		if got := shapes()[entryOf(p, 7, a, 1).Shape]; got != c.writer {
			t.Errorf("%s between %s: writer %s, want %s", c.protocol, c.ends, got, c.writer)
		}
	}
}
