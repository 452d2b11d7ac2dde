package lease

import (
	"fmt"
	"net/netip"
	"testing"

	"sublet/vnet"
)

// What is chosen is never what is stated anywhere in the network, nor in a
// stated subnet of others.
func TestChosenAddressesMeetNoStatedOnes(t *testing.T) {
	top := vnet.Topology{
		Nodes:    []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c", Address: netip.MustParseAddr("10.0.0.2")}, {Name: "d"}, {Name: "e"}},
		Switches: []vnet.VirtualSwitch{{Name: "s"}},
		Links: []vnet.VirtualLink{
			{Name: "ab", Ends: [2]string{"a", "b"}, Addresses: vnet.LinkAddresses{{netip.MustParsePrefix("10.0.0.1/24")}, nil}},
			{Name: "cd", Ends: [2]string{"c", "d"}},
			{Name: "as", Ends: [2]string{"a", "s"}},
			{Name: "es", Ends: [2]string{"e", "s"}, Addresses: vnet.LinkAddresses{{netip.MustParsePrefix("10.0.1.1/28"), netip.MustParsePrefix("2001:db8::1/64")}, nil}},
		},
	}
	links := linkAddresses(vnet.Request{}, top)
	if have, want := fmt.Sprint(links["ab"], links["as"], links["es"]), "[[10.0.0.1/24] [10.0.0.3/24]] [[10.0.1.2/28 2001:db8::2/64] []] [[10.0.1.1/28 2001:db8::1/64] []]"; have != want {
		t.Errorf("%s, want %s", have, want)
	}
	given := addresses(top, links)
	if have, want := fmt.Sprint(given), "map[a:10.0.0.1 b:10.0.0.3 c:10.0.0.2 d:10.0.1.16 e:10.0.1.1]"; have != want {
		t.Errorf("%s, want %s", have, want)
	}
}
