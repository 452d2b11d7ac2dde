package text

import (
	"strings"
	"testing"

	"sublet/openflow/of13"
)

// What is written of a match is read again.
func TestFieldsAreReadAgain(t *testing.T) {
	for _, s := range []string{
		"", "in_port=1", "in_port=LOCAL", "tcp,in_port=1,dl_vlan=5,dl_vlan_pcp=3,dl_src=02:00:00:00:00:01,nw_src=10.0.0.1,nw_tos=184,tp_dst=80",
		"udp6,in_port=2,ipv6_dst=2001:db8::1,tp_src=53", "arp,in_port=1,arp_spa=10.0.0.1,arp_op=2", "icmp6,icmp_type=135,nd_target=fe80::1",
		"in_port=1,dl_type=0x1234",
	} {
		list, err := Fields(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got := Match(defaultPriority, list); got != s {
			t.Errorf("%s is read as %s", s, got)
		}
	}
	list, err := Fields("eth_type=0x0800, ip_proto=6, tcp_dst=443")
	if err != nil || len(list) != 3 || list[2].ID != of13.TCPDst {
		t.Errorf("%v, %v", list, err)
	}
}

func TestFieldsThatAreNone(t *testing.T) {
	for s, want := range map[string]string{
		"tcpp": "neither a protocol nor", "in_port": "neither", "speed=5": "no field", "nw_src=10.0.0.0/8": "mask", "dl_src=1:2": "no value",
		"nw_src=::1": "no value", "tcp,tcp": "already", "tp_dst=70000,tcp": "no value", "nw_tos=3": "no value", "ipv6_src=10.0.0.1": "no value",
	} {
		if _, err := Fields(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s, err, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add("in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := Fields(s)
		for _, x := range list {
			if err == nil && x.Value.Len() > of13.Fields[x.ID].Bits {
				t.Errorf("%s: %v", s, x)
			}
		}
	})
}
